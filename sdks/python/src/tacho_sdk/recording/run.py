"""Records an agent execution for the host."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from contextvars import Token
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..delivery.process_end import HowItEnds
from ..exact import class_name, exact_number, exact_text
from ..guarding.blocked import ToolBlockedError
from .block import Block
from .context import Context, RunScope, Span, enter
from .exception import exception_details
from .handle import handle_of
from .moment import Moment, unix_seconds
from .open_telemetry import Trace, active_trace
from .payload import Payload
from .plain import is_error, read_of_error, read_safely
from .reserve import release_after
from .scope import create_scope
from .score import Described, ScoreValue

if TYPE_CHECKING:
    from ..core import Core
    from ..guarding.asked_calls import Waiting

Outcome = Literal["COMPLETED", "FAILED", "CANCELLED"]
F = TypeVar("F", bound=Callable[..., Any])


class Run(Described):
    """
    One agent execution. No method raises or waits. Recording methods return the event's id; None if it was dropped.
    """

    def __init__(self, core: Core, scope: RunScope) -> None:
        """Created by `Tacho`."""
        self._core = core
        self._scope = scope

    @property
    def run_id(self) -> str:
        return self._scope.run_id

    @property
    def session_id(self) -> str | None:
        return self._scope.session_id

    @property
    def traceparent(self) -> str:
        """
        W3C Trace Context, for the header `traceparent` of your own requests: the active span of OpenTelemetry, or else the
        current span of this run, in the trace of the run. If the run has no trace, this begins one, which later events name.
        """
        trace = active_trace()
        if trace is None:
            scope, span_id = self._scope, self._span().span_id
            if scope.trace is None:
                scope.trace = Trace(self._core.ids.uuid().replace("-", ""), span_id, int(scope.is_sampled))
            trace = replace(scope.trace, span_id=span_id)
        return trace.traceparent

    def user_input(self, text: str, payload: Payload | None = None) -> str | None:
        """The user's message: `payload["text"]`."""
        return self._add("USER_INPUT", "user input", {"text": text}, payload)

    def step(self, label: str, payload: Payload | None = None) -> str | None:
        """A step of the agent: a plan, a thought, a hand-over."""
        return self.record("AGENT_STEP", label, payload)

    def llm_call(
        self,
        *,
        model: str | None = None,
        latency: float | None = None,
        cost: float | None = None,
        usage: Mapping[str, object] | None = None,
        messages: object = None,
        output: object = None,
        tool_calls: object = None,
        finish_reason: object = None,
        started_at: Moment | None = None,
        **more: object,
    ) -> str | None:
        """
        A completed model call. `latency` in milliseconds; `cost` in US dollars; `usage` has `promptTokens`, `completionTokens`
        and `totalTokens`; `tool_calls`: what the answer asked for, with `id`, `name` and `arguments`. `started_at`: when it
        began; without a `latency`, it ends now.
        """
        facts: dict[str, object] = {"model": model, "latency": latency, "cost": cost, "usage": usage}
        facts |= {"messages": messages, "output": output, "toolCalls": tool_calls, "finishReason": finish_reason, **more}
        return self._ended("LLM_CALL", exact_text(model) or "model call", _present(facts), started_at)

    def tool_call(
        self,
        tool_name: str,
        *,
        input: object = None,
        output: object = None,
        error: object = None,
        latency: float | None = None,
        input_hash: str | None = None,
        approval_id: str | None = None,
        tool_call_id: str | None = None,
        started_at: Moment | None = None,
        **more: object,
    ) -> str | None:
        """A completed tool call, with times as in `llm_call`. `tool_call_id`: the model's. `guard` records its own calls."""
        facts: dict[str, object] = {"toolName": tool_name, "input": input, "output": output, "error": error}
        facts |= {"latency": latency, "inputHash": input_hash, "approvalId": approval_id, "toolCallId": tool_call_id, **more}
        return self._ended("TOOL_CALL", tool_name, _present(facts), started_at)

    def error(self, error: object, payload: Payload | None = None) -> str | None:
        """An error: `message`, and `code` if the error has one."""
        label = class_name(error) if is_error(error) else "error"
        error_text = read_of_error(lambda: str.__str__(str(error)), "unreadable error")
        facts: dict[str, object] = {"message": error_text or label}  # An exception may have no message.
        code = read_of_error(lambda: getattr(error, "code", None), None)
        if issubclass(type(code), (str, int)):
            facts["code"] = code
        if is_error(error):
            facts["exception"] = exception_details(error)
        return self._add("ERROR", label, facts, payload)

    def record(
        self,
        event_type: str,
        label: str,
        payload: Payload | None = None,
        *,
        at: Moment | None = None,
        event_id: str | None = None,
    ) -> str | None:
        """
        Records any event. The type is cut to 50 characters, the label to 255. `at`: when it happened; default: now. With an
        `event_id` of your own (at most 160 characters, or the service rejects it), an event that is recorded twice counts once.
        """
        return self._core.record(self._scope, event_type, label, payload, at=at, event_id=event_id)

    def score(
        self,
        name: str,
        value: ScoreValue,
        comment: str | None = None,
        *,
        event_id: str | None = None,
        author: str | None = None,
        id: str | None = None,
    ) -> str | None:
        """
        Says how good this run is, or the step with this `event_id`. `value`: a number, True, False, or a category. The latest
        counts for each name, step and `author`. With an `id` of your own, a score that is recorded twice counts once.
        """
        return self._core.score(self._scope, name, value, comment, event_id, author, id)

    def annotate(self, **values: object) -> None:
        """Adds keys to the payload of every later event of this run, unless the payload has them already."""
        self._scope.annotations.update(values)

    def span(self, name: str, payload: Payload | None = None) -> SpanBlock:
        """
        A child span of the current one: a context manager and a decorator, sync and async. When it ends, it records an
        AGENT_STEP with its `latency` and the fields that `span.set(…)` added.
        """
        return SpanBlock(self, name, payload)

    def within(self) -> WithinBlock:
        """Makes this run the current one: a context manager, also for other threads. Records no outcome."""
        return WithinBlock(self)

    def to_handle(self) -> dict[str, Any]:
        """
        State with which another process can continue this run: pass it to `resume`. Plain JSON, the same in every SDK. It
        contains the arguments of calls that wait for a person, unmasked: store it with your conversations.
        """
        self._core.open_runs.remove(self._scope)
        for caller in self._core.leaving_callers.of(self._scope):
            caller.is_named = True
        return handle_of(self._core, self._scope)

    def end(self, status: Outcome = "COMPLETED", payload: Payload | None = None) -> str | None:
        """Records the outcome once; later calls do nothing."""
        if self._scope.is_ended:
            return None
        self._scope.is_ended = True
        self._core.open_runs.remove(self._scope)
        self._core.leaving_callers.leave("run_ended", self._scope)
        self._scope.leave_streams()
        if exact_text(status) not in ("COMPLETED", "FAILED", "CANCELLED"):
            self._core.diagnostics.report("warning", "invalid_call", "A run ends COMPLETED, FAILED or CANCELLED.")
        rate = self._core.settings.sample_rate
        facts = {**_fields(payload), **({"sampleRate": rate} if rate < 1 else {}), "status": status}
        return self.record("SESSION_OUTCOME", read_safely(lambda: str(status).lower(), "outcome"), facts)

    def _hand_over(self, waits: Waiting | None = None) -> None:
        """Another process, or a later call in this one, continues and ends the run."""
        self._core.open_runs.remove(self._scope)
        self._core.leaving_callers.leave("handed_over", self._scope)
        waits.record(self._core) if waits else self.leave()

    def leave(self) -> str | None:
        """Records that this process is done and another one ends the run, so that the service knows whether all events came."""
        return self._core.record(self._scope, "AGENT_STEP", "left the run", is_last=True)

    def _add(self, event_type: str, label: str, payload: dict[str, object], more: Payload | None = None) -> str | None:
        return self._core.record(self._scope, event_type, label, payload if more is None else {**payload, **_fields(more)})

    def _ended(self, event_type: str, label: str, payload: dict[str, object], started_at: object) -> str | None:
        """Records a call that has ended. Its event has the time of its end."""
        begun = None if started_at is None else read_safely(lambda: unix_seconds(started_at), math.nan)
        if begun is None or not math.isfinite(begun):
            return self._core.record(self._scope, event_type, label, payload)
        latency = exact_number(payload.setdefault("latency", max(0, round((time.time() - begun) * 1_000))))
        return self._core.record(self._scope, event_type, label, payload, at=begun + (latency or 0) / 1_000)

    def _span(self) -> Span:
        return self._core.span_of(self._scope)

    def _enter(self, span: Span) -> Token[Context | None]:
        return enter(self._core, self._scope, span)


