"""
One guarded call: one object from its input to its result. Its whole life, from the words of the model (`asked_calls`):

  asked --cut, unreadable, unknown tool, arguments that do not fit, declined--> never ran
    \\--> judged --BLOCK--> refused
           |   \\--> held --rejected, expired--> refused
           |          |  \\--its caller left (`leaving_caller`)--> withdrawn
           |          v approved
           \\-----> running --> returned, failed, cancelled; without an end, it did not report back

In detail:
  taken --policies, detectors--> ALLOW, WARN: admitted ------------------------> started --> succeeded, failed, paused
                            \\--> REQUIRE_APPROVAL --APPROVED, claimed, decided again-->/
                            |      ^      |  \\--no decision yet--> pending     |
                            |      +------|--another policy requires one------+
                            |             \\--everything else--> refused
                            \\--> BLOCK --------------------------------> refused

The input is taken once, as one value: policies judge it, it is hashed, shown to people and recorded, and the tool runs only
with it. An admitted call counts in budgets. Its start is recorded before the tool runs.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ..core import Core
from ..delivery.issue_records import IssueReport
from ..delivery.transport import StopSignal
from ..exact import exact_text
from ..inner_class import inner_class
from ..recording.context import RunScope, Span, current_of
from ..recording.plain import read_safely
from ..recording.run import Run, WithinBlock, begin_scope, failure_of, is_pending, outcome_of
from .approving import Approving
from .asked_calls import record_never_ran
from .blocked import BlockCode, ToolBlockedError
from .guard import Guard, agent_of, is_approved, is_notable
from .in_thread import in_thread
from .json_form import is_same, shown
from .judged import Judged, facts_of, form_of, reason_code_of, take
from .leaving_caller import LeaveReason, LeavingCaller
from .rules import Authorization, CallDecision, Rules
from .taped import decided_elsewhere, refuse_elsewhere, taped


@inner_class
class Request:
    """The call that is to run."""

    tool_name: str
    read: Callable[[], object]
    """Reads the input: when the call is decided, and again immediately before the tool runs."""
    act: Callable[[], Any]
    risk_signals: Sequence[str]
    rules: Rules
    stop: StopSignal | None = None
    pauses: tuple[type[BaseException], ...] = ()
    """Exceptions that are no failures: the tool waits for something and runs again later."""
    key: str | None = None
    """The caller's own key of the call."""
    tool_call_id: str | None = None
    """The model's id of the call; its key, if it has no other."""
    args: Sequence[Any] = ()
    """Arguments with which the tool is called again after a handover."""
    named: Mapping[str, Any] = field(default_factory=dict)


def call_tool(guard: Guard, request: Request) -> Any:
    """
    Runs the tool if it may run, and records the result. If the tool returns an awaitable, so does this. Raises
    ToolBlockedError if the call may not run; otherwise whatever the tool raises.
    """
    _refuse_if_cut(guard, request)
    around = _Around(guard.core)
    try:
        with around.within():
            guard.prepare(request.rules)
            call = _GuardedCall(guard, around, request)
            if call.must_ask():
                call.ask()
            call.start()
            output = call.act()
            if inspect.isawaitable(output):
                return _awaited(call, around, output)
            call.succeeded(output)
    except BaseException as error:
        around.end(error)
        raise
    around.end(None)
    return output


async def acall_tool(guard: Guard, request: Request) -> Any:
    """The same for asyncio. If the caller is cancelled while it waits for approval, the wait ends."""
    _refuse_if_cut(guard, request)
    around = _Around(guard.core)
    try:
        with around.within():
            await guard.aprepare(request.rules)
            call = _GuardedCall(guard, around, request)
            if call.must_ask():
                await call.wait_for_person()
            call.start()
            output = call.act()
            if inspect.isawaitable(output):
                output = await call.wait(output)
            call.succeeded(output)
    except BaseException as error:
        around.end(error)
        raise
    around.end(None)
    return output


def decide_call(
    guard: Guard, tool_name: str, read: Callable[[], object], risk_signals: Sequence[str], rules: Rules
) -> CallDecision:
    """Decides and records, without running anything. Outside a run, a decision that is recorded becomes a run of its own."""
    around = _Around(guard.core)
    with around.within():
        call = take(guard.core.hash_input, _name(tool_name), read(), tuple(risk_signals))
        judged = guard.decide(around.scope, call, rules)
        decision = decided_elsewhere(guard.core, around.scope, call, judged.decision)
    around.end_if_recorded(judged)
    return decision


def authorize_call(guard: Guard, request: Request) -> Authorization:
    """
    Decides, records, and asks a person if a policy requires that. Runs nothing, but the call counts as one. Raises
    ToolBlockedError if the call may not run.
    """
    around = _Around(guard.core)
    try:
        with around.within():
            guard.prepare(request.rules)
            call = _GuardedCall(guard, around, request)
            judged = call.judged
            if call.must_ask():
                call.ask()
            authorization = call.authorize(judged)
    except BaseException as error:
        around.end(error)
        raise
    around.end_if_recorded(judged)
    return authorization


