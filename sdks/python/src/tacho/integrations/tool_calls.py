"""Runs the tool calls of a model's answer, each guarded."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tacho

from ..client import Tacho
from ..guarding.blocked import ToolBlockedError
from ..recording.plain import dump, to_plain

Tools = Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]]
"""Functions by name, or functions that have the names of their tools."""

_LEVELS = 200


def guarded_answer(client: Tacho | None, tools: Tools, name: str, arguments: Any) -> tuple[str, bool]:
    """The answer for the model, and whether it is an error: a refusal, an unknown tool, or the tool's own exception."""
    recorder = client or tacho.client()
    try:
        act = _tool(tools, name, arguments)
        if recorder.current_run() is None:
            with recorder.run():
                output = recorder.call_guarded(name, arguments, act)
        else:
            output = recorder.call_guarded(name, arguments, act)
    except Exception as error:
        return _error_text(error), True
    return _text(output), False


async def aguarded_answer(client: Tacho | None, tools: Tools, name: str, arguments: Any) -> tuple[str, bool]:
    """The same for asyncio. A tool that is no coroutine function runs in a thread."""
    recorder = client or tacho.client()
    try:
        act = _tool(tools, name, arguments)

        async def awaited() -> Any:
            if inspect.iscoroutinefunction(_find(tools, name)):
                return await act()
            return await asyncio.to_thread(act)

        if recorder.current_run() is None:
            async with recorder.run():
                output = await recorder.acall_guarded(name, arguments, awaited)
        else:
            output = await recorder.acall_guarded(name, arguments, awaited)
    except Exception as error:
        return _error_text(error), True
    return _text(output), False


def _find(tools: Tools, name: str) -> Callable[..., Any] | None:
    if isinstance(tools, Mapping):
        return tools.get(name)
    return next((tool for tool in tools if getattr(tool, "__name__", None) == name), None)


def _tool(tools: Tools, name: str, arguments: Any) -> Callable[[], Any]:
    tool = _find(tools, name)
    if tool is None:
        raise LookupError(f"There is no tool {name}.")
    if not isinstance(arguments, dict):
        raise TypeError("The arguments are not a JSON object.")
    found = tool
    return lambda: found(**arguments)


def _error_text(error: Exception) -> str:
    return error.model_text if isinstance(error, ToolBlockedError) else f"{type(error).__name__}: {error}"


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    plain, _ = to_plain({"output": output}, _LEVELS)
    return dump(plain.get("output"))


def arguments_of(text: object) -> Any:
    """The arguments of a call: JSON text, or an object already."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text
