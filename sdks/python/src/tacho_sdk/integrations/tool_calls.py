"""Runs the tool calls of a model's answer, each guarded."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import tacho_sdk as tacho

from ..client import Tacho
from ..guarding.asked_calls import NeverRan, is_cut, record_never_ran
from ..guarding.blocked import ToolBlockedError
from ..recording.plain import dump, read_safely, to_plain, well_formed_json
from .border import safely
from .fitting import Unfit, fitted
from .tool_input import arguments_of

Tools = Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]]
"""Functions by name, or functions that have the names of their tools."""

_LEVELS = 200
_UNREADABLE = "[unreadable]"


@dataclass(frozen=True)
class AskedCall:
    """Arguments as the model wrote them."""

    call_id: Any
    name: str
    arguments: Any
    """JSON text, or an object already."""
    finish_reason: object = None
    """Finish reason of the answer. None: the provider reports the call as complete, or the host passed only the message."""


class _NeverRan(Exception):
    def __init__(self, code: NeverRan, answer: str) -> None:
        self.code = code
        self.answer = answer


def guarded_answer(client: Tacho | None, tools: Tools, call: AskedCall) -> tuple[str, bool]:
    """The answer for the model, and whether it is an error: a refusal, an unknown tool, or the tool's own exception."""
    recorder = client or tacho.client()
    try:
        tool, named = _prepared(recorder, tools, call)
        act = _in_a_loop(tool) if _is_async(tool) else tool
        output = recorder.run_tool(call.name, act, (), named, tool_call_id=call.call_id)
    except Exception as error:
        return _error_answer(recorder, call, error), True
    return read_safely(lambda: _text(output), _UNREADABLE), False


async def aguarded_answer(client: Tacho | None, tools: Tools, call: AskedCall) -> tuple[str, bool]:
    """The same for asyncio. A tool that is no coroutine function runs in a thread."""
    recorder = client or tacho.client()
    try:
        tool, named = _prepared(recorder, tools, call)

        @functools.wraps(tool)
        async def act(*args: Any, **named: Any) -> Any:
            if _is_async(tool):
                return await tool(*args, **named)
            return await asyncio.to_thread(tool, *args, **named)

        output = await recorder.arun_tool(call.name, act, (), named, tool_call_id=call.call_id)
    except Exception as error:
        return _error_answer(recorder, call, error), True
    return read_safely(lambda: _text(output), _UNREADABLE), False


def _is_async(tool: Any) -> bool:
    return inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None))  # noqa: B004


def _in_a_loop(tool: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(tool)
    def act(*args: Any, **named: Any) -> Any:
        async def main() -> Any:
            return await tool(*args, **named)

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(main())
        # A host in asyncio that called `call_tools` waits here, as for any tool.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, asyncio.run, main()).result()

    return act


def _prepared(client: Tacho, tools: Tools, call: AskedCall) -> tuple[Callable[..., Any], dict[str, Any]]:
    if call.finish_reason == "completed":
        # The provider reports the call as complete, although the answer may be cut.
        client.core.asked_calls.note(client.core.current_scope(), call.call_id, None)
    if is_cut(call.finish_reason) or client.core.asked_calls.is_cut(client.core, call.call_id):
        raise _NeverRan("cut", ToolBlockedError("call_cut", call.name).model_text)
    named = arguments_of(call.arguments)
    if not isinstance(named, dict):
        raise _NeverRan("unreadable", "TypeError: The arguments are not a JSON object.")
    if isinstance(tools, Mapping):
        tool = tools.get(call.name)
    else:
        tool = next((tool for tool in tools if getattr(tool, "__name__", None) == call.name), None)
    if tool is None:
        raise _NeverRan("unknown_tool", f"LookupError: There is no tool {call.name}.")
    try:
        return tool, fitted(tool, named)
    except Unfit as error:
        raise _NeverRan("unfit", f"TypeError: The arguments do not fit {call.name}: {error}") from None


def _error_answer(client: Tacho, call: AskedCall, error: Exception) -> str:
    if isinstance(error, _NeverRan):
        facts = (error.code, error.answer, call.arguments, call.call_id)
        safely(client, lambda: record_never_ran(client.guarding, call.name, *facts), None)
        return error.answer
    if isinstance(error, ToolBlockedError):
        return error.model_text
    return read_safely(lambda: f"{type(error).__name__}: {error}", type(error).__name__)


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    plain, _ = well_formed_json(to_plain({"output": output}, _LEVELS).value)
    return dump(plain.get("output"))