def _fields(payload: object) -> dict[str, object]:
    """The fields that a host adds to a payload. Not a mapping, or one that raises: none."""
    return read_safely(lambda: dict(payload) if isinstance(payload, Mapping) else {}, {})


def _present(facts: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in facts.items() if value is not None}


class WithinBlock(Block):
    """Made by `Run.within`. `span`: default: the current one."""

    def __init__(self, run: Run, span: Span | None = None) -> None:
        super().__init__()
        self._run = run
        self._span = span

    def _copy(self) -> Block:
        return WithinBlock(self._run, self._span)

    def _begin(self) -> Run:
        return self._run

    def _enter(self) -> None:
        self._tokens.append(self._run._enter(self._span or self._run._span()))

    def _finish(self, _error: BaseException | None) -> None:
        pass

    def __enter__(self) -> Run:
        super().__enter__()
        return self._run

    async def __aenter__(self) -> Run:
        return self.__enter__()


class OpenSpan:
    """A span while it is open."""

    def __init__(self, span: Span) -> None:
        """Created by `Run.span`."""
        self._span = span
        self._begun = time.monotonic()
        self._fields: dict[str, object] = {}

    @property
    def span_id(self) -> str:
        return self._span.span_id

    def set(self, **fields: object) -> None:
        """Adds fields to the payload of the event that the span records when it ends. The latest value of a field counts."""
        self._fields.update(fields)


