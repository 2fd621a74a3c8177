"""
The border to the host. If our side fails, the host's call is still made once, with its own arguments, and its own result or
error comes back. The client reports the failure once.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import tacho_sdk as tacho

from ..client import Tacho
from ..exact import class_name
from ..recording.plain import read_safely

T = TypeVar("T")


class Bordered:
    """
    Base class: an error in a public method does not reach the framework or integration that calls it. `_tacho`: the client;
    None: that of the process.
    """

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, function in list(vars(cls).items()):
            if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
                setattr(cls, name, unbreakable(function))


def unbreakable(act: Callable[..., Any]) -> Callable[..., Any]:
    """
    Reports an error of our own code instead of raising it into the host. The first argument is the client, or has it as
    `_tacho`.
    """
    if inspect.iscoroutinefunction(act):

        @functools.wraps(act)
        async def awaited(*args: Any, **named: Any) -> None:
            try:
                await act(*args, **named)
            except Exception as error:
                _report(args[0], error)

        return awaited

    @functools.wraps(act)
    def attempted(*args: Any, **named: Any) -> None:
        try:
            act(*args, **named)
        except Exception as error:
            _report(args[0], error)

    return attempted


def safely(client: Tacho | None, act: Callable[[], T], otherwise: T) -> T:
    """The same for a part of our work. Returns `otherwise` after an error."""
    try:
        return act()
    except Exception as error:
        _report(client, error)
        return otherwise


def _report(owner: Any, error: Exception) -> None:
    def report() -> None:
        client = getattr(owner, "_tacho", owner) or tacho.client()
        message = f"A call is recorded in part or not at all: {class_name(error)}. The call itself is not affected."
        client.core.diagnostics.report("error", "record_failed", message)

    read_safely(report, None)
