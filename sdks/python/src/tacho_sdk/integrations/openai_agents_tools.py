"""Guards agents of the OpenAI Agents SDK: their tools where these call their function, and the agents they hand over to."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import inspect
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

from agents import Agent, FunctionTool, Handoff, function_tool
from agents.function_schema import function_schema
from agents.tool_context import ToolContext

import tacho_sdk as tacho

from ..client import Tacho
from ..guarding.asked_calls import NeverRan, record_never_ran
from ..guarding.blocked import ToolBlockedError
from ..recording.context import acting
from ..recording.plain import read_safely
from .border import safely
from .openai import note_client
from .tool_input import Unreadable, arguments_of, exact_float
from .unguarded import GUARDED, Unguarded, cannot_guard, is_generator

A = TypeVar("A", bound=Agent[Any])

_CONTEXT = "tacho_context"


def is_guarded_tool(tool: FunctionTool) -> bool:
    function = getattr(tool, "__wrapped__", None)
    return bool(getattr(function, GUARDED, False) or getattr(tool.on_invoke_tool, GUARDED, False))


class Guarding:
    """Guards an agent and whatever it leads to. Each agent is guarded once, because agents may hand over in circles."""

    def __init__(self, client: Tacho | None, unguarded: Unguarded) -> None:
        self._client = client
        self._unguarded = unguarded
        self._agents: dict[int, tuple[Agent[Any], Agent[Any]]] = {}
        self._classes: dict[type, type] = {}

    @property
    def _recorder(self) -> Tacho:
        return self._client or tacho.client()

    def _acting(self, context: Any) -> AbstractContextManager[None]:
        return acting(self._recorder.core, getattr(getattr(context, "agent", None), "name", None))

    def _note_sub_agent(self, context: Any, tool: FunctionTool, call_id: str | None) -> None:
        """Records a hand-over to an agent that is called as a tool, in its caller's run."""
        core, agent = self._recorder.core, getattr(context, "agent", None)
        scope = core.current_scope()
        if tool._is_agent_tool and agent is not None and scope is not None:
            safely(self._client, lambda: core.hand_over(scope, agent.name, str(tool._agent_instance.name), call_id), None)

    def agent(self, agent: A) -> A:
        if not isinstance(agent, Agent):
            cannot_guard(self._unguarded, self._client, str(getattr(agent, "name", agent)), "it is no Agent")
            return agent
        if getattr(type(agent), GUARDED, False):
            return agent
        known = self._agents.get(id(agent))
        if known is not None:
            return known[1]  # type: ignore[return-value]
        guarded = copy.copy(agent)
        guarded.__class__ = self._class(type(agent))
        self._agents[id(agent)] = (agent, guarded)
        read_safely(lambda: note_client(getattr(agent.model, "_client"), self._client), None)  # noqa: B009
        guarded.tools = [self._tool(tool) for tool in agent.tools]
        guarded.handoffs = agent.handoffs
        # Reads them now, so that the guard refuses here what it cannot guard.
        _ = guarded.handoffs
        return guarded

    def _class(self, kind: type[Any]) -> Any:
        """
        A class whose instances, and copies made by `clone`, guard whatever the runner asks them for, including tools of MCP
        servers, and tools and hand-offs that are added later.
        """

        async def get_all_tools(agent: Any, run_context: Any) -> list[Any]:
            return [self._tool(tool) for tool in await kind.get_all_tools(agent, run_context)]

        def get_handoffs(agent: Any) -> list[Any]:
            held: list[Any] = vars(agent)["handoffs"]
            held[:] = map(self._handoff, held)
            return held

        def set_handoffs(agent: Any, given: list[Any]) -> None:
            vars(agent)["handoffs"] = [*given]

        if kind not in self._classes:
            members = {
                "get_all_tools": get_all_tools,
                "handoffs": property(get_handoffs, set_handoffs),
                GUARDED: True,
                "__module__": kind.__module__,
                "__doc__": kind.__doc__,
            }
            self._classes[kind] = type(kind.__name__, (kind,), members)
        return self._classes[kind]

    def _handoff(self, handoff: Any) -> Any:
        if not isinstance(handoff, Handoff):
            return self.agent(handoff)
        if getattr(handoff.on_invoke_handoff, GUARDED, False):
            return handoff
        if handoff.input_json_schema.get("properties"):
            why = "it passes arguments of the model to on_handoff"
            cannot_guard(self._unguarded, self._client, handoff.tool_name, why)
        invoke = handoff.on_invoke_handoff

        async def on_invoke_handoff(context: Any, arguments: str) -> Any:
            return self.agent(await invoke(context, arguments))

        setattr(on_invoke_handoff, GUARDED, True)
        guarded = copy.copy(handoff)
        guarded.on_invoke_handoff = on_invoke_handoff
        # A resumed run finds its agents by this reference.
        target = handoff._agent_ref() if handoff._agent_ref else None
        if isinstance(target, Agent):
            guarded._agent_ref = weakref.ref(self.agent(target))
        return guarded

    def _tool(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool):
            kind, name = type(tool).__name__, str(getattr(tool, "name", type(tool).__name__))
            cannot_guard(self._unguarded, self._client, name, f"{kind} does not run through a function of yours")
            return tool
        if is_guarded_tool(tool):
            return tool
        function = getattr(tool, "__wrapped__", None)
        why = _why_not(tool, function)
        if why is not None:
            cannot_guard(self._unguarded, self._client, tool.name, why)
            return tool
        return self._raw_tool(tool) if function is None else self._function_tool(tool, function)

    def _function_tool(self, tool: FunctionTool, given: Callable[..., Any]) -> FunctionTool:
        """The SDK parses the model's text inside the tool, so the tool is made again from its function, guarded."""
        function: Callable[..., Any] = given if inspect.isroutine(given) else getattr(given, "__call__")  # noqa: B004, B009

        @functools.wraps(function)
        async def act(*args: Any, **named: Any) -> Any:
            return await _run(function, args, named)

        adapter = tool._output_type_adapter

        reached: ContextVar[list[bool]] = ContextVar("tacho_reached")
        takes_context = function_schema(function, use_docstring_info=False, strict_json_schema=False).takes_context

        @functools.wraps(function)
        async def guarded(context: ToolContext[Any], /, *args: Any, **named: Any) -> Any:
            given = (context, *args) if takes_context else args
            reached.get().append(True)
            name, call_id = _called(context, tool)
            try:
                with self._acting(context):
                    return await self._recorder.arun_tool(name, act, given, named, tool_call_id=call_id)
            except ToolBlockedError as error:
                # A text is not a valid answer for a tool with a declared output.
                if adapter is not None:
                    raise
                return error.model_text

        setattr(guarded, GUARDED, True)
        if not takes_context:
            _take_context(guarded, function)
        made = function_tool(
            guarded,
            name_override=tool.name,
            use_docstring_info=False,
            strict_mode=tool.strict_json_schema,
            output_type=None if adapter is None else adapter._type,
        )

        async def on_invoke_tool(context: ToolContext[Any], arguments: str) -> Any:
            calls: list[bool] = []
            reached.set(calls)
            said: Any = None
            try:
                said = await made.on_invoke_tool(context, arguments)
            except Exception as error:
                said = error
                raise
            finally:
                # The SDK refused the arguments before it called the function.
                if not calls and said is not None:
                    answer = said
                    safely(self._client, lambda: self._record_unfit(context, tool, answer, arguments), None)
            return said

        setattr(on_invoke_tool, GUARDED, True)
        return dataclasses.replace(tool, on_invoke_tool=on_invoke_tool)

    def _record_unfit(self, context: Any, tool: FunctionTool, answer: object, arguments: str) -> None:
        name, call_id = _called(context, tool)
        code: NeverRan = "unfit" if isinstance(arguments_of(arguments), dict) else "unreadable"
        with self._acting(context):
            record_never_ran(self._recorder.guarding, name, code, str(answer), arguments, call_id)

    def _raw_tool(self, tool: FunctionTool) -> FunctionTool:
        """Guards a tool whose function gets the model's text. Policies judge the text as JSON, if it has only one reading."""
        invoke = tool.on_invoke_tool
        is_agent = tool._is_agent_tool

        async def on_invoke_tool(context: Any, arguments: str) -> Any:
            given = arguments_of(arguments, parse_float=exact_float)
            if not isinstance(given, dict) or (is_agent and not _is_plain_question(given)):
                given = Unreadable()
            name, call_id = _called(context, tool)

            async def act() -> Any:
                self._note_sub_agent(context, tool, call_id)
                return await invoke(context, arguments)

            try:
                with self._acting(context):
                    return await self._recorder.acall_guarded(name, given, act, tool_call_id=call_id)
            except ToolBlockedError as error:
                return error.model_text

        setattr(on_invoke_tool, GUARDED, True)
        # `replace` would call the constructor, and tools of a sandbox have their own.
        guarded = copy.copy(tool)
        guarded.on_invoke_tool = on_invoke_tool
        return guarded


