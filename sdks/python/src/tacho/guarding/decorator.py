"""Decorates tools."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from .rules import Rules


class GuardingClient(Protocol):
    def call_guarded(
        self,
        tool_name: str,
        input: Callable[[], object],
        act: Callable[[], Any],
        *,
        risk_signals: Sequence[str],
        rules: Rules | None,
    ) -> Any: ...

    async def acall_guarded(
        self,
        tool_name: str,
        input: Callable[[], object],
        act: Callable[[], Awaitable[Any]],
        *,
        risk_signals: Sequence[str],
        rules: Rules | None,
    ) -> Any: ...


def guarded(
    client_of: Callable[[], GuardingClient],
    name: str | None,
    input_of: Callable[..., object] | None,
    signals_of: Callable[..., Sequence[str]] | None,
    rules: Rules | None,
) -> Callable[[Any], Any]:
    """The decorator. `client_of`: a decorator may be applied before the client is configured."""

    def decorate(tool: Any) -> Any:
        tool_name = name or tool.__name__
        read = input_of or functools.partial(input_by_name, inspect.signature(tool))

        def options(args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
            signals = signals_of(*args, **named) if signals_of else ()
            return {"risk_signals": signals, "rules": rules}

        if inspect.iscoroutinefunction(tool):

            @functools.wraps(tool)
            async def call_async(*args: Any, **named: Any) -> Any:
                act = functools.partial(tool, *args, **named)
                given = functools.partial(read, *args, **named)
                return await client_of().acall_guarded(tool_name, given, act, **options(args, named))

            return call_async

        @functools.wraps(tool)
        def call_sync(*args: Any, **named: Any) -> Any:
            act = functools.partial(tool, *args, **named)
            given = functools.partial(read, *args, **named)
            return client_of().call_guarded(tool_name, given, act, **options(args, named))

        return call_sync

    return decorate


def input_by_name(signature: inspect.Signature, /, *args: Any, **named: Any) -> object:
    """The arguments by name, with defaults and without `self`; the only argument if it is a dict."""
    bound = signature.bind(*args, **named)
    bound.apply_defaults()
    given: dict[str, Any] = {}
    for index, (name, value) in enumerate(bound.arguments.items()):
        if index == 0 and name in ("self", "cls"):
            continue
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            given.update(value)
        else:
            given[name] = value
    values = list(given.values())
    return values[0] if len(values) == 1 and isinstance(values[0], dict) else given
