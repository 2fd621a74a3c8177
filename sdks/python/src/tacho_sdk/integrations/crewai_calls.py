"""
Calls of CrewAI: who makes them, those that never reach their tool, and delegation. CrewAI passes a tool neither its agent nor
the model's id of the call, so both are read where CrewAI runs the call.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from crewai.events import crewai_event_bus
from crewai.events.types.tool_usage_events import ToolSelectionErrorEvent, ToolValidateInputErrorEvent
from crewai.hooks import register_after_tool_call_hook, register_before_tool_call_hook
from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import BaseModel, ValidationError

import tacho_sdk as tacho

from ..client import Tacho
from ..guarding.asked_calls import NeverRan, is_cut, record_never_ran
from ..guarding.blocked import ToolBlockedError
from ..recording.context import acting
from ..recording.plain import read_safely
from .border import safely
from .messages import Message, fields_of
from .tool_input import arguments_of

_RUNNERS = frozenset(["_execute_single_native_tool_call", "execute_single_native_tool_call", "_use", "_ause"])
# CrewAI handles its events in threads. On a busy machine, they may be late.
_EVENTS_SECONDS = 5.0
_AGENTS_MAX = 10_000


def listen(bus: Any, kind: type, client: Tacho | None, handle: Callable[[Any, Any], None]) -> None:
    def listener(source: Any, event: Any) -> None:
        safely(client, lambda: handle(source, event), None)

    bus.on(kind)(listener)


@dataclass(frozen=True)
class Caller:
    """The caller of a tool."""

    agent: str | None = None
    agent_id: str | None = None
    call_id: str | None = None
    text: str | None = None
    """The arguments, if the model wrote the call into its text."""
    is_repeated: bool = False
    """CrewAI retries a call that failed."""


def caller() -> Caller:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _RUNNERS and str(frame.f_globals.get("__name__")).startswith("crewai."):
            return read_safely(functools.partial(_caller_in, frame.f_locals), Caller())
        frame = frame.f_back
    return Caller()


def _caller_in(held: Mapping[str, Any]) -> Caller:
    runner = held.get("self")
    agent = held["agent"] if "agent" in held else getattr(runner, "agent", None)
    action = getattr(runner, "action", None)
    call_id = held.get("call_id")
    # CrewAI makes up an id if the model gives none.
    is_made = call_id == f"call_{id(held.get('tool_call'))}"
    return Caller(
        getattr(agent, "role", None),
        None if agent is None else str(agent.id),
        None if is_made else call_id,
        None if action is None else str(action.tool_input),
        action is not None and runner is not None and runner._run_attempts > 1,
    )


class LostCalls:
    """Remembers which agents' last answer was cut, and records calls that never reach their tool."""

    def __init__(self, client: Tacho | None) -> None:
        self._tacho = client
        self._lock = threading.Lock()
        self._seen: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
        """Calls in a text that are recorded already: CrewAI tries to read each several times."""

    def listen(self, bus: Any) -> None:
        listen(bus, ToolSelectionErrorEvent, self._tacho, lambda source, event: self._lost_text(source, event, "unknown_tool"))
        listen(
            bus, ToolValidateInputErrorEvent, self._tacho, lambda source, event: self._lost_text(source, event, "unreadable")
        )
        register_before_tool_call_hook(self._before)
        register_after_tool_call_hook(self._after)

    @property
    def _client(self) -> Tacho:
        return self._tacho or tacho.client()

    def note_answer(self, agent_id: str | None, message: Message, finish_reason: object) -> None:
        if agent_id is not None:
            with _cut_lock:
                _cut_agents.pop(agent_id, None)
                if is_cut(finish_reason) and "toolCalls" not in message:
                    _cut_agents[agent_id] = True
                if len(_cut_agents) > _AGENTS_MAX:
                    del _cut_agents[next(iter(_cut_agents))]

    def record(self, message: Message, finish_reason: object, tools: Any, agent: str | None) -> None:
        """Records the calls of an answer that CrewAI answers itself, without calling a tool."""
        known = {fields_of(fields_of(tool).get("function") or tool).get("name") for tool in tools or ()}
        for call in message.get("toolCalls") or ():
            name, arguments = str(call.get("name")), call.get("arguments")
            if known and sanitize_tool_name(name) not in known:
                self._lost(agent, name, "unknown_tool", "Tool not found", arguments, call.get("id"))
            elif isinstance(arguments, str) and not isinstance(arguments_of(arguments), dict):
                code: NeverRan = "cut" if is_cut(finish_reason) else "unreadable"
                self._lost(agent, name, code, "Failed to parse tool arguments as JSON.", arguments, call.get("id"))

    def _lost_text(self, code: NeverRan, source: Any, event: Any) -> None:
        with self._lock:
            if source in self._seen:
                return
            self._seen[source] = True
        held = _caller_in({"self": source})
        if code == "unreadable" and is_cut_answer(held):
            code = "cut"
        self._lost(held.agent, event.tool_name, code, str(event.error), held.text, None)

    def _lost(self, agent: str | None, name: str, code: NeverRan, answer: str, arguments: object, call_id: Any) -> None:
        client = self._client
        with acting(client.core, agent):
            record_never_ran(client.guarding, name, code, answer, arguments, call_id)

    def _before(self, context: Any) -> None:
        safely(self._tacho, lambda: self._note_delegation(context), None)

    def _note_delegation(self, context: Any) -> None:
        tool, giver = getattr(context.tool, "_original_tool", None), getattr(context.agent, "role", None)
        scope = self._client.core.current_scope()
        if not isinstance(tool, BaseAgentTool) or giver is None or scope is None:
            return
        wait_for_events()
        named = tool.sanitize_agent_name(tool._get_coworker(**context.tool_input) or "")
        taker = next((one.role for one in tool.agents if tool.sanitize_agent_name(one.role) == named), None)
        if taker is not None:
            self._client.core.hand_over(scope, giver, taker, caller().call_id)

    def _after(self, context: Any) -> None:
        safely(self._tacho, lambda: self._note_declined(context), None)

    def _note_declined(self, context: Any) -> None:
        answer_text = str(context.tool_result)
        is_declined = answer_text == f"Tool execution blocked by hook. Tool: {context.tool_name}"
        if is_declined or answer_text.startswith(f"Tool '{context.tool_name}' has reached its usage limit"):
            role = getattr(context.agent, "role", None)
            self._lost(role, context.tool_name, "declined", answer_text, dict(context.tool_input), caller().call_id)


