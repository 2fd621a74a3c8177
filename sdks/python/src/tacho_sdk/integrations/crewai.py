"""
CrewAI.

    TachoListener()
    agent = Agent(role="Refunds", llm=llm, tools=guard_tools([refund]), ...)
"""

from __future__ import annotations

import ast
import asyncio
import copy
import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from crewai.events import (
    BaseEventListener,
    LLMCallCompletedEvent,
    LLMCallFailedEvent,
    LLMCallStartedEvent,
    LLMStreamChunkEvent,
)
from crewai.events.event_bus import CrewAIEventsBus
from crewai.tools import BaseTool
from crewai.tools.base_tool import Tool
from crewai.tools.tool_failure import ToolFailure
from crewai.utilities.string_utils import sanitize_tool_name

import tacho_sdk as tacho_module

from ..client import Tacho
from ..guarding.blocked import ToolBlockedError
from ..recording.context import acting
from ..recording.plain import read_safely
from ..recording.usage_shapes import call_usage
from .border import safely
from .crewai_calls import LostCalls, caller, checked_schema, is_cut_answer, listen, refuse_cut, wait_for_events
from .messages import Message, answer_of, fields_of, messages_of
from .model_call import ModelCall
from .unguarded import GUARDED, Unguarded, cannot_guard, is_generator, own_method

T = TypeVar("T", bound=BaseTool)

# Bounds the calls whose end CrewAI never reports.
_OPEN_MAX = 10_000


class _Call:
    """The events of one model call. CrewAI handles events in threads, so the end can arrive before the beginning."""

    def __init__(self) -> None:
        self.started: LLMCallStartedEvent | None = None
        self.first: float | None = None
        self.ended: LLMCallCompletedEvent | LLMCallFailedEvent | None = None


class TachoListener(BaseEventListener):
    """
    Records the model calls of every crew and flow of this process, streamed or not, as LLM_CALL events of the current run;
    outside a run, each becomes a run of its own. Create one; CrewAI keeps it.
    """

    def __init__(self, tacho: Tacho | None = None) -> None:
        self._tacho = tacho
        self._lock = threading.Lock()
        self._calls: dict[str, _Call] = {}
        self._lost = LostCalls(tacho)
        super().__init__()

    def setup_listeners(self, crewai_event_bus: CrewAIEventsBus) -> None:
        """CrewAI calls this."""

        def on_started(_: Any, event: LLMCallStartedEvent) -> None:
            with self._lock:
                call = self._of(event.call_id)
                call.started = event
            self._record(event.call_id, call)

        def on_chunk(_: Any, event: LLMStreamChunkEvent) -> None:
            with self._lock:
                call = self._of(event.call_id)
                call.first = call.first or event.timestamp.timestamp()

        def on_ended(_: Any, event: LLMCallCompletedEvent | LLMCallFailedEvent) -> None:
            with self._lock:
                call = self._of(event.call_id)
                call.ended = event
            self._record(event.call_id, call)

        listen(crewai_event_bus, LLMCallStartedEvent, self._tacho, on_started)
        listen(crewai_event_bus, LLMStreamChunkEvent, self._tacho, on_chunk)
        for kind in (LLMCallCompletedEvent, LLMCallFailedEvent):
            listen(crewai_event_bus, kind, self._tacho, on_ended)
        self._lost.listen(crewai_event_bus)

    def _of(self, call_id: str) -> _Call:
        if call_id not in self._calls and len(self._calls) >= _OPEN_MAX:
            self._calls.pop(next(iter(self._calls)), None)
        return self._calls.setdefault(call_id, _Call())

    def _record(self, call_id: str, call: _Call) -> None:
        with self._lock:
            started, ended = call.started, call.ended
            if started is None or ended is None or self._calls.pop(call_id, None) is None:
                return
        begun = started.timestamp.timestamp()
        times = {"latency": _milliseconds(ended.timestamp.timestamp() - begun)}
        if call.first is not None:
            times["timeToFirstOutput"] = _milliseconds(call.first - begun)
        scope = (self._tacho or tacho_module.client()).core.current_scope()
        agent = None if scope is None else scope.team.naming(started.agent_role)
        named = {} if agent is None else {"agent": agent}
        request = {"model": started.model, "messages": messages_of(_restored(started.messages)), **named}
        recorded = ModelCall(self._tacho, lambda: request)
        if isinstance(ended, LLMCallFailedEvent):
            recorded.fail(_Failed(ended.error), lambda: {**times})
            return
        result: dict[str, Any] = read_safely(lambda: _result_of(ended), {"output": None})
        recorded.end(lambda: {**result, **times})
        safely(self._tacho, lambda: self._note(started, result.get("output") or {}, ended.finish_reason), None)

    def _note(self, started: LLMCallStartedEvent, message: Message, finish_reason: str | None) -> None:
        self._lost.note_answer(started.agent_id, message, finish_reason)
        self._lost.record(message, finish_reason, started.tools, started.agent_role)


