"""Chooses the approval request of a call, and decides what happens to it when the caller leaves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..delivery.issue_records import IssueReport
from ..policy.input_hash import input_hash
from ..recording.context import RunScope
from ..recording.handle import handle_of
from ..recording.plain import Json
from ..recording.run_state import OpenCall, carried_args
from .approval import CLAIM_TYPE, ApprovalOutcome, Asking, ask_approval, claim_approval, claim_id
from .blocked import BlockCode, PendingCall, ToolBlockedError
from .guard import Guard, Rejection
from .judged import Call, Judged, key_of, named_of
from .leaving_caller import LeaveReason, LeavingCaller

if TYPE_CHECKING:
    from .guarded_call import Request

_APPROVAL_TIMEOUT = 300.0
_APPROVAL_TIMEOUT_MIN = 1.0
_APPROVAL_TIMEOUT_MAX = 86_400.0

_APPROVAL_CODES: dict[str, BlockCode] = {
    "rejected": "approval_rejected",
    "expired": "approval_expired",
    "timeout": "approval_timeout",
    "unavailable": "approval_unavailable",
    "used": "approval_used",
}
# Outcomes after which a later call without a key may use the same request: the call still waits, or a person rejected it.
_OPEN = ("pending", "rejected")


class Approving:
    approval_id: str | None = None
    """The last approval that was requested."""

    def __init__(self, guard: Guard, scope: RunScope, call: Call, request: Request, waiting: OpenCall | None) -> None:
        """`waiting`: set if the host continues a waiting call."""
        self._guard = guard
        self._scope = scope
        self._call = call
        self._request = request
        self._continues = waiting if waiting and waiting.input_hash == call.input_hash else None

    def approve(self, judged: Judged, digest: str, caller: LeavingCaller) -> None:
        """Raises ToolBlockedError unless a person approved, and no process used the approval before."""
        guard, state = self._guard, self._scope.state
        known = guard.watch_of(self._scope).rejected.get(digest)
        if known is not None:
            self.approval_id = known.approval_id
            guard.record_decision(self._scope, self._call, judged, known.approval_id)
            raise self._refused(judged, "approval_rejected", known.reason)
        continued, own_key = self._continues, self._own_key()
        # Calls with equal inputs and no key are different calls, even at the same time. Calls with equal keys are one call.
        slot = digest if own_key is None else input_hash("approval-key", [digest, own_key])
        while True:
            with guard.lock:
                number = _number_of(continued) if continued else state.next_number(slot)
                if own_key is None:
                    state.take_number(slot, number)
            outcome = self._outcome(judged, digest, own_key, number, caller)
            self.approval_id = outcome.approval_id
            is_used = caller.gone is None and (outcome.outcome == "approved" or outcome.is_old)
            with guard.lock:
                # After a spent request, the next call makes its own. After "used", a call with the same key does not.
                if is_used or self._is_left(outcome, caller):
                    state.spend_number(slot, number)
                else:
                    state.free_number(slot, number)
            if caller.gone is not None:
                raise self._left(judged, outcome, caller)
            if outcome.outcome == "approved":
                return
            if outcome.outcome == "pending":
                raise self._pending(judged, outcome)
            if continued is not None or not outcome.is_old:
                break
        if outcome.outcome in ("timeout", "unavailable"):
            caller.leave("timeout" if outcome.outcome == "timeout" else "aborted")
        if outcome.outcome == "rejected":
            guard.watch_of(self._scope).reject(digest, Rejection(outcome.approval_id, outcome.decision_reason))
        raise self._refused(judged, _APPROVAL_CODES[outcome.outcome], outcome.decision_reason)

    def _is_left(self, outcome: ApprovalOutcome, caller: LeavingCaller) -> bool:
        """Whether no later call may find the request, because this call has no key and has ended."""
        is_over = caller.gone is not None or outcome.outcome not in _OPEN
        return is_over and outcome.approval_id is not None and not self._is_named(caller)

    def _is_named(self, caller: LeavingCaller) -> bool:
        """Whether a key or a handle names the call, so that it may be made again."""
        return self._continues is not None or self._own_key() is not None or caller.is_named

    def _left(self, judged: Judged, outcome: ApprovalOutcome, caller: LeavingCaller) -> ToolBlockedError:
        if caller.gone == "handed_over" and outcome.approval_id is not None:
            return self._pending(judged, outcome)
        return self._refused(judged, "aborted" if caller.gone == "aborted" else "caller_gone")

    def _own_key(self) -> str | None:
        """The key of the call; None if calls are numbered instead. A continued call keeps its key."""
        if self._continues is not None:
            return self._continues.key if isinstance(self._continues.key, str) else None
        # A host without types may pass a number as key, which could equal another call's number.
        key = self._request.key
        return key_of(self._request.tool_call_id) if key is None else str(key) or None

    def _pending(self, judged: Judged, outcome: ApprovalOutcome) -> ToolBlockedError:
        """A pending approval is not a refusal: the call continues after a person decides."""
        name, decision = self._call.tool_name, judged.decision
        return ToolBlockedError(
            "approval_pending",
            name,
            input_hash=decision.input_hash,
            policy_ids=decision.policy_ids,
            approval_id=outcome.approval_id,
            reason=decision.reason,
            policy_message=judged.verdict.policy_message,
            pending=PendingCall(str(outcome.approval_id), name, outcome.expires_at),
            handle=handle_of(self._guard.core, self._scope),
        )

    def _outcome(self, judged: Judged, digest: str, own_key: str | None, number: int, caller: LeavingCaller) -> ApprovalOutcome:
        """Asks a person. Returns `approved` once for each request, across all processes."""
        guard, scope, call, rules = self._guard, self._scope, self._call, self._request.rules
        core, verdict, state = guard.core, judged.verdict, scope.state
        approval_timeout = rules.approval_timeout
        approval_timeout = guard.defaults.approval_timeout if approval_timeout is None else approval_timeout
        timeout = _APPROVAL_TIMEOUT if approval_timeout is None else approval_timeout
        bounded = min(max(timeout, _APPROVAL_TIMEOUT_MIN), _APPROVAL_TIMEOUT_MAX)
        waits = guard.defaults.approval_wait if rules.approval_wait is None else rules.approval_wait
        # A list keeps key and number apart: a model can choose any text as key.
        key: Json = number if own_key is None else own_key if number == 0 else [own_key, number]
        basis = [scope.run_id, call.tool_name, digest, verdict.policy_id, verdict.policy_version, key]
        request: dict[str, Json] = {
            # All processes compute the same request id. Another version of the policy makes another request.
            "clientRequestId": input_hash("approval", basis),
            "runId": scope.run_id,
            "sessionId": scope.session_id,
            "agentId": scope.agent_id,
            "policyId": verdict.policy_id,
            "toolName": call.tool_name,
            "inputHash": digest,
            "reason": None if verdict.reason is None else core.mask.text(verdict.reason),
            "timeoutMs": round(bounded * 1_000),
            "toolCallId": call.tool_call_id,
            "policyVersion": verdict.policy_version,
            "policyVersions": dict(verdict.policy_versions) or None,
            "recordsInput": None if core.settings.capture == "full" else False,
        }
        request = {name: value for name, value in request.items() if value is not None}
        is_recorded = False

        def on_created(approval_id: str, expires_at: str | None) -> None:
            nonlocal is_recorded
            is_recorded = True
            carried = carried_args(self._request.args, self._request.named)
            args, named = carried or (None, {})
            with guard.lock:
                is_known = approval_id in state.open_calls
                spent = 0 if own_key is None else number
                called = number if own_key is None else own_key
                state.open(OpenCall(approval_id, call.tool_name, digest, called, expires_at, args, named, spent))
            caller.on_leave = lambda reason: self._withdraw(approval_id, caller, reason)
            # Sent at once, so that operators see the input with the approval.
            if not is_known:
                guard.record_decision(scope, call, judged, approval_id)
            core.sender.flush_soon()

        wait = timeout if waits is None else max(0.0, waits)
        asking = Asking(request, scope.approval_client_id, timeout, wait, on_created, caller.stop, caller.find_callers)
        outcome = ask_approval(core, asking)
        if not is_recorded:
            guard.record_decision(scope, call, judged)
        claim = None
        if outcome.outcome == "approved" and outcome.approval_id is not None:
            guard.configuration.refresh()
            if time.time() >= outcome.until:
                outcome = ApprovalOutcome("expired", outcome.approval_id)
            elif caller.gone is None:
                claim = claim_approval(core, asking, str(outcome.approval_id))
        is_over = outcome.outcome in ("approved", "rejected", "expired", "timeout") and caller.gone is None
        if outcome.approval_id is not None and is_over and claim != "unavailable":
            with guard.lock:
                state.close(outcome.approval_id)
        if claim == "used":
            return ApprovalOutcome("used", outcome.approval_id)
        if claim == "unavailable":
            detail = "the service did not confirm that the tool runs once"
            outcome = ApprovalOutcome("unavailable", outcome.approval_id, None, detail)
        if outcome.detail is not None:
            message = f"A tool was not run because approval could not be requested: {outcome.detail}."
            core.diagnostics.report("warning", "approval_unavailable", message)
        return outcome

    def _withdraw(self, approval_id: str, caller: LeavingCaller, reason: LeaveReason) -> None:
        """Withdraws an approval: only a call that names it, by its key or in a handle, may still use it."""
        guard, scope, call = self._guard, self._scope, self._call
        facts = {"approvalId": approval_id, **named_of(call), "inputHash": call.input_hash, "reason": reason}
        guard.core.record(scope, "APPROVAL_WITHDRAWN", f"nobody waits for {call.tool_name}", facts)
        guard.core.sender.flush_soon()
        if not self._is_named(caller):
            with guard.lock:
                scope.state.close(approval_id)
            # Claims the approval, so that no other process, such as one with an older handle, runs the tool under it.
            payload, evidence = {"toolName": call.tool_name}, {"decision": "WITHDRAWN", "approvalId": approval_id}
            claim = IssueReport(CLAIM_TYPE, "RECOVERY", payload=payload, evidence=evidence)
            guard.issues.report(scope, claim, own_id=claim_id(approval_id))

    def _refused(self, judged: Judged, code: BlockCode, decision_reason: str | None = None) -> ToolBlockedError:
        return self._guard.refused(self._scope, self._call, judged, code, self.approval_id, decision_reason)


def _number_of(call: OpenCall) -> int:
    return call.key if isinstance(call.key, int) else call.spent
