"""What runs inside a block: functions, coroutines and generators, each in the block's own context."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextvars import Token, copy_context
from types import TracebackType
from typing import Any, TypeVar

from .context import CURRENT, Context

F = TypeVar("F", bound=Callable[..., Any])


class Block:
    """A context manager and decorator, for functions, coroutine functions and generator functions."""

    def __init__(self) -> None:
        self._tokens: list[Token[Context | None]] = []

    def _copy(self) -> Block:
        raise NotImplementedError

    def _begin(self) -> Any:
        raise NotImplementedError

    def _enter(self) -> None:
        """Makes its run and span the current ones."""
        raise NotImplementedError

    def _finish(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def __enter__(self) -> Any:
        given = self._begin()
        self._enter()
        return given

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
        if inspect.isasyncgenfunction(body):
            raise TypeError(_NO_ASYNC_GENERATOR)
        if inspect.iscoroutinefunction(body):

            @functools.wraps(function)
            async def run_async(*args: Any, **named: Any) -> Any:
                async with self._copy():
                    return await function(*args, **named)

            return run_async  # type: ignore[return-value]
        if inspect.isgeneratorfunction(body):

            @functools.wraps(function)
            def run_generator(*args: Any, **named: Any) -> Any:
                block = self._copy()
                return _in_own_context(block, block.__enter__, function(*args, **named))

            return run_generator  # type: ignore[return-value]

        @functools.wraps(function)
        def run_sync(*args: Any, **named: Any) -> Any:
            block = self._copy()
            block.__enter__()
            try:
                result = function(*args, **named)
                if inspect.isasyncgen(result):
                    raise TypeError(_NO_ASYNC_GENERATOR)
            except BaseException as error:
                block.__exit__(type(error), error, error.__traceback__)
                raise
            # Its body has not run yet.
            is_generator = inspect.isgenerator(result)
            if is_generator or inspect.isawaitable(result):
                _leave(block._tokens)
                return _in_own_context(block, block._enter, result) if is_generator else _awaited(block, result)
            block.__exit__(None, None, None)
            return result

        return run_sync  # type: ignore[return-value]


_NO_ASYNC_GENERATOR = "An async generator cannot be decorated: write `async with` inside it."


def body_of(function: Any) -> Any:
    """What a call of a partial function or of a callable object runs."""
    while isinstance(function, functools.partial):
        function = function.func
    is_itself = inspect.isroutine(function) or inspect.isclass(function)
    return function if is_itself else getattr(type(function), "__call__", None)  # noqa: B004


async def _awaited(block: Block, result: Awaitable[Any]) -> Any:
    block._enter()
    try:
        output = await result
    except BaseException as error:
        block.__exit__(type(error), error, error.__traceback__)
        raise
    block.__exit__(None, None, None)
    return output


def _in_own_context(
    block: Block, enter_block: Callable[[], object], generator: Generator[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    """Runs each step of a generator in a separate context, so that the caller's current run does not change."""
    context = copy_context()
    context.run(enter_block)
    try:
        step, given = generator.send, None
        while True:
            try:
                item = context.run(step, given)
            except StopIteration as end:
                context.run(block.__exit__, None, None, None)
                return end.value
            try:
                step, given = generator.send, (yield item)
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                step, given = generator.throw, error
    except BaseException as error:
        context.run(block.__exit__, type(error), error, None)
        raise


def _leave(tokens: list[Token[Context | None]]) -> None:
    try:
        CURRENT.reset(tokens.pop())
    except (ValueError, RuntimeError):
        pass  # An async generator was closed in another context, where this run is not the current one.