def _is_quoted(text: str) -> bool:
    """Whether the text is one quoted literal. A regex would take 100 bytes a character, and a message can be an image."""
    quote = text[:1]
    # Backslashes escape in pairs, from the left.
    inner = text[1:-1].replace("\\\\", "").replace(f"\\{quote}", "")
    is_enclosed = len(text) > 1 and quote in ("'", '"') and text.endswith(quote)
    return is_enclosed and quote not in inner and not inner.endswith("\\")


def _restored(value: Any, levels: int = 5) -> Any:
    """An event has a call's name and arguments as their `repr`, because CrewAI writes only five levels of a request."""
    if levels == 0:
        # Only one literal, because an expression could be too deep for the parser.
        is_quoted = isinstance(value, str) and _is_quoted(value)
        text = read_safely(lambda: ast.literal_eval(value), None) if is_quoted else None
        return text if isinstance(text, str) else value
    if isinstance(value, dict):
        return {name: _restored(one, levels - 1) for name, one in value.items()}
    return [_restored(one, levels - 1) for one in value] if isinstance(value, list) else value


class _Failed(Exception):
    """A model call that failed; CrewAI reports only its message."""


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1_000))


def _result_of(event: LLMCallCompletedEvent) -> dict[str, Any]:
    response = event.response
    is_calls = isinstance(response, list) and all("function" in fields_of(one) or "name" in fields_of(one) for one in response)
    message = {"role": "assistant", "tool_calls": response} if is_calls else answer_of(response)
    return {
        "output": messages_of(message)[0] if is_calls else message,
        "finishReason": event.finish_reason,
        "usage": call_usage(event.usage),
    }


def guard_tools(tools: Sequence[T], tacho: Tacho | None = None, *, unguarded: Unguarded = "refuse") -> list[T]:
    """
    Copies of the tools, guarded: policies decide each call on what the tool's function gets, a person approves it if a policy
    requires that, and the call is recorded as a TOOL_CALL. A refusal is an answer that the model reads (a `ToolFailure`), so
    CrewAI does not repeat the call. `tool.name` is the name that the model uses: `Search the web` is `search_the_web`. CrewAI
    does not cache results of guarded tools, because a cached answer would not be decided.

    Raises CannotGuardError for what it cannot guard; `unguarded="allow"` lets it run unguarded, and records that.
    """
    return [_guard_tool(tool, tacho, unguarded) for tool in tools]


def _guard_tool(tool: T, client: Tacho | None, unguarded: Unguarded) -> T:
    why = _why_not(tool)
    if why is not None:
        cannot_guard(unguarded, client, str(getattr(tool, "name", type(tool).__name__)), why)
        return tool
    guarded: T = tool.model_copy(update={"cache_function": _is_never_cached})
    if tool.args_schema is not None:
        schema = tool.args_schema
        guarded.args_schema = read_safely(lambda: checked_schema(schema, lambda: _name_of(guarded), client), schema)
    _guard_parts(guarded, tool, client)
    return guarded