async def aauthorize_call(guard: Guard, request: Request) -> Authorization:
    """The same for asyncio. If the caller is cancelled while it waits for approval, the wait ends."""
    around = _Around(guard.core)
    try:
        with around.within():
            await guard.aprepare(request.rules)
            call = _GuardedCall(guard, around, request)
            judged = call.judged
            if call.must_ask():
                await call.wait_for_person()
            authorization = call.authorize(judged)
    except BaseException as error:
        around.end(error)
        raise
    around.end_if_recorded(judged)
    return authorization


async def _awaited(call: _GuardedCall, around: _Around, output: Any) -> Any:
    try:
        with around.within():
            output = await call.wait(output)
            call.succeeded(output)
    except BaseException as error:
        around.end(error)
        raise
    around.end(None)
    return output


# Pauses of LangGraph and Pydantic AI for a person. Their other pauses wait for a program.
_OF_A_PERSON = {"GraphInterrupt", "NodeInterrupt", "ApprovalRequired"}


class _Around:
    """The run around a call, the current one or one of its own, and the call's span in it."""

    def __init__(self, core: Core) -> None:
        current = current_of(core)
        self._core = core
        self._is_own = current is None
        self.scope: RunScope = begin_scope(core, {}) if current is None else current.scope
        self.continues = current.continues if current else None
        if current is None:
            self.scope.is_of_call = True
        self._run = Run(core, self.scope)
        self._span = Span(core.ids.span(), core.span_of(self.scope).span_id)

    def within(self) -> WithinBlock:
        return WithinBlock(self._run, self._span)

    def end(self, error: BaseException | None) -> None:
        if self._is_own and is_pending(error):
            self._run._hand_over()
        elif self._is_own:
            status = outcome_of(error)
            self._run.end(status, failure_of(status, error))

    def end_if_recorded(self, judged: Judged) -> None:
        """Ends the run if the decision is recorded: a decision without an event makes no run."""
        if judged.decision.action != "ALLOW" or is_notable(judged):
            self.end(None)
        elif self._is_own:
            self._core.open_runs.remove(self.scope)


