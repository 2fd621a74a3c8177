"""Tools that cannot be guarded are refused when they are wrapped, or run unguarded, which is recorded."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from typing import Literal

import tacho_sdk as tacho

from ..client import Tacho

Unguarded = Literal["refuse", "allow"]
"""`allow` lets tools that cannot be guarded run unguarded, and records each."""

GUARDED = "__tacho_guarded__"
"""Marks guarded functions, and classes of guarded tools."""


class CannotGuardError(TypeError):
    """A tool that cannot be guarded: the framework runs it where no policy can judge what it gets."""


def cannot_guard(unguarded: Unguarded, client: Tacho | None, tool_name: str, why: str) -> None:
    """Raises, or records that the tool runs unguarded: on the current run, else in a run of its own."""
    message = f"The tool {tool_name} cannot be guarded: {why}."
    if unguarded != "allow":
        raise CannotGuardError(f'{message} Leave it out, or pass unguarded="allow" to run it unguarded.')
    recorder = client or tacho.client()
    recorder.core.diagnostics.report("warning", "unguarded_tool", f"{message} It runs unguarded.")
    run = recorder.current_run() or recorder.start_run()
    run.step(f"{tool_name} is not guarded", {"toolName": tool_name, "isGuarded": False, "reason": why})
    if recorder.current_run() is None:
        run.end("COMPLETED")


def is_generator(function: object) -> bool:
    """Whether the function is a generator, whose body would run after the call, unjudged."""
    while isinstance(function, functools.partial):
        function = function.func
    called = function if inspect.isroutine(function) else inspect.getattr_static(type(function), "__call__", None)
    return any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in (function, called))


def own_method(owner: object, methods: Iterable[str], package: str) -> str | None:
    """
    The first of these methods that does not come from the framework's package: it may call anything. Reads the module of the
    class that holds the method, because a decorated function may name another module.
    """
    for method in methods:
        holder = next((kind for kind in type(owner).__mro__ if method in vars(kind) and GUARDED not in vars(kind)), None)
        if method in getattr(owner, "__dict__", ()) or (holder and not f"{holder.__module__}.".startswith(f"{package}.")):
            return method
    return None