def _guard_parts(guarded: BaseTool, tool: BaseTool, client: Tacho | None) -> None:
    """The functions stay bound to the tool, so an asynchronous method that calls the synchronous one is one guarded call."""
    parts = _parts_of(tool)
    for tool_part in parts:
        function = getattr(tool, tool_part)
        if not getattr(function, GUARDED, False):
            # Bypasses the model's own __setattr__, which accepts only fields.
            object.__setattr__(guarded, tool_part, _guarded(function, guarded, client))
    if parts != ["func"]:
        kind: Any = type(tool)
        object.__setattr__(guarded, "__class__", _class_of(kind))


@functools.cache
def _class_of(kind: type[BaseTool]) -> type[BaseTool]:
    """
    A checkpoint names the class of a tool, and makes the tool anew from it. So a guarded tool has a class whose tools are
    guarded, with the client of the process. A process that never guarded a tool of this class cannot restore it.
    """
    if GUARDED in vars(kind):
        return kind

    def model_post_init(self: BaseTool, context: Any) -> None:
        kind.model_post_init(self, context)
        tool = copy.copy(self)
        object.__setattr__(tool, "__class__", kind)
        _guard_parts(self, tool, None)

    members = {
        "model_post_init": model_post_init,
        GUARDED: True,
        "__module__": kind.__module__,
        "__qualname__": f"{kind.__qualname__}[guarded]",
        "__doc__": kind.__doc__,
    }
    make: Any = type(kind)
    made: type[BaseTool] = make(kind.__name__, (kind,), members)
    return made


def _parts_of(tool: BaseTool) -> list[str]:
    """The members to guard: `func` if the tool was made from a function, which several methods call; else its methods."""
    kind = type(tool)
    if isinstance(tool, Tool) and kind._run is Tool._run and kind._arun is Tool._arun:
        return ["func"]
    return ["_run"] if kind._arun is BaseTool._arun else ["_run", "_arun"]


def _why_not(tool: object) -> str | None:
    if not isinstance(tool, BaseTool):
        return "it is no tool of CrewAI"
    if method := own_method(tool, ("run", "arun", "to_structured_tool"), "crewai"):
        return f"it has its own {method}, which may call anything"
    if any(is_generator(getattr(tool, tool_part)) for tool_part in _parts_of(tool)):
        return "it is a generator, whose body runs after the call"
    return None


def _name_of(tool: BaseTool) -> str:
    """Read for each call: a host may rename a tool."""
    return str(sanitize_tool_name(tool.name))


def _is_never_cached(*_: Any) -> bool:
    return False


def _guarded(function: Callable[..., Any], tool: BaseTool, given_client: Tacho | None) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def guarded_async(*args: Any, **named: Any) -> Any:
            held, client, name = caller(), given_client or tacho_module.client(), _name_of(tool)
            await asyncio.to_thread(wait_for_events)
            if is_cut_answer(held):
                return ToolFailure(message=refuse_cut(client, name, held))
            try:
                with acting(client.core, held.agent):
                    return await client.arun_tool(name, function, args, named, tool_call_id=held.call_id)
            except ToolBlockedError as error:
                return ToolFailure(message=error.model_text)

        setattr(guarded_async, GUARDED, True)
        return guarded_async

    @functools.wraps(function)
    def guarded(*args: Any, **named: Any) -> Any:
        held, client, name = caller(), given_client or tacho_module.client(), _name_of(tool)
        wait_for_events()
        if is_cut_answer(held):
            return ToolFailure(message=refuse_cut(client, name, held))
        try:
            with acting(client.core, held.agent):
                return client.run_tool(name, function, args, named, tool_call_id=held.call_id)
        except ToolBlockedError as error:
            return ToolFailure(message=error.model_text)

    setattr(guarded, GUARDED, True)
    return guarded