_cut_agents: dict[str, bool] = {}
_cut_lock = threading.Lock()


def wait_for_events() -> None:
    """Waits until the answer that asked for a call is known."""
    read_safely(lambda: crewai_event_bus.flush(_EVENTS_SECONDS), False)


def is_cut_answer(held: Caller) -> bool:
    """Whether a call in a text is from a cut answer: CrewAI closes brackets whose end is missing."""
    return held.text is not None and held.agent_id in _cut_agents


def refuse_cut(client: Tacho, name: str, held: Caller) -> str:
    answer_text = ToolBlockedError("call_cut", name).model_text
    with acting(client.core, held.agent):
        record_never_ran(client.guarding, name, "cut", answer_text, held.text)
    return answer_text


def checked_schema(schema: type[BaseModel], name: Callable[[], str], client: Tacho | None) -> type[BaseModel]:
    """The schema, recording arguments that do not fit: CrewAI checks them before it calls a tool's function."""

    def model_validate(_: type[BaseModel], /, raw_arguments: Any, **more: Any) -> BaseModel:
        try:
            return schema.model_validate(raw_arguments, **more)
        except ValidationError as error:
            error_text, held = str(error), safely(client, caller, Caller())
            if not held.is_repeated:
                safely(client, lambda: _record_unfit(client or tacho.client(), name(), error_text, raw_arguments, held), None)
            raise

    kind: Any = type(schema)
    members = {
        "model_validate": classmethod(model_validate),
        "__module__": schema.__module__,
        "__qualname__": schema.__qualname__,
        "__doc__": schema.__doc__,
    }
    made: type[BaseModel] = kind(schema.__name__, (schema,), members)
    return made


def _record_unfit(client: Tacho, name: str, error_text: str, raw_arguments: object, held: Caller) -> None:
    wait_for_events()
    was_cut = client.core.asked_calls.is_cut(client.core, held.call_id) or is_cut_answer(held)
    with acting(client.core, held.agent):
        arguments = raw_arguments if held.text is None else held.text
        record_never_ran(client.guarding, name, "cut" if was_cut else "unfit", error_text, arguments, held.call_id)
