"""
Decides calls of tools: policies, detectors, and what is recorded about a decision. `guarded_call` runs them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..configuration.configuration import Configuration
from ..configuration.source import RuntimeConfiguration
from ..core import now_ms
from ..delivery import process_end
from ..delivery.issue_records import IssueRecords, IssueReport
from ..inner_class import inner_class
from ..policy.compile import compiled
from ..policy.decide import decide
from ..policy.facts import Facts
from ..policy.history.tool_labels import labels_of_call
from ..policy.input_hash import input_hash
from ..recording.context import RunScope, current_of
from .blocked import BlockCode, ToolBlockedError
from .detectors import BudgetDetector, Detection, LoopDetector
from .judged import Call, Judged, failures_of, named_of
from .recoveries import Recoveries
from .rules import CallDecision, GuardDefaults, Rules
from .run_histories import RunHistories
from .verdict import judge

if TYPE_CHECKING:
    from ..core import Core

_CONFIGURATION_WAIT = 2.0
# Shorter, because a synchronous tool on an event loop blocks everything else there.
_WAIT_ON_LOOP = 0.25
_UNCONFIGURED = (
    "No policies could be loaded, so guarded tools do not run. "
    "Check the service, the key and its scopes config:read and policies:read."
)
_UNCHECKED = "No policies could be loaded: guarded tools run unchecked, as when_unconfigured says."
_REJECTED_MAX = 1_000
_OF_RUN = frozenset({"run.id", "run.cost", "run.totalTokens", "run.toolCalls", "run.labels", "run.calls", "session.id"})
_OF_AGENT = frozenset({"agent.id", "agent.name"})


@inner_class
class Rejection:
    """A person's rejection of one tool and input in a run."""

    approval_id: str | None
    reason: str | None


@dataclass(eq=False, repr=False)
class Watch:
    """The guard's state for one run."""

    loop: LoopDetector | None
    budget: BudgetDetector
    rejected: dict[str, Rejection] = field(default_factory=dict)
    """Rejections by input hash, which covers the tool. A rejection is final: the run does not ask again."""

    def reject(self, input_hash: str, rejection: Rejection) -> None:
        """Bounded: forgets the oldest."""
        if len(self.rejected) >= _REJECTED_MAX:
            del self.rejected[next(iter(self.rejected))]
        self.rejected[input_hash] = rejection