def _called(context: Any, tool: FunctionTool) -> tuple[str, str | None]:
    """The name by which the model called the tool, which a host may have renamed, and the model's id of the call."""
    return getattr(context, "tool_name", None) or tool.name, getattr(context, "tool_call_id", None)


def _why_not(tool: FunctionTool, function: Any) -> str | None:
    if is_generator(function):
        return "it is a generator, whose body runs after the call"
    if tool._is_codex_tool:
        return "Codex runs its own tools"
    if tool._is_agent_tool:
        if not getattr(type(tool._agent_instance), GUARDED, False):
            return "it is an agent whose tools are not guarded; use guard_agent(agent).as_tool(…)"
        if list(tool.params_json_schema.get("properties", {})) != ["input"]:
            return "it is an agent with parameters of its own, which are parsed inside"
    return None


def _is_plain_question(given: dict[str, object]) -> bool:
    """Whether it is the plain question that an agent as a tool takes unchanged."""
    return list(given) == ["input"] and isinstance(given["input"], str)


def _take_context(guarded: Callable[..., Any], function: Callable[..., Any]) -> None:
    """The SDK passes its context, which has the model's id of the call, to a function whose first parameter asks for it."""
    kind = inspect.Parameter.POSITIONAL_ONLY if _begins_positional(function) else inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = inspect.Parameter(_CONTEXT, kind, annotation=ToolContext[Any])
    signature = inspect.signature(function)
    guarded.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])  # type: ignore[attr-defined]
    guarded.__annotations__ = {_CONTEXT: ToolContext[Any], **getattr(guarded, "__annotations__", {})}


def _begins_positional(function: Callable[..., Any]) -> bool:
    parameters = [*inspect.signature(function).parameters.values()]
    return bool(parameters) and parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY


async def _run(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **named)
    return await asyncio.to_thread(function, *args, **named)
