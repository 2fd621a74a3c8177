"""Records one model call of a framework as an LLM_CALL in a span of its own. Nothing here raises into the host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import tacho_sdk as tacho

from ..client import Tacho
from ..core import Core
from ..guarding.asked_calls import UNFINISHED, Broken, tool_calls_of
from ..recording.context import RunScope, Span
from ..recording.plain import read_safely
from ..recording.run import Outcome, Run, begin_scope, failure_of
from ..recording.usage_shapes import call_usage
from ..shared import shared
from .border import Bordered, safely

Read = Callable[[], dict[str, Any]]
_UNREADABLE = "[unreadable]"


class ModelCall(Bordered):
    """
    `request` reads `model`, `provider` and `messages` now, because the host may change them later. `parent`: the run, if it is
    not the current one. Outside a run, the call becomes a run of its own.
    """

    def __init__(self, client: Tacho | None, request: Read, parent: RunScope | None = None) -> None:
        self._tacho = client or tacho.client()
        self._core = self._tacho.core
        self._process = self._core.process
        scope = parent or self._core.current_scope()
        self._own: Run | None = None
        if scope is None:
            scope = begin_scope(self._core, {})
            self._own = Run(self._core, scope)
        self._scope = scope
        self._span = Span(self._core.ids.span(), self._core.span_of(scope).span_id)
        self._request = read_safely(request, {"messages": _UNREADABLE})
        self._begun = time.monotonic()
        # When the host last read. An abandoned stream is closed later, perhaps after its run.
        self._touched = time.time()
        self._first: float | None = None
        self._is_ended = False
        self._outer: ModelCall | None = None
        self._below: dict[str, Any] = {}

    def enter(self) -> None:
        """Marks this call as current, so that a recorded client that the framework calls for it does not record it again."""
        self._outer = _entered.get()
        _entered.set(self)

    def enter_run(self) -> None:
        """The same for a framework that reports the call in another context."""
        calls = _in_runs.setdefault(self._scope, []) if self._own is None else _outside
        calls[:] = [call for call in calls if not call._is_ended][-_IN_RUN_MAX:]
        calls.append(self)

    def _waits(self, core: Core) -> bool:
        """
        Whether this call still waits for its answer. Later, while the host reads the stream, it may make calls of its own.
        """
        return self._core.lineage is core.lineage and not self._is_ended and self._first is None

    def add_below(self, result: Mapping[str, Any]) -> None:
        """Adds the client's answer, which may have what the framework does not pass on."""
        self._below = {name: result[name] for name in _PASSED_ON if result.get(name) is not None}

    def below_failed(self, error: BaseException | None, result: Read) -> None:
        """The client's call failed, or the host left it (`error` is None). Most frameworks report that themselves."""

    def token(self) -> None:
        """A piece of the answer has arrived."""
        self._touched = time.time()
        if self._first is None:
            self._first = time.monotonic()

    def note(self, stream: Stream) -> None:
        note_calls(self._core, stream, None if self._own else self._scope)

    def opened(self, leave: Callable[[], object]) -> None:
        """Notes an open stream. If its run ends first, `leave` records what the host has read, before the run's outcome."""
        if self._is_ended:
            return
        streams = self._scope.open_streams
        streams[self] = leave
        if len(streams) > _STREAMS_MAX:
            del streams[next(iter(streams))]

    def end(self, result: Read, is_open: bool = False) -> None:
        """`is_open`: a stream ended, but the end of the answer was not reported."""
        self._record("COMPLETED", result, {}, is_open)

    def fail(self, error: BaseException, result: Read = dict) -> None:
        """`result`: what arrived before. A cancelled call ends as aborted."""
        if isinstance(error, (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)):
            self.abort(result)
        else:
            self._record("FAILED", result, {"error": error}, True)

    def abort(self, result: Read) -> None:
        """The host stopped reading the stream."""
        self._record("CANCELLED", result, {"finishReason": "aborted"})

    def _record(self, status: Outcome, read: Read, more: dict[str, Any], is_open: bool = False) -> None:
        # A forked child has a copy of the call: its parent records it.
        if self._is_ended or self._process is not self._core.process:
            return
        self._is_ended = True
        self._scope.open_streams.pop(self, None)
        if _entered.get() is self:
            _entered.set(self._outer)
        result: dict[str, Any] = read_safely(read, {"output": _UNREADABLE})
        below = self._below
        if isinstance(result.get("usage"), dict):
            # A framework may drop parts, such as audio tokens.
            result = {**result, "usage": {**(below.get("usage") or {}), **result["usage"]}}
        result = {**result, **{name: one for name, one in below.items() if result.get(name) is None}}
        model = result.get("model") or self._request.get("model")
        latency = _milliseconds(time.monotonic() - self._begun)
        # `more` has the latency if the framework reports the call only after its end.
        payload: dict[str, Any] = {"latency": latency, **self._request, **result, "model": model}
        payload.update(more)
        # The run ended before this call, and nobody closed its stream.
        payload["outlivedRun"] = (self._scope.is_ended and status != "CANCELLED") or None
        reason = payload.get("finishReason") or (UNFINISHED if is_open else None)
        asked = (payload.get("output"), reason, None if self._own else self._scope)
        payload["toolCalls"] = safely(self._tacho, lambda: tool_calls_of(self._core, *asked) or None, None)
        if self._first is not None:
            payload["timeToFirstOutput"] = _milliseconds(self._first - self._begun)
        present = {name: value for name, value in payload.items() if value is not None}
        # The call's event must come before the run's outcome.
        at = self._touched - 0.001 if status == "CANCELLED" and self._scope.is_ended else None
        self._core.record(self._scope, "LLM_CALL", str(model or "model call"), present, at=at, span=self._span)
        if self._own is not None:
            self._own.end(status, failure_of(status, more.get("error")))