class _GuardedCall:
    def __init__(self, guard: Guard, around: _Around, request: Request) -> None:
        scope = around.scope
        self._guard = guard
        self._scope = scope
        self._request = request
        call_id = exact_text(request.tool_call_id) or None
        guard.core.asked_calls.goes_on(guard.core, call_id)
        signals = tuple(request.risk_signals)
        self._call = take(guard.core.hash_input, _name(request.tool_name), request.read(), signals, call_id)
        self._caller: LeavingCaller | None = None
        self._start_id: str | None = None
        self._started = 0.0
        self._approving = Approving(guard, scope, self._call, request, around.continues)
        self._judged = guard.judge(scope, self._call, request.rules, admits=True)

    @property
    def _approval_id(self) -> str | None:
        return self._approving.approval_id

    @property
    def judged(self) -> Judged:
        return self._judged

    def must_ask(self) -> bool:
        """Whether a person must approve the call. Raises ToolBlockedError for BLOCK."""
        action = self._judged.decision.action
        if action == "BLOCK":
            raise self._blocked(self._judged)
        if action != "REQUIRE_APPROVAL" and is_notable(self._judged):
            self._guard.record_decision(self._scope, self._call, self._judged)
        return action == "REQUIRE_APPROVAL"

    def ask(self) -> None:
        """Waits for a person. Raises ToolBlockedError unless the call may still run after that."""
        self._wait(self._begin_wait())

    async def wait_for_person(self) -> None:
        """The same for asyncio."""
        caller = self._begin_wait()
        try:
            await in_thread(lambda: self._wait(caller))
        except BaseException as error:
            caller.leave(_reason_of(error))
            raise

    def _begin_wait(self) -> LeavingCaller:
        self._caller = LeavingCaller(self._guard.core.leaving_callers, self._scope, self._request.stop)
        return self._caller

    def _wait(self, caller: LeavingCaller) -> None:
        try:
            self._ask(caller)
        except BaseException as error:
            if not isinstance(error, Exception):
                caller.leave(_reason_of(error))
            caller.close()
            raise

    def _ask(self, caller: LeavingCaller) -> None:
        guard, scope, call, judged = self._guard, self._scope, self._call, self._judged
        digest = call.input_hash
        if digest is None:
            guard.record_decision(scope, call, judged)
            raise self._refused(judged, "input_not_json")
        before: Judged | None = None
        while before is None or not is_approved(self._judged, before):
            before = self._judged
            self._approving.approve(before, digest, caller)
            # The person decided under earlier policies. A newer BLOCK holds, and another policy asks for its own approval.
            self._judged = guard.judge(scope, call, self._request.rules, admits=True, before=before)
            if self._judged.decision.action == "BLOCK":
                raise self._blocked(self._judged)
            if self._judged.decision.action != "REQUIRE_APPROVAL":
                return

    def authorize(self, judged: Judged) -> Authorization:
        """`judged`: the decision before a person was asked. Raises ToolBlockedError if the input has changed."""
        refuse_elsewhere(self._guard.core, self._scope, self._call)
        self._refuse_if_changed()
        self._refuse_if_left()
        self._scope.usage.authorize(self._call.tool_name)
        return Authorization(**vars(judged.decision), approval_id=self._approval_id)

    def start(self) -> None:
        """Records the start. Raises ToolBlockedError if the input has changed."""
        core, call = self._guard.core, self._call
        self._refuse_if_changed()
        self._refuse_if_left()
        facts = facts_of(call, self._approval_id)
        self._start_id = core.record(self._scope, "TOOL_START", call.tool_name, facts)
        # The tool may end the process before the next delivery.
        core.sender.flush_soon()
        self._started = time.monotonic()

    def act(self) -> Any:
        try:
            output = taped(self._guard.core, self._scope, self._call, self._request.act)
            if inspect.isgenerator(output) or inspect.isasyncgen(output):
                raise TypeError(f"{self._call.tool_name} returned a generator, whose body runs after the call: return a list.")
        except BaseException as error:
            self._failed(error)
            raise
        return output

    async def wait(self, output: Any) -> Any:
        """Awaits what the tool returned: until then, the call has not succeeded."""
        try:
            while inspect.isawaitable(output):
                output = await output
        except BaseException as error:
            self._failed(error)
            raise
        return output

    def succeeded(self, output: object) -> None:
        guard, scope, tool_name = self._guard, self._scope, self._call.tool_name
        event_id = self._record({"outcome": "returned", "output": output})
        for report in guard.recoveries.recovered(agent_of(scope), tool_name):
            recovery = IssueReport(**{**vars(report), "event_id": event_id, "record_kind": "RECOVERY"})
            guard.issues.report(scope, recovery)

    def _failed(self, error: BaseException) -> None:
        """Records the tool's error. Never raises, because an error that cannot be read must not replace it."""
        try:
            if issubclass(type(error), self._request.pauses):
                self._record({"paused": True})
                if type(error).__name__ in _OF_A_PERSON:
                    self._guard.core.asked_calls.waits(self._scope, self._call.tool_name, self._call.tool_call_id)
                return
            if outcome_of(error) == "CANCELLED":
                # The caller gave up. The tool did not fail.
                self._record({"outcome": "cancelled"})
                return
            tool_name = self._call.tool_name
            event_id = self._record({"outcome": "failed", "error": error})
            payload = {"toolName": tool_name, "reasonCode": reason_code_of(error)}
            self._guard.trouble(self._scope, tool_name, IssueReport("TOOL_FAILED", payload=payload, event_id=event_id))
        except BaseException:
            pass

    def _record(self, result: dict[str, object]) -> str | None:
        latency = round((time.monotonic() - self._started) * 1_000)
        facts = {**facts_of(self._call, self._approval_id), "latency": latency, **result}
        if self._start_id is not None:
            facts["startEventId"] = self._start_id
        return self._guard.core.record(self._scope, "TOOL_CALL", self._call.tool_name, facts, is_counted=True)

    def _refuse_if_changed(self) -> None:
        if not is_same(form_of(self._request.read()), self._call.form):
            raise self._refused(self._judged, "input_changed")

    def _refuse_if_left(self) -> None:
        if self._caller is not None and not self._caller.close():
            raise self._refused(self._judged, "caller_gone")

    def _blocked(self, judged: Judged) -> ToolBlockedError:
        self._guard.record_decision(self._scope, self._call, judged, self._approval_id)
        return self._refused(judged, judged.verdict.cause or "policy")

    def _refused(self, judged: Judged, code: BlockCode, decision_reason: str | None = None) -> ToolBlockedError:
        return self._guard.refused(self._scope, self._call, judged, code, self._approval_id, decision_reason)


def _refuse_if_cut(guard: Guard, request: Request) -> None:
    """Frameworks repair arguments whose end is missing, so the tool would get something else than the model meant."""
    broken = guard.core.asked_calls.broken(guard.core, request.tool_call_id)
    if broken is not None:
        error = ToolBlockedError("call_cut", _name(request.tool_name))
        shown_arguments = read_safely(lambda: shown(form_of(request.read())), None)
        record_never_ran(guard, error.tool_name, broken.code, error.model_text, shown_arguments, request.tool_call_id)
        raise error


def _reason_of(error: BaseException) -> LeaveReason:
    return "process_ended" if isinstance(error, SystemExit) else "cancelled"


def _name(raw_name: str) -> str:
    text = exact_text(raw_name)
    return raw_name if text is None else text
