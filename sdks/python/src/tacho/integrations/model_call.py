"""Records one model call of a framework as an LLM_CALL in a span of its own. Nothing here raises into the host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import tacho

from ..client import Tacho
from ..guarding.asked_calls import tool_calls_of
from ..recording.context import Context, RunScope, Span
from ..recording.plain import read_safely
from ..recording.run import Outcome, Run, begin_scope, failure_of
from ..recording.usage_shapes import call_usage

Read = Callable[[], dict[str, Any]]
_UNREADABLE = "[unreadable]"


class ModelCall:
    """
    `request` reads `model`, `provider` and `messages` now, because the host may change them later. `parent`: the run, if it is
    not the current one. Outside a run, the call becomes a run of its own.
    """

    def __init__(self, client: Tacho | None, request: Read, parent: RunScope | None = None) -> None:
        self._core = (client or tacho.client()).core
        scope = parent or self._core.current_scope()
        self._own: Run | None = None
        if scope is None:
            scope = begin_scope(self._core, {})
            self._own = Run(self._core, scope)
        self._scope = scope
        self._span = Span(self._core.ids.span(), self._core.span_of(scope).span_id)
        self._request = read_safely(request, {"messages": _UNREADABLE})
        self._begun = time.monotonic()
        self._first: float | None = None
        self._is_ended = False

    @property
    def context(self) -> Context:
        """For code that runs during the call."""
        return Context(self._core.lineage, self._scope, self._span, None)

    def token(self) -> None:
        """The first piece of the answer has arrived; later calls do nothing."""
        if self._first is None:
            self._first = time.monotonic()

    def end(self, result: Read) -> None:
        self._record("COMPLETED", result, {})

    def fail(self, error: BaseException, result: Read = dict) -> None:
        """`result` is what arrived before. A cancelled call ends as aborted."""
        if isinstance(error, (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)):
            self.abort(result)
        else:
            self._record("FAILED", result, {"error": error})

    def abort(self, result: Read) -> None:
        """The host stopped reading the stream."""
        self._record("CANCELLED", result, {"finishReason": "aborted"})

    def _record(self, status: Outcome, read: Read, more: dict[str, Any]) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        result = read_safely(read, {"output": _UNREADABLE})
        model = result.get("model") or self._request.get("model")
        latency = _milliseconds(time.monotonic() - self._begun)
        # A framework that tells of a call only afterwards gives its own times.
        payload: dict[str, Any] = {"latency": latency, **self._request, **result, "model": model}
        payload.update(more)
        output, reason = payload.get("output"), payload.get("finishReason")
        payload["toolCalls"] = read_safely(lambda: tool_calls_of(self._core, output, reason) or None, None)
        if self._first is not None:
            payload["timeToFirstOutput"] = _milliseconds(self._first - self._begun)
        present = {name: value for name, value in payload.items() if value is not None}
        self._core.record(self._scope, "LLM_CALL", str(model or "model call"), present, span=self._span)
        if self._own is not None:
            self._own.end(status, failure_of(status, more.get("error")))


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1_000))


def nonzero_usage(given: object) -> dict[str, int] | None:
    """Frameworks that start at zero say nothing with it."""
    usage = call_usage(given)
    return usage if usage is not None and any(usage.values()) else None
