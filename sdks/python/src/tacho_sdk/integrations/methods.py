"""Records methods of a model client: the answers, the streams and the errors stay the client's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..client import Tacho
from ..recording.plain import read_safely
from .border import safely, unbreakable
from .messages import fields_of
from .model_call import ClientCall, client_call
from .raw_response import Collector, end_when_closed, error_in, record_raw

C = TypeVar("C")


@dataclass(frozen=True)
class Method:
    path: str
    request: Callable[[dict[str, Any]], dict[str, Any]]
    """Reads the named arguments: `model`, `provider`, `messages`."""
    result: Callable[[Mapping[str, Any]], dict[str, Any]]
    """Reads the answer: `model`, `usage`, `output`, `finishReason`."""
    collector: Callable[[], Collector]
    is_managed: bool = False
    """The method returns a context manager, which sends the request when it is entered."""


def record_methods(client: C, tacho: Tacho | None, methods: list[Method], is_noted: bool = False) -> C:
    """Returns the same client. Skips methods that it lacks. `is_noted`: a framework records the client's calls."""
    for method in methods:
        *path, name = method.path.split(".")
        holder: Any = client
        for path_part in path:
            holder = getattr(holder, path_part, None)
        original = getattr(holder, name, None)
        mark = getattr(original, "__tacho__", None)
        if callable(original) and (mark is None or (mark == "noted" and not is_noted)):
            recorded = _recorded(original, tacho, method, is_noted)
            recorded.__tacho__ = "noted" if is_noted else "recorded"
            setattr(holder, name, recorded)
    return client


def _recorded(original: Any, tacho: Tacho | None, method: Method, is_noted: bool) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **named: Any) -> Any:
        def begin() -> ClientCall:
            return client_call(tacho, lambda: method.request(named), is_noted)

        if method.is_managed:
            manager = original(*args, **named)
            _managed(tacho, manager, begin, method)
            return manager
        recorded = begin()
        try:
            answer = original(*args, **named)
        except BaseException as error:
            recorded.fail(error)
            raise
        if inspect.isawaitable(answer):
            return _awaited(recorded, method, answer)
        _received(recorded, method, answer)
        return answer

    return call


@unbreakable
def _managed(tacho: Tacho | None, manager: Any, begin: Callable[[], ClientCall], method: Method) -> None:
    name = next((name for name in vars(manager) if name.endswith("__api_request")), None)
    request = None if name is None else vars(manager)[name]
    if inspect.isawaitable(request):

        async def arequest() -> Any:
            return await _awaited(begin(), method, request)

        setattr(manager, str(name), arequest())
    elif callable(request):

        def send() -> Any:
            recorded = begin()
            try:
                answer = request()
            except BaseException as error:
                recorded.fail(error)
                raise
            _received(recorded, method, answer)
            return answer

        setattr(manager, str(name), send)


async def _awaited(call: ClientCall, method: Method, answer: Awaitable[Any]) -> Any:
    try:
        received = await answer
    except BaseException as error:
        call.fail(error)
        raise
    _received(call, method, received)
    return received


@unbreakable
def _received(call: ClientCall, method: Method, answer: Any) -> None:
    """A stream is recorded at its end; it stays the host's own object, with another iterator inside."""
    iterator: Any = getattr(answer, "_iterator", None)
    collector = method.collector()
    if hasattr(answer, "http_response"):
        safely(call._tacho, lambda: record_raw(call, answer, method.result, collector), None)
    elif hasattr(iterator, "__anext__") or hasattr(iterator, "__next__"):
        tap = _tap_async if hasattr(iterator, "__anext__") else _tap
        answer._iterator = tap(call, collector, iterator)
        call.opened(lambda: _ended(call, collector, GeneratorExit()))
        end_when_closed(answer, lambda: _ended(call, collector, GeneratorExit()))
    else:
        call.end(lambda: method.result(fields_of(answer)))


def _tap(call: ClientCall, collector: Collector, pieces: Iterator[Any]) -> Iterator[Any]:
    try:
        for piece in pieces:
            _collect(call, collector, piece)
            yield piece
    except BaseException as error:
        _ended(call, collector, error)
        raise
    _ended(call, collector, None)


async def _tap_async(call: ClientCall, collector: Collector, pieces: AsyncIterator[Any]) -> AsyncIterator[Any]:
    try:
        async for piece in pieces:
            _collect(call, collector, piece)
            yield piece
    except BaseException as error:
        _ended(call, collector, error)
        raise
    _ended(call, collector, None)


@unbreakable
def _collect(call: ClientCall, collector: Collector, piece: Any) -> None:
    is_known = collector.is_complete
    if read_safely(lambda: collector.add(fields_of(piece)), False):
        call.token()
    error = read_safely(lambda: error_in(piece), None)
    if error is not None:
        call.fail(error, collector.result)
    if collector.news or (collector.is_complete and not is_known):
        call.note(collector)


@unbreakable
def _ended(call: ClientCall, collector: Collector, error: BaseException | None) -> None:
    # Hosts often stop after the last piece, without reading to the end.
    if error is None or (collector.is_complete and isinstance(error, GeneratorExit)):
        call.end(collector.result, not collector.is_complete)
    else:
        call.fail(error, collector.result)