_entered: ContextVar[ModelCall | None] = shared("model_call", lambda: ContextVar("tacho_model_call", default=None))
_in_runs: WeakKeyDictionary[RunScope, list[ModelCall]] = shared("calls_in_runs", lambda: WeakKeyDictionary())
_outside: list[ModelCall] = shared("calls_outside_runs", list[ModelCall])
"""Each is a run of its own."""
_IN_RUN_MAX = 100
_STREAMS_MAX = 1_000
_PASSED_ON = ("usage", "finishReason", "cost")


class Stream(Protocol):
    is_complete: bool
    news: list[tuple[object, bool]]
    """Calls since the last look: the id, and whether the provider reported the call as complete."""

    def result(self) -> dict[str, Any]: ...


def note_calls(core: Core, stream: Stream, scope: RunScope | None) -> None:
    """Notes the calls of a stream. A host may run them before it ends, so they count as cut until its answer is complete."""
    while stream.news:
        call_id, is_whole = stream.news.pop(0)
        core.asked_calls.note(scope, call_id, None if is_whole else Broken("cut", None))
    if stream.is_complete:
        result = stream.result()
        tool_calls_of(core, result.get("output"), result.get("finishReason"), scope)


class ClientCall(Protocol):
    _tacho: Tacho

    def token(self) -> None: ...

    def note(self, stream: Stream) -> None: ...

    def opened(self, leave: Callable[[], object]) -> None: ...

    def end(self, result: Read, is_open: bool = False) -> None: ...

    def fail(self, error: BaseException, result: Read = dict) -> None: ...

    def abort(self, result: Read) -> None: ...


class NotedCall(Bordered):
    """A client call whose framework records it. Its answer shows which tool calls were cut."""

    def __init__(self, client: Tacho | None, around: ModelCall | None) -> None:
        self._tacho = client or tacho.client()
        self._around = around
        self._is_ended = False

    @property
    def _scope(self) -> RunScope | None:
        around = self._around
        return self._tacho.core.current_scope() if around is None else None if around._own else around._scope

    def token(self) -> None: ...

    def note(self, stream: Stream) -> None:
        note_calls(self._tacho.core, stream, self._scope)

    def opened(self, leave: Callable[[], object]) -> None: ...

    def end(self, result: Read, is_open: bool = False) -> None:
        if not self._is_ended:
            self._is_ended = True
            safely(self._tacho, lambda: self._note(result(), is_open), None)

    def fail(self, error: BaseException, result: Read = dict) -> None:
        self.end(result, True)
        if self._around is not None:
            self._around.below_failed(error, result)

    def abort(self, result: Read) -> None:
        self.end(result, True)
        if self._around is not None:
            self._around.below_failed(None, result)

    def _note(self, result: Mapping[str, Any], is_open: bool) -> None:
        reason = result.get("finishReason") or (UNFINISHED if is_open else None)
        tool_calls_of(self._tacho.core, result.get("output"), reason, self._scope)
        if self._around is not None:
            self._around.add_below(result)


def client_call(client: Tacho | None, request: Read, is_noted: bool = False) -> ClientCall:
    """A call of a client. Records nothing itself if a framework records the call. `is_noted`: a framework always does."""
    noted: ClientCall = NotedCall(client, None)
    return safely(client, lambda: _client_call(client, request, is_noted), noted)


def _client_call(client: Tacho | None, request: Read, is_noted: bool) -> ClientCall:
    core, entered = (client or tacho.client()).core, _entered.get()
    around = entered if entered is not None and entered._waits(core) else None
    scope = core.current_scope()
    calls = _outside if scope is None else _in_runs.get(scope)
    if around is None and calls:
        asked = read_safely(request, dict[str, Any]())
        waiting = [call for call in calls if call._waits(core) and call._request.get("model") == asked.get("model")]
        if scope is None:
            waiting = [call for call in waiting if _last_of(call._request) == _last_of(asked)]
        around = waiting[0] if waiting else None
    return ModelCall(client, request) if around is None and not is_noted else NotedCall(client, around)


def _last_of(request: Mapping[str, Any]) -> object:
    messages = request.get("messages")
    return messages[-1].get("content") if isinstance(messages, list) and messages else None


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1_000))


def nonzero_usage(usage_values: object) -> dict[str, int | None] | None:
    """The usage; None if it is all zero, because frameworks start at zero."""
    usage = call_usage(usage_values)
    return usage if usage is not None and any(usage.values()) else None
