"""Decorates tools."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..recording.block import body_of
from .arguments import Arguments, is_method, unpacked
from .guard import Guard, expect_calls
from .guarded_call import Request, acall_tool, call_tool
from .rules import Rules


class GuardingClient(Protocol):
    @property
    def guarding(self) -> Guard: ...


def guarded(
    client_of: Callable[[], GuardingClient],
    name: str | None,
    input_of: Callable[..., object] | None,
    signals_of: Callable[..., Sequence[str]] | None,
    rules: Rules | None,
    key_of: Callable[..., str] | None = None,
) -> Callable[[Any], Any]:
    """`client_of`: a function, because the decorator may be applied before the client is configured."""

    def decorate(tool: Any) -> Any:
        expect_calls()
        tool_name = name or name_of(tool)
        body = body_of(tool)
        if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
            raise TypeError(
                f"{tool_name} is a generator, whose body runs after the call: guard a function that returns a list."
            )

        def request(args: tuple[Any, ...], named: dict[str, Any]) -> Request:
            arguments = Arguments(tool, args, named)
            read = functools.partial(arguments.read, input_of) if input_of else arguments.own_input
            signals = arguments.read(signals_of) if signals_of else ()
            key = arguments.read(key_of) if key_of else None
            # Leave out a method's object: the host continues the call with its own.
            call_arguments = args[1:] if is_method(tool) else args
            return Request(
                tool_name, read, arguments.call, signals, rules or Rules(), key=key, args=call_arguments, named=named
            )

        if inspect.iscoroutinefunction(body):

            @functools.wraps(tool)
            async def call_async(*args: Any, **named: Any) -> Any:
                return await acall_tool(client_of().guarding, request(args, named))

            return call_async

        @functools.wraps(tool)
        def call_sync(*args: Any, **named: Any) -> Any:
            return call_tool(client_of().guarding, request(args, named))

        return call_sync

    return decorate


def name_of(tool: Any) -> str:
    function = unpacked(tool)[0]
    return str(getattr(function, "__name__", None) or type(function).__name__)
