"""Runs the tool calls of a model's answer, each guarded."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tacho

from ..client import Tacho
from ..guarding.blocked import ToolBlockedError
from ..recording.plain import dump, to_plain, well_formed_json

Tools = Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]]
"""Functions by name, or functions that have the names of their tools."""

_LEVELS = 200


def guarded_answer(client: Tacho | None, tools: Tools, call_id: Any, name: str, arguments: Any) -> tuple[str, bool]:
    """The answer for the model, and whether it is an error: a refusal, an unknown tool, or the tool's own exception."""
    try:
        named = _checked(arguments)
        output = (client or tacho.client()).run_tool(name, _find(tools, name), (), named, tool_call_id=call_id)
    except Exception as error:
        return _error_text(error), True
    return _text(output), False


async def aguarded_answer(client: Tacho | None, tools: Tools, call_id: Any, name: str, arguments: Any) -> tuple[str, bool]:
    """The same for asyncio. A tool that is no coroutine function runs in a thread."""
    try:
        tool = _find(tools, name)

        @functools.wraps(tool)
        async def act(*args: Any, **named: Any) -> Any:
            if inspect.iscoroutinefunction(tool):
                return await tool(*args, **named)
            return await asyncio.to_thread(tool, *args, **named)

        named = _checked(arguments)
        output = await (client or tacho.client()).arun_tool(name, act, (), named, tool_call_id=call_id)
    except Exception as error:
        return _error_text(error), True
    return _text(output), False


def _find(tools: Tools, name: str) -> Callable[..., Any]:
    if isinstance(tools, Mapping):
        found = tools.get(name)
    else:
        found = next((tool for tool in tools if getattr(tool, "__name__", None) == name), None)
    if found is None:
        raise LookupError(f"There is no tool {name}.")
    return found


def _checked(arguments: Any) -> dict[str, Any]:
    if not isinstance(arguments, dict):
        raise TypeError("The arguments are not a JSON object.")
    return arguments


def _error_text(error: Exception) -> str:
    return error.model_text if isinstance(error, ToolBlockedError) else f"{type(error).__name__}: {error}"


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    plain, _ = well_formed_json(to_plain({"output": output}, _LEVELS).value)
    return dump(plain.get("output"))
