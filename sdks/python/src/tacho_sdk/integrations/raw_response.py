"""Records answers that the host reads itself: `with_raw_response` and `with_streaming_response`."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Protocol

from ..recording.plain import read_safely
from .border import Bordered
from .messages import fields_of
from .model_call import ClientCall

# Larger answers are not recorded in full.
_BYTES_MAX = 8 * 1_048_576


class Collector(Protocol):
    """Collects the pieces of a stream."""

    is_complete: bool
    news: list[tuple[object, bool]]
    """See `Stream`."""

    def add(self, piece: Mapping[str, Any]) -> bool:
        """True if the piece holds output."""

    def result(self) -> dict[str, Any]: ...


def record_raw(
    call: ClientCall, answer: Any, result: Callable[[Mapping[str, Any]], dict[str, Any]], collector: Collector
) -> None:
    """Reads along while the host reads the body of the response."""
    response = answer.http_response
    body = _Body(call, response.headers.get("content-type", ""), result, collector)
    content = read_safely(lambda: response.content, None)
    if content is not None:
        body.add(content)
        body.end()
        return
    response.iter_bytes = _tapped(body, response.iter_bytes)
    response.aiter_bytes = _tapped_async(body, response.aiter_bytes)
    call.opened(body.stop)
    end_when_closed(answer, body.stop)


def end_when_closed(answer: Any, stop: Callable[[], None]) -> None:
    """Ends the call when the host closes the stream, because it may keep the object for a long time after that."""
    close: Any = getattr(answer, "close", None)
    if inspect.iscoroutinefunction(close):

        async def aclosed(*args: Any, **named: Any) -> Any:
            stop()
            return await close(*args, **named)

        answer.close = aclosed
    elif callable(close):

        def closed(*args: Any, **named: Any) -> Any:
            stop()
            return close(*args, **named)

        answer.close = closed


def error_in(piece: Any) -> RuntimeError | None:
    read = fields_of(piece)
    return RuntimeError(str(read.get("message") or "error")) if read.get("type") == "error" else None


class _Body(Bordered):
    def __init__(
        self,
        call: ClientCall,
        kind: str,
        result: Callable[[Mapping[str, Any]], dict[str, Any]],
        collector: Collector,
    ) -> None:
        self._call = call
        self._tacho = call._tacho
        self._is_stream = "event-stream" in kind
        self._result = result
        self._collector = collector
        self._bytes = bytearray()
        self._error: RuntimeError | None = None
        """An error inside the stream. The client that reads it raises its own error, and leaves the stream."""

    def add(self, piece: bytes) -> None:
        if len(self._bytes) + len(piece) <= _BYTES_MAX:
            self._bytes += piece

    def end(self) -> None:
        result = read_safely(self._read, None)
        is_open = self._is_stream and not self._collector.is_complete
        if self._error is not None:
            self._call.fail(self._error, lambda: result or {})
            return
        self._call.end(lambda: result or {"output": "[unreadable]"}, is_open)

    def stop(self) -> None:
        """The host reads no further."""
        result = read_safely(self._read, None)
        if self._error is not None:
            self._call.fail(self._error, lambda: result or {})
        elif result is None or (self._is_stream and not self._collector.is_complete):
            self._call.abort(lambda: result or {})
        else:
            self._call.end(lambda: result)

    def fail(self, error: BaseException) -> None:
        if isinstance(error, GeneratorExit):
            self.stop()
        else:
            self._call.fail(error, self._read)

    def _read(self) -> dict[str, Any]:
        text = self._bytes.decode(errors="replace")
        if not self._is_stream:
            return self._result(fields_of(json.loads(text)))
        self._bytes.clear()
        for line in text.splitlines():
            if line.startswith("data:"):
                piece = read_safely(lambda line=line: json.loads(line[5:]), None)  # type: ignore[misc]
                read_safely(lambda piece=piece: self._collector.add(fields_of(piece)), False)  # type: ignore[misc]
                self._error = self._error or read_safely(lambda piece=piece: error_in(piece), None)  # type: ignore[misc]
        return self._collector.result()


def _tapped(body: _Body, original: Callable[..., Iterator[bytes]]) -> Callable[..., Iterator[bytes]]:
    def iter_bytes(*args: Any, **named: Any) -> Iterator[bytes]:
        try:
            for piece in original(*args, **named):
                body.add(piece)
                yield piece
        except BaseException as error:
            body.fail(error)
            raise
        body.end()

    return iter_bytes


def _tapped_async(body: _Body, original: Callable[..., AsyncIterator[bytes]]) -> Callable[..., AsyncIterator[bytes]]:
    async def aiter_bytes(*args: Any, **named: Any) -> AsyncIterator[bytes]:
        try:
            async for piece in original(*args, **named):
                body.add(piece)
                yield piece
        except BaseException as error:
            body.fail(error)
            raise
        body.end()

    return aiter_bytes