class Guard:
    def __init__(self, core: Core, configuration: RuntimeConfiguration, issues: IssueRecords, defaults: GuardDefaults) -> None:
        self.core = core
        self.configuration = configuration
        self.issues = issues
        self.defaults = defaults
        for policy in defaults.policies:
            compiled(policy.condition)
        configuration.prepare = _compile_policies
        self._histories = RunHistories(
            lambda: configuration.current,
            defaults,
            lambda code, message: core.diagnostics.report("warning", code, message),
            lambda: self.lock,
        )
        core.observe = self._observe
        self.reset()

    def reset(self) -> None:
        """Replaces, in a forked process, locks that the parent may have held."""
        self.recoveries = Recoveries()
        # A signal handler may call a guarded tool while its thread holds the lock.
        self.lock = threading.RLock()

    def prepare(self, rules: Rules) -> None:
        """Waits for the first policies, or for newer ones that are due, within bounds."""
        process_end.notice_fork()
        configuration = self.configuration
        if configuration.current is None or configuration._is_late:
            wait = configuration.ready if configuration.current is None else configuration._catch_up
            wait(self._wait_of(rules, _WAIT_ON_LOOP if is_on_event_loop() else _CONFIGURATION_WAIT))

    def prepare_early(self) -> None:
        """Called when a run begins. Loads the policies before a synchronous tool on an event loop would wait for them."""
        if _has_tools and is_on_event_loop():
            self.configuration.start()

    async def aprepare(self, rules: Rules) -> None:
        """The same for asyncio."""
        process_end.notice_fork()
        if self.configuration.current is None:
            await self.configuration.aready(self._wait_of(rules, _CONFIGURATION_WAIT))
        elif self.configuration._is_late:
            await asyncio.to_thread(self.configuration._catch_up, self._wait_of(rules, _CONFIGURATION_WAIT))
        current = current_of(self.core)
        if current is not None:
            await self._histories.read(current.scope.state)

    def decide(self, scope: RunScope, call: Call, rules: Rules) -> Judged:
        """Decides and records. Policies are in memory; `prepare` waits for the first ones."""
        judged = self.judge(scope, call, rules, admits=False)
        if judged.decision.action != "ALLOW" or is_notable(judged):
            self.record_decision(scope, call, judged)
        if judged.decision.action == "BLOCK":
            self.refused(scope, call, judged, judged.verdict.cause or "policy")
        return judged

    def judge(self, scope: RunScope, call: Call, rules: Rules, *, admits: bool, before: Judged | None = None) -> Judged:
        """
        Decides, and counts the call in the same step if it may run, so that budgets bind calls that run at the same time.
        `before`: the decision that a person approved. A newer BLOCK holds, and another policy asks for its own approval.
        """
        try:
            # Safe under the lock: conditions and detectors call no code of the host.
            with self.lock:
                judged = self._judge(scope, call, rules, before)
                if admits and (judged.decision.action in ("ALLOW", "WARN") or is_approved(judged, before)):
                    scope.usage.tool_calls += 1
        except Exception:
            raise ToolBlockedError("guard_failed", call.tool_name) from None
        if self.configuration.current is None and not self.core.settings.turned_off:
            message = _UNCHECKED if self._is_open(rules) else _UNCONFIGURED
            self.core.diagnostics.report("warning", "guard_unconfigured", message)
        for detection in judged.decision.detections:
            self._report_detection(scope, call, detection)
        return judged

    def watch_of(self, scope: RunScope) -> Watch:
        with self.lock:
            state, loop = scope.state, self.defaults.loop
            if not isinstance(state.watch, Watch):
                detector = LoopDetector(loop, state.recent_calls) if loop else None
                state.watch = Watch(detector, BudgetDetector(self.defaults.budget))
            return state.watch

    def _wait_of(self, rules: Rules, default: float) -> float:
        configuration_wait = rules.configuration_wait
        configuration_wait = self.defaults.configuration_wait if configuration_wait is None else configuration_wait
        return default if configuration_wait is None else configuration_wait

    def _is_open(self, rules: Rules) -> bool:
        fallback = rules.when_unconfigured or self.defaults.when_unconfigured
        return (fallback or ("allow" if self.core.settings.turned_off else "block")) == "allow"

    def _judge(self, scope: RunScope, call: Call, rules: Rules, before: Judged | None) -> Judged:
        current, usage = self.configuration.current, scope.usage
        policies = [*(current.policies if current else ()), *self.defaults.policies, *rules.policies]
        detections = self._detect(scope, call, before)
        labels = labels_of_call(self._histories.labels(), Facts(call.tool_name, call.form, now_ms()))[0]
        decision = decide(
            policies,
            Facts(
                tool_name=call.tool_name,
                tool_input=call.form,
                now=now_ms(),
                agent_id=scope.agent_id,
                agent_name=scope.agent_name,
                run_id=scope.run_id,
                run_cost=usage.cost,
                run_total_tokens=usage.total_tokens,
                run_tool_calls=usage.tool_calls,
                session_id=scope.session_id,
                risk_signals=[*call.risk_signals, *(detection.type.lower() for detection in detections)],
                tool_labels=labels,
                run_history=None if scope.is_of_call else self._histories.of(scope, rules.policies),
                unknown=self._unknown_of(scope),
            ),
        )
        verdict = judge(decision, detections, current is not None or self._is_open(rules))
        revision = current.revision if current else None
        decided = CallDecision(verdict.action, verdict.policy_ids, verdict.reason, call.input_hash, tuple(detections), revision)
        return Judged(decided, verdict, failures_of(decision), self.configuration._old_age)

    def _observe(self, scope: RunScope, event_type: str, payload: Mapping[str, Any] | None) -> None:
        try:
            with self.lock:
                self._histories.observe(scope, event_type, payload)
        except Exception:
            # Marks a part of the past as unknown.
            scope.state.is_unseen = True

    def _unknown_of(self, scope: RunScope) -> frozenset[str]:
        """Facts that a thread without its run does not know, so that no call slips through a condition about them."""
        if not scope.is_of_call:
            return frozenset()
        return _OF_RUN if self.core.settings.has_agent else _OF_RUN | _OF_AGENT

    def _detect(self, scope: RunScope, call: Call, before: Judged | None) -> list[Detection]:
        watch, usage = self.watch_of(scope), scope.usage
        detections_made: list[Detection | None] = []
        if before is not None:
            # The call already counted towards a loop before a person was asked.
            detections_made += [replace(one, is_new=False) for one in before.decision.detections if one.type == "LOOP_DETECTED"]
        elif watch.loop and call.input_hash is not None:
            detections_made.append(watch.loop.observe(call.tool_name, call.input_hash))
        detections_made.append(
            watch.budget.check(
                tool_calls=usage.tool_calls,
                total_tokens=usage.total_tokens,
                cost=usage.cost,
                seconds=time.monotonic() - usage.since,
            )
        )
        return [detection for detection in detections_made if detection is not None]

    def record_decision(self, scope: RunScope, call: Call, judged: Judged, approval_id: str | None = None) -> None:
        decision = judged.decision
        payload: dict[str, Any] = {
            "action": decision.action,
            "policyIds": decision.policy_ids,
            "policyVersions": dict(judged.verdict.policy_versions) or None,
            **named_of(call),
            "inputHash": decision.input_hash,
            "approvalId": approval_id,
            "reason": decision.reason,
            "detections": [detection.type for detection in decision.detections] or None,
            "failures": judged.failures or None,
            "revision": decision.revision,
            "policyAgeMs": None if judged.policy_age is None else round(judged.policy_age * 1_000),
        }
        # A blocked call has no TOOL_CALL event, so record its input here.
        if decision.action in ("BLOCK", "REQUIRE_APPROVAL"):
            payload["input"] = call.shown
            payload["inputSeals"] = call.input_seals
        present = {name: value for name, value in payload.items() if value is not None}
        self.core.record(scope, "POLICY_DECISION", f"{decision.action} {call.tool_name}", present)

    def refused(
        self,
        scope: RunScope,
        call: Call,
        judged: Judged,
        code: BlockCode,
        approval_id: str | None = None,
        decision_reason: str | None = None,
    ) -> ToolBlockedError:
        """Reports the issue. The caller raises the error."""
        decision = judged.decision
        signals = {"riskSignals": list(call.risk_signals)} if call.risk_signals else {}
        report = IssueReport(
            "TOOL_BLOCKED",
            policy_id=decision.policy_ids[0] if decision.policy_ids else None,
            payload={"toolName": call.tool_name, "reasonCode": code, **signals},
            evidence={"decision": "BLOCK", **({"approvalId": approval_id} if approval_id else {})},
        )
        # A caller that left or stopped is not a failure of the tool.
        if code not in ("aborted", "caller_gone"):
            self.trouble(scope, call.tool_name, report)
        return ToolBlockedError(
            code,
            call.tool_name,
            input_hash=decision.input_hash,
            policy_ids=decision.policy_ids,
            approval_id=approval_id,
            decision_reason=decision_reason,
            reason=decision.reason,
            policy_message=judged.verdict.policy_message,
        )

    def observe_loop(self, scope: RunScope, tool_name: str, arguments: object) -> None:
        """Counts a call that never reached its tool."""
        try:
            digest = input_hash(tool_name, {"arguments": arguments if isinstance(arguments, str) else repr(arguments)})
            with self.lock:
                loop = self.watch_of(scope).loop
                loop_detection = loop.observe(tool_name, digest) if loop else None
            if loop_detection is not None and loop_detection.is_new:
                payload = {"toolName": tool_name, "reasonCode": loop_detection.reason_code}
                self.issues.report(
                    scope, IssueReport(loop_detection.type, payload=payload, evidence={"decision": loop_detection.action})
                )
        except Exception:
            pass

    def trouble(self, scope: RunScope, tool_name: str, report: IssueReport) -> None:
        self.issues.report(scope, report)
        self.recoveries.troubled(agent_of(scope), tool_name, report)

    def _report_detection(self, scope: RunScope, call: Call, detection: Detection) -> None:
        if detection.is_new:
            payload = {"toolName": call.tool_name, "reasonCode": detection.reason_code}
            self.issues.report(scope, IssueReport(detection.type, payload=payload, evidence={"decision": detection.action}))


_has_tools = False


def expect_calls() -> None:
    """Called when a tool is decorated."""
    global _has_tools
    _has_tools = True


def is_on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _compile_policies(configuration: Configuration) -> None:
    """Compiles on the thread that loads the policies, whose stack is nearly empty, so that the first call need not do it."""
    for policy in configuration.policies:
        compiled(policy.condition)


def agent_of(scope: RunScope) -> str:
    return scope.agent_id or scope.agent_name


def is_approved(judged: Judged, before: Judged | None) -> bool:
    """Whether both decisions require the same approval."""
    return judged.decision.action == "REQUIRE_APPROVAL" and before is not None and judged.verdict.basis == before.verdict.basis


def is_notable(judged: Judged) -> bool:
    """Whether a decision that lets a call run is recorded."""
    is_old = judged.policy_age is not None
    return judged.decision.action == "WARN" or is_old or bool(judged.decision.policy_ids or judged.failures)