class SpanBlock(Block):
    """Made by `Run.span`."""

    def __init__(self, run: Run, name: str, payload: Payload | None) -> None:
        super().__init__()
        self._run = run
        self._name = name
        self._payload = payload
        self._open: list[OpenSpan] = []

    def _copy(self) -> Block:
        return SpanBlock(self._run, self._name, self._payload)

    def _begin(self) -> OpenSpan:
        span = OpenSpan(Span(self._run._core.ids.span(), self._run._span().span_id))
        self._open.append(span)
        return span

    def _enter(self) -> None:
        self._tokens.append(self._run._enter(self._open[-1]._span))

    def _finish(self, error: BaseException | None) -> None:
        span = self._open.pop()
        facts: dict[str, object] = {"latency": round((time.monotonic() - span._begun) * 1_000)}
        # The host closed a generator: that is no failure.
        if error is not None and not issubclass(type(error), GeneratorExit):
            facts["error"] = error
        payload = {**facts, **_fields(self._payload), **span._fields}
        self._run._core.record(self._run._scope, "AGENT_STEP", self._name, payload, span=span._span)

    def __enter__(self) -> OpenSpan:
        super().__enter__()
        return self._open[-1]

    async def __aenter__(self) -> OpenSpan:
        return self.__enter__()


class RunBlock(Block):
    """Made by `Tacho.run`: begins a run, makes it the current one, and records its outcome."""

    def __init__(self, core_of: Callable[[], Core], options: dict[str, Any]) -> None:
        """`core_of` is a function, because a decorator may be applied before the client is configured."""
        super().__init__()
        self._core_of = core_of
        self._options = options
        self._runs: list[Run] = []

    def _copy(self) -> Block:
        return RunBlock(self._core_of, self._options)

    def _begin(self) -> Run:
        core = self._core_of()
        run = Run(core, begin_scope(core, self._options))
        self._runs.append(run)
        return run

    def _enter(self) -> None:
        run = self._runs[-1]
        self._tokens.append(run._enter(run._scope.span))

    def _finish(self, error: BaseException | None) -> None:
        run = self._runs.pop()
        waits = run._core.asked_calls.waiting_in(run._scope) if error is None else None
        # The run ends where the call is continued.
        if waits or is_pending(error):
            run._hand_over(waits)
            return
        status = outcome_of(error)
        run.end(status, failure_of(status, error))

    def __enter__(self) -> Run:
        super().__enter__()
        return self._runs[-1]

    async def __aenter__(self) -> Run:
        return self.__enter__()


def is_pending(error: BaseException | None) -> bool:
    """Whether the error ended a call that waits for a person."""
    return issubclass(type(error), ToolBlockedError) and read_safely(lambda: error.pending is not None, False)  # type: ignore[union-attr]


def outcome_of(error: BaseException | None) -> Outcome:
    if issubclass(type(error), (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)):
        return "CANCELLED"
    is_exit = issubclass(type(error), SystemExit)
    is_normal_exit = is_exit and read_safely(lambda: bool(error.code in (None, 0)), False)  # type: ignore[union-attr]
    return "COMPLETED" if error is None or is_normal_exit else "FAILED"


def failure_of(status: Outcome, error: BaseException | None) -> dict[str, object]:
    """The outcome's fields about the exception. A cancelled task has no error, but shows where it was."""
    if error is None or status == "COMPLETED" or issubclass(type(error), GeneratorExit):
        return {}
    release_after(error)
    details: dict[str, object] = {"exception": exception_details(error)}
    return details if issubclass(type(error), asyncio.CancelledError) else {"error": error, **details}


def begin_scope(core: Core, options: Mapping[str, Any], has_block: bool = True) -> RunScope:
    """Begins a run. `has_block`: a block in this process ends it. Without a block, the run may have begun elsewhere."""
    scope = create_scope(core, options)
    scope.entered_at = time.time_ns() // 1_000_000 if has_block or options.get("run_id") is None else None
    core.open_runs.add(scope, has_block)
    core.on_run()
    return scope


def end_with_process(core: Core, scope: RunScope, how: HowItEnds) -> None:
    """Ends a run that its own code did not end."""
    if isinstance(how.cause, str):
        Run(core, scope).end("CANCELLED" if how.is_signal else "FAILED", {"error": how.cause})
        return
    status = outcome_of(how.cause)
    Run(core, scope).end(status, failure_of(status, how.cause))
