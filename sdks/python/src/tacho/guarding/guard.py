"""
Stands between an agent and its tools.

  call --policies, detectors--> ALLOW, WARN ----------------------------> the tool runs, if its input is unchanged
                           \\--> REQUIRE_APPROVAL --a person: APPROVED-->/
                           |                     \\--everything else----> ToolBlockedError
                           \\--> BLOCK ---------------------------------> ToolBlockedError
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..configuration.configuration import Configuration
from ..configuration.source import RuntimeConfiguration
from ..core import now_ms
from ..delivery.issue_records import IssueRecords, IssueReport
from ..delivery.transport import StopSignal
from ..policy.compile import compiled
from ..policy.decide import decide
from ..policy.facts import Facts
from ..recording.context import RunScope
from ..recording.plain import Json
from .approval import ask_approval
from .blocked import BlockCode, ToolBlockedError
from .detectors import BudgetDetector, Detection, LoopDetector
from .in_thread import in_thread
from .judged import Judged, facts_of, failures_of, hash_of, reason_code_of, snapshot_of
from .recoveries import Recoveries
from .rules import Call, CallDecision, GuardDefaults, Rules
from .verdict import judge

if TYPE_CHECKING:
    from ..core import Core

T = TypeVar("T")

_CONFIGURATION_WAIT = 2.0
_APPROVAL_TIMEOUT = 300.0
_APPROVAL_TIMEOUT_MIN = 1.0
_APPROVAL_TIMEOUT_MAX = 86_400.0

_APPROVAL_CODES: dict[str, BlockCode] = {
    "rejected": "approval_rejected",
    "expired": "approval_expired",
    "timeout": "approval_timeout",
    "unavailable": "approval_unavailable",
    "aborted": "aborted",
}
_UNCONFIGURED = (
    "No policies could be loaded, so guarded tools do not run. "
    "Check the service, the key and its scopes config:read and policies:read."
)
_UNCHECKED = "No policies could be loaded: guarded tools run unchecked, as when_unconfigured says."


@dataclass
class _Watch:
    loop: LoopDetector | None
    budget: BudgetDetector


class Guard:
    def __init__(self, core: Core, configuration: RuntimeConfiguration, issues: IssueRecords, defaults: GuardDefaults) -> None:
        self._core = core
        self._configuration = configuration
        self._issues = issues
        self._defaults = defaults
        self._recoveries = Recoveries()
        for policy in defaults.policies:
            compiled(policy.condition)
        configuration.prepare = _compile_policies

    def reset(self) -> None:
        """Forgets, in a forked process, a lock that its parent may have held."""
        self._recoveries = Recoveries()

    def decide(self, scope: RunScope | None, call: Call, rules: Rules) -> CallDecision:
        """Decides and records. Policies are in memory; `prepare` waits for the first ones."""
        judged = self._judge_safely(scope, call, rules)
        decision = judged.decision
        if decision.action != "ALLOW" or decision.policy_ids or judged.failures:
            self._record_decision(scope, judged)
        if decision.action == "BLOCK":
            self._refused(scope, judged, judged.verdict.cause or "policy")
        return decision

    def prepare(self, rules: Rules) -> None:
        """Waits for the first policies, within bounds."""
        if self._configuration.current is None:
            self._configuration.ready(self._wait_of(rules))

    async def aprepare(self, rules: Rules) -> None:
        """The same for asyncio."""
        if self._configuration.current is None:
            await self._configuration.aready(self._wait_of(rules))

    def call(
        self,
        scope: RunScope | None,
        current: Callable[[], Call],
        rules: Rules,
        act: Callable[[], T],
        stop: StopSignal | None = None,
    ) -> T:
        """
        Runs `act` if the call may run, and records the result. `current` reads the call again, to check that its input
        is still the one the decision was about. Raises ToolBlockedError if the call may not run; otherwise whatever
        `act` raises.
        """
        self.prepare(rules)
        judged = self._admit(scope, current(), rules)
        approval_id = None
        if judged.decision.action == "REQUIRE_APPROVAL":
            approval_id = self._approve(scope, judged, rules, stop or StopSignal())
        self._require_unchanged(scope, judged, current, approval_id)
        start = time.monotonic()
        try:
            output = act()
        except BaseException as error:
            self._failed(scope, judged, approval_id, start, error)
            raise
        self._succeeded(scope, judged, approval_id, start, output)
        return output

    async def acall(
        self,
        scope: RunScope | None,
        current: Callable[[], Call],
        rules: Rules,
        act: Callable[[], Awaitable[T]],
        stop: StopSignal | None = None,
    ) -> T:
        """The same for asyncio. If the caller is cancelled while it waits for approval, the wait ends."""
        await self.aprepare(rules)
        judged = self._admit(scope, current(), rules)
        approval_id = None
        if judged.decision.action == "REQUIRE_APPROVAL":
            ending = stop or StopSignal()
            try:
                approval_id = await in_thread(lambda: self._approve(scope, judged, rules, ending))
            except BaseException:
                ending.set()
                raise
        self._require_unchanged(scope, judged, current, approval_id)
        start = time.monotonic()
        try:
            output = await act()
        except BaseException as error:
            self._failed(scope, judged, approval_id, start, error)
            raise
        self._succeeded(scope, judged, approval_id, start, output)
        return output

    def _wait_of(self, rules: Rules) -> float:
        given = rules.configuration_wait
        given = self._defaults.configuration_wait if given is None else given
        return _CONFIGURATION_WAIT if given is None else given

    def _admit(self, scope: RunScope | None, call: Call, rules: Rules) -> Judged:
        """Raises ToolBlockedError for BLOCK. On REQUIRE_APPROVAL, the caller must ask."""
        judged = self._judge_safely(scope, call, rules)
        action = judged.decision.action
        if action == "BLOCK":
            self._record_decision(scope, judged)
            raise self._refused(scope, judged, judged.verdict.cause or "policy")
        if action != "REQUIRE_APPROVAL" and (action == "WARN" or judged.decision.policy_ids or judged.failures):
            self._record_decision(scope, judged)
        return judged

    def _judge_safely(self, scope: RunScope | None, call: Call, rules: Rules) -> Judged:
        try:
            # A copy: it is read again after the tool ran.
            return self._judge(scope, replace(call, risk_signals=tuple(call.risk_signals)), rules)
        except Exception:
            raise ToolBlockedError("guard_failed", call.tool_name) from None

    def _judge(self, scope: RunScope | None, call: Call, rules: Rules) -> Judged:
        settings = self._core.settings
        current = self._configuration.current
        policies = [*(current.policies if current else ()), *self._defaults.policies, *rules.policies]
        digest = hash_of(call)
        detections = self._detect(scope, call.tool_name, digest) if scope and digest is not None else ()
        usage = scope.usage if scope else None
        decision = decide(
            policies,
            Facts(
                tool_name=call.tool_name,
                tool_input=call.input,
                now=now_ms(),
                agent_id=scope.agent_id if scope else settings.agent_id,
                agent_name=scope.agent_name if scope else settings.agent_name,
                run_id=scope.run_id if scope else None,
                run_cost=usage.cost if usage else None,
                run_total_tokens=usage.total_tokens if usage else None,
                run_tool_calls=usage.tool_calls if usage else None,
                session_id=scope.session_id if scope else None,
                risk_signals=[*call.risk_signals, *(found.type.lower() for found in detections)],
            ),
        )
        fallback = rules.when_unconfigured or self._defaults.when_unconfigured
        is_open = (fallback or ("allow" if settings.turned_off else "block")) == "allow"
        verdict = judge(decision, detections, current is not None or is_open)
        if current is None and not settings.turned_off:
            self._core.diagnostics.report("warning", "guard_unconfigured", _UNCHECKED if is_open else _UNCONFIGURED)
        for found in detections:
            self._report_detection(scope, call, found)
        revision = current.revision if current else None
        decided = CallDecision(verdict.action, verdict.policy_ids, verdict.reason, digest, tuple(detections), revision)
        taken = snapshot_of(call) if digest is None else None
        return Judged(call, decided, verdict, failures_of(decision), taken)

    def _detect(self, scope: RunScope, tool_name: str, digest: str) -> tuple[Detection, ...]:
        if not isinstance(scope.watch, _Watch):
            loop = self._defaults.loop
            scope.watch = _Watch(LoopDetector(loop) if loop else None, BudgetDetector(self._defaults.budget))
        watch, usage = scope.watch, scope.usage
        found = [
            watch.loop.observe(tool_name, digest) if watch.loop else None,
            watch.budget.check(
                tool_calls=usage.tool_calls,
                total_tokens=usage.total_tokens,
                cost=usage.cost,
                seconds=time.monotonic() - usage.since,
            ),
        ]
        return tuple(detection for detection in found if detection is not None)

    def _approve(self, scope: RunScope | None, judged: Judged, rules: Rules, stop: StopSignal) -> str:
        """The id of the approval. Raises ToolBlockedError unless a person approved."""
        core, verdict, digest = self._core, judged.verdict, judged.decision.input_hash
        if digest is None:
            self._record_decision(scope, judged)
            raise self._refused(scope, judged, "input_not_json")
        given = rules.approval_timeout
        given = self._defaults.approval_timeout if given is None else given
        timeout = _APPROVAL_TIMEOUT if given is None else given
        bounded = min(max(timeout, _APPROVAL_TIMEOUT_MIN), _APPROVAL_TIMEOUT_MAX)
        request: dict[str, Json] = {
            "clientRequestId": core.ids.uuid(),
            "runId": scope.run_id if scope else None,
            "sessionId": scope.session_id if scope else None,
            "agentId": scope.agent_id if scope else core.settings.agent_id,
            "policyId": verdict.policy_id,
            "toolName": judged.call.tool_name,
            "inputHash": digest,
            "reason": None if verdict.reason is None else core.mask.text(verdict.reason),
            "timeoutMs": round(bounded * 1_000),
        }
        request = {name: value for name, value in request.items() if value is not None}
        is_recorded = False

        def on_created(approval_id: str) -> None:
            nonlocal is_recorded
            is_recorded = True
            # Send the input at once: operators see it beside the approval.
            self._record_decision(scope, judged, approval_id)
            core.sender.flush_soon()

        outcome = ask_approval(core, request, timeout, on_created, stop)
        if not is_recorded:
            self._record_decision(scope, judged)
        if outcome.outcome == "approved" and outcome.approval_id is not None:
            return outcome.approval_id
        if outcome.detail is not None:
            message = f"A tool was not run because approval could not be requested: {outcome.detail}."
            core.diagnostics.report("warning", "approval_unavailable", message)
        code = _APPROVAL_CODES[outcome.outcome]
        raise self._refused(scope, judged, code, outcome.approval_id, outcome.decision_reason)

    def _require_unchanged(
        self, scope: RunScope | None, judged: Judged, current: Callable[[], Call], approval_id: str | None
    ) -> None:
        call = current()
        is_same = call.tool_name == judged.call.tool_name and hash_of(call) == judged.decision.input_hash
        if is_same and judged.decision.input_hash is None:
            taken = snapshot_of(call)
            is_same = taken is not None and taken == judged.snapshot
        if not is_same:
            raise self._refused(scope, judged, "input_changed", approval_id)

    def _succeeded(self, scope: RunScope | None, judged: Judged, approval_id: str | None, start: float, output: object) -> None:
        facts = {**facts_of(judged, approval_id, start), "output": output}
        tool_name = judged.call.tool_name
        event_id = self._core.record(scope, "TOOL_CALL", tool_name, facts)
        for report in self._recoveries.recovered(_agent_of(scope), tool_name):
            recovery = IssueReport(**{**vars(report), "event_id": event_id, "record_kind": "RECOVERY"})
            self._issues.report(scope, recovery)

    def _failed(
        self,
        scope: RunScope | None,
        judged: Judged,
        approval_id: str | None,
        start: float,
        error: BaseException,
    ) -> None:
        facts = {**facts_of(judged, approval_id, start), "error": error}
        tool_name = judged.call.tool_name
        event_id = self._core.record(scope, "TOOL_CALL", tool_name, facts)
        payload = {"toolName": tool_name, "reasonCode": reason_code_of(error)}
        self._trouble(scope, tool_name, IssueReport("TOOL_FAILED", payload=payload, event_id=event_id))

    def _record_decision(self, scope: RunScope | None, judged: Judged, approval_id: str | None = None) -> None:
        decision, call = judged.decision, judged.call
        payload: dict[str, Any] = {
            "action": decision.action,
            "policyIds": decision.policy_ids,
            "toolName": call.tool_name,
            "inputHash": decision.input_hash,
            "approvalId": approval_id,
            "reason": decision.reason,
            "detections": [found.type for found in decision.detections] or None,
            "failures": judged.failures or None,
            "revision": decision.revision,
        }
        # A blocked call has no TOOL_CALL event, so record its input here.
        if decision.action in ("BLOCK", "REQUIRE_APPROVAL"):
            payload["input"] = {} if call.input is None else call.input
        present = {name: value for name, value in payload.items() if value is not None}
        self._core.record(scope, "POLICY_DECISION", f"{decision.action} {call.tool_name}", present)

    def _refused(
        self,
        scope: RunScope | None,
        judged: Judged,
        code: BlockCode,
        approval_id: str | None = None,
        decision_reason: str | None = None,
    ) -> ToolBlockedError:
        """Reports the issue. The caller raises the error."""
        call, decision = judged.call, judged.decision
        signals = {"riskSignals": list(call.risk_signals)} if call.risk_signals else {}
        report = IssueReport(
            "TOOL_BLOCKED",
            policy_id=decision.policy_ids[0] if decision.policy_ids else None,
            payload={"toolName": call.tool_name, "reasonCode": code, **signals},
            evidence={"decision": "BLOCK", **({"approvalId": approval_id} if approval_id else {})},
        )
        self._trouble(scope, call.tool_name, report)
        return ToolBlockedError(
            code,
            call.tool_name,
            input_hash=decision.input_hash,
            policy_ids=decision.policy_ids,
            approval_id=approval_id,
            decision_reason=decision_reason,
            reason=decision.reason,
        )

    def _trouble(self, scope: RunScope | None, tool_name: str, report: IssueReport) -> None:
        self._issues.report(scope, report)
        self._recoveries.troubled(_agent_of(scope), tool_name, report)

    def _report_detection(self, scope: RunScope | None, call: Call, found: Detection) -> None:
        if found.is_new:
            payload = {"toolName": call.tool_name, "reasonCode": found.reason_code}
            self._issues.report(scope, IssueReport(found.type, payload=payload, evidence={"decision": found.action}))


def _compile_policies(configuration: Configuration) -> None:
    """On the thread that loads them, whose stack is nearly empty: the first call does not pay for it."""
    for policy in configuration.policies:
        compiled(policy.condition)


def _agent_of(scope: RunScope | None) -> str:
    return (scope.agent_id or scope.agent_name) if scope else ""
