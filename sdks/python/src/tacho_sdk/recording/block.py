"""Runs functions, coroutines, generators and streamed responses inside a block, each in the block's own context."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable
from contextvars import Context as Contexts
from contextvars import Token, copy_context
from types import TracebackType
from typing import Any, TypeVar

from .context import CURRENT, Context

F = TypeVar("F", bound=Callable[..., Any])
# Responses whose body is sent after the function returned. By package and class: the attribute that has the body.
_STREAMED = {
    ("starlette", "StreamingResponse"): "body_iterator",
    ("sse_starlette", "EventSourceResponse"): "body_iterator",
    ("django", "StreamingHttpResponse"): "streaming_content",
    ("werkzeug", "Response"): "response",
}


class Block:
    """A context manager and decorator, for functions, coroutine functions and generator functions, sync and async."""

    def __init__(self) -> None:
        self._tokens: list[Token[Context | None]] = []

    def _copy(self) -> Block:
        raise NotImplementedError

    def _begin(self) -> Any:
        raise NotImplementedError

    def _enter(self) -> None:
        """Makes the block's run and span the current ones."""
        raise NotImplementedError

    def _finish(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def _called(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """The decorated function is called."""

    def _returned(self, output: object) -> None:
        """The decorated function returned."""

    def __enter__(self) -> Any:
        scope = self._begin()
        self._enter()
        return scope

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None) -> None:
        _leave(self._tokens)
        self._finish(error)

    async def __aenter__(self) -> Any:
        return self.__enter__()

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.__exit__(_kind, error, _trace)

    def __call__(self, function: F) -> F:
        body = body_of(function)

        def begin(*args: Any, **named: Any) -> Block:
            block = self._copy()
            block._called(function, args, named)
            return block

        wrapped: Any
        if inspect.isasyncgenfunction(body):

            def begin_async_steps(*args: Any, **named: Any) -> Any:
                block = begin(*args, **named)
                return block, block.__enter__, function(*args, **named)

            wrapped = _async_generator_function(begin_async_steps)
        elif inspect.iscoroutinefunction(body):

            async def run_async(*args: Any, **named: Any) -> Any:
                block = begin(*args, **named)
                return await _awaited(block, block.__enter__, lambda: function(*args, **named))

            wrapped = run_async
        elif inspect.isgeneratorfunction(body):

            def begin_steps(*args: Any, **named: Any) -> Any:
                block = begin(*args, **named)
                return block, block.__enter__, function(*args, **named)

            wrapped = _generator_function(begin_steps)
        else:

            def run_sync(*args: Any, **named: Any) -> Any:
                block = begin(*args, **named)
                block.__enter__()
                try:
                    result = function(*args, **named)
                except BaseException as error:
                    block.__exit__(type(error), error, error.__traceback__)
                    raise
                if inspect.isawaitable(result):
                    # The body of the coroutine has not run yet.
                    _leave(block._tokens)
                    return _awaited(block, block._enter, lambda: result)
                return _left(block, result)

            wrapped = run_sync
        return functools.wraps(function)(wrapped)  # type: ignore[return-value]


def body_of(function: Any) -> Any:
    """Finds the function that a partial function or a callable object calls."""
    while isinstance(function, functools.partial):
        function = function.func
    is_itself = inspect.isroutine(function) or inspect.isclass(function)
    return function if is_itself else getattr(type(function), "__call__", None)  # noqa: B004


def _left(block: Block, result: Any) -> Any:
    """The function returned: ends the block, or leaves it open until the returned body has ended."""
    name = _body_name(result)
    if name is not None:
        _leave(block._tokens)
        setattr(result, name, _followed(block, getattr(result, name)))
        return result
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        _leave(block._tokens)
        return _followed(block, result)
    block._returned(result)
    block.__exit__(None, None, None)
    return result


def _body_name(result: object) -> str | None:
    for kind in type(result).__mro__:
        name = _STREAMED.get((kind.__module__.partition(".")[0], kind.__name__))
        if name is not None:
            # Most responses of Werkzeug are not streamed.
            return name if getattr(result, "is_streamed", True) else None
    return None


def _followed(block: Block, body: Any) -> Any:
    is_async = hasattr(body, "__aiter__")
    is_generator = inspect.isasyncgen(body) or inspect.isgenerator(body)
    generator: Any = body if is_generator else _async_items(body) if is_async else _items(body)
    begun: list[Block] = []

    def begin() -> Any:
        begun.append(block)
        return block, block._enter, generator

    steps = (_async_generator_function if is_async else _generator_function)(begin)()
    # The end of a body that is never read.
    weakref.finalize(steps, _abandon, block, begun).atexit = False
    return steps


def _abandon(block: Block, begun: list[Block]) -> None:
    if not begun:
        block._finish(GeneratorExit())


def _items(body: Iterable[Any]) -> Generator[Any, None, None]:
    yield from body


async def _async_items(body: AsyncIterable[Any]) -> AsyncGenerator[Any, None]:
    async for item in body:
        yield item


async def _awaited(block: Block, enter_block: Callable[[], object], act: Callable[[], Awaitable[Any]]) -> Any:
    enter_block()
    try:
        output = await act()
    except BaseException as error:
        block.__exit__(type(error), error, error.__traceback__)
        raise
    return _left(block, output)


def _generator_function(begin: Callable[..., Any]) -> Callable[..., Generator[Any, Any, Any]]:
    """Runs each step of a generator in a separate context, so that the caller's current run does not change."""

    def steps(*args: Any, **named: Any) -> Generator[Any, Any, Any]:
        block, enter_block, generator = begin(*args, **named)
        context = copy_context()
        context.run(enter_block)
        try:
            step, sent_value = generator.send, None
            while True:
                try:
                    item = context.run(step, sent_value)
                except StopIteration as end:
                    context.run(block.__exit__, None, None, None)
                    return end.value
                try:
                    step, sent_value = generator.send, (yield item)
                except GeneratorExit:
                    context.run(generator.close)
                    raise
                except BaseException as error:
                    step, sent_value = generator.throw, error
        except BaseException as error:
            context.run(block.__exit__, type(error), error, None)
            raise

    return steps


def _async_generator_function(begin: Callable[..., Any]) -> Callable[..., AsyncGenerator[Any, Any]]:
    """The same for asyncio."""

    async def steps(*args: Any, **named: Any) -> AsyncGenerator[Any, Any]:
        block, enter_block, generator = begin(*args, **named)
        context = copy_context()
        context.run(enter_block)
        try:
            step, sent_value, is_begun = generator.asend, None, False
            while True:
                try:
                    pending = step(sent_value) if is_begun else _first_step(step)
                    is_begun = True
                    item = await _In(context, pending)
                except StopAsyncIteration:
                    context.run(block.__exit__, None, None, None)
                    return
                try:
                    step, sent_value = generator.asend, (yield item)
                except GeneratorExit:
                    await _In(context, generator.aclose())
                    raise
                except BaseException as error:
                    step, sent_value = generator.athrow, error
        except BaseException as error:
            context.run(block.__exit__, type(error), error, None)
            raise

    return steps


def _first_step(step: Callable[[Any], Awaitable[Any]]) -> Awaitable[Any]:
    """Hides the generator from the event loop, which may close all at once: the generator around it closes it."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return step(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


class _In:
    """Awaits in another context."""

    def __init__(self, context: Contexts, awaitable: Awaitable[Any]) -> None:
        self._context = context
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._awaitable.__await__()
        step, sent_value = steps.send, None
        while True:
            try:
                pending = self._context.run(step, sent_value)
            except StopIteration as end:
                return end.value
            try:
                step, sent_value = steps.send, (yield pending)
            except GeneratorExit:
                self._context.run(steps.close)
                raise
            except BaseException as error:
                step, sent_value = steps.throw, error


def _leave(tokens: list[Token[Context | None]]) -> None:
    try:
        CURRENT.reset(tokens.pop())
    except (ValueError, RuntimeError):
        pass  # An async generator was closed in another context, where this run is not the current one.
