"""
The OpenAI Agents SDK.

    result = await Runner.run(guard_agent(agent), "Refund order 7", hooks=TachoHooks())
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from agents import Agent, FunctionTool, Handoff, RunHooks

import tacho_sdk as tacho_module

from ..client import Tacho
from ..core import Core
from ..guarding.asked_calls import record_never_ran
from ..guarding.blocked import ToolBlockedError
from ..guarding.guard import Guard
from ..recording.context import RunScope
from .border import Bordered, safely
from .messages import answer_of, fields_of, messages_of, with_system
from .model_call import ModelCall, nonzero_usage
from .openai_agents_tools import Guarding, is_guarded_tool
from .unguarded import Unguarded

A = TypeVar("A", bound=Agent[Any])

# Bounds the calls whose end is never reported.
_OPEN_MAX = 10_000
_ENDED = "The run ended before the call."


class TachoHooks(Bordered, RunHooks[Any]):
    """
    Records the model calls of `Runner.run`, streamed or not, as LLM_CALL events of the current run; outside a run,
    each becomes a run of its own. Pass it as `hooks`. One object may serve all runs. The SDK calls no hook for a call
    that fails, or a stream that is left: these are recorded if the agent is guarded (`guard_agent`).
    """

    def __init__(self, tacho: Tacho | None = None) -> None:
        self._tacho = tacho
        self._calls: dict[int, ModelCall] = {}
        self._behind: dict[int, _Behind] = {}
        self._asked: dict[int, dict[str, Any]] = {}
        """
        Ids of the calls that the last answer asked for, by run and tool. The usage object, which its contexts share, identifies
        a run.
        """

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        def request() -> dict[str, Any]:
            model = getattr(agent, "model", None)
            name = model if isinstance(model, str) else getattr(model, "model", None)
            scope = self._core.current_scope()
            acting = None if scope is None else scope.team.naming(agent.name)
            request = {"model": name, "messages": with_system(system_prompt, messages_of(input_items))}
            return request if acting is None else {**request, "agent": acting}

        if len(self._calls) >= _OPEN_MAX:
            self._calls.pop(next(iter(self._calls)), None)
        safely(self._tacho, lambda: self._record_rejected(context, input_items), None)
        self._go_on(context)
        self._calls[id(context)] = call = _AgentCall(self._tacho, request)
        call.enter_run()

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        call = self._calls.pop(id(context), None)
        if call:
            call.end(lambda: _result_of(response))
        await self._record_unknown(context, agent, response)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self._go_on(context)
        self._core.asked_calls.goes_on(self._core, getattr(context, "tool_call_id", None))

    def _go_on(self, context: Any) -> None:
        """Called when the SDK continues after an answer with a call of an unknown tool."""
        behind = self._behind.pop(id(context.usage), None)
        if behind is not None:
            behind.scope.open_streams.pop(behind, None)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        if (scope := self._core.current_scope()) is not None:
            asked = self._asked.pop(id(context.usage), {})
            names = [_handoff_name(one) for one in from_agent.handoffs if _target_of(one) == to_agent.name]
            call_id = next((asked[name] for name in names if name in asked), None)
            self._core.hand_over(scope, from_agent.name, to_agent.name, call_id)

    @property
    def _core(self) -> Core:
        return (self._tacho or tacho_module.client()).core

    def _record_rejected(self, context: Any, items: list[Any]) -> None:
        """Records calls that a person rejected in the framework, because the SDK does not call their tools."""
        read = [fields_of(item) for item in items]
        asked = {item.get("call_id"): item for item in read if item.get("type") == "function_call"}
        guarding = (self._tacho or tacho_module.client()).guarding
        for answer in reversed(read):
            if answer.get("type") != "function_call_output":
                return
            call = asked.get(answer.get("call_id"))
            if call is not None and context.is_tool_approved(call["name"], call["call_id"]) is False:
                answer_text, arguments = str(answer.get("output")), call.get("arguments")
                record_never_ran(guarding, call["name"], "declined", answer_text, arguments, call["call_id"])

    async def _record_unknown(self, context: Any, agent: Any, response: Any) -> None:
        """Records calls of unknown tools, for which the SDK ends the run."""
        calls = [fields_of(item) for item in response.output]
        asked = [call for call in calls if call.get("type") == "function_call"]
        if not asked:
            return
        if len(self._asked) >= _OPEN_MAX:
            self._asked.pop(next(iter(self._asked)), None)
        self._asked[id(context.usage)] = {call["name"]: call.get("call_id") for call in asked}
        tools = {tool.name: tool for tool in await agent.get_all_tools(context)}
        known = {*tools} | {_handoff_name(one) for one in agent.handoffs}
        guarding = (self._tacho or tacho_module.client()).guarding
        unknown = [call for call in asked if call["name"] not in known]
        for call in unknown:
            answer = f"There is no tool {call['name']}."
            record_never_ran(guarding, call["name"], "unknown_tool", answer, call.get("arguments"), call.get("call_id"))
        scope = self._core.current_scope()
        for call in asked:
            tool = tools.get(call["name"])
            asks = isinstance(tool, FunctionTool) and is_guarded_tool(tool) and tool.needs_approval
            if asks and scope is not None and context.is_tool_approved(call["name"], call["call_id"]) is None:
                self._core.asked_calls.waits(scope, call["name"], call["call_id"])
        if unknown and scope is not None:
            if len(self._behind) >= _OPEN_MAX:
                self._behind.pop(next(iter(self._behind)), None)
            self._behind[id(context.usage)] = _Behind(guarding, scope, [call for call in asked if call not in unknown])


class _Behind:
    """Calls that never run if the SDK ends the run because of another call of the same answer."""

    def __init__(self, guarding: Guard, scope: RunScope, calls: list[Any]) -> None:
        self.scope = scope
        self._guarding = guarding
        self._calls = calls
        scope.open_streams[self] = self.leave

    def leave(self) -> None:
        for call in self._calls:
            call_id = call.get("call_id") or call.get("id")
            record_never_ran(self._guarding, call["name"], None, _ENDED, call.get("arguments"), call_id, self.scope)


class _AgentCall(ModelCall):
    """Records an incomplete response, for which the SDK ends the run and calls no hook."""

    def add_below(self, result: Mapping[str, Any]) -> None:
        super().add_below(result)
        if result.get("finishReason") != "incomplete":
            # The SDK refuses an answer whose calls share an id, and calls no hook for it either.
            self.opened(lambda: self._leave(result))
            return
        self.end(lambda: {**result})
        for call in fields_of(result.get("output")).get("toolCalls") or ():
            answer_text = ToolBlockedError("call_cut", call["name"]).model_text
            record_never_ran(self._tacho.guarding, call["name"], "cut", answer_text, call.get("arguments"), call.get("id"))

    def _leave(self, result: Mapping[str, Any]) -> None:
        self.end(lambda: {**result})
        _Behind(self._tacho.guarding, self._scope, fields_of(result.get("output")).get("toolCalls") or []).leave()

    def below_failed(self, error: BaseException | None, result: Any) -> None:
        """The SDK does not report a call that fails, or a stream that is left."""
        if error is None:
            self.abort(result)
        else:
            self.fail(error, result)


def _handoff_name(handoff: Any) -> str:
    return handoff.tool_name if isinstance(handoff, Handoff) else Handoff.default_tool_name(handoff)


def _target_of(handoff: Any) -> str:
    return str(handoff.agent_name if isinstance(handoff, Handoff) else handoff.name)


def _result_of(response: Any) -> dict[str, Any]:
    parts: list[Any] = []
    for item in response.output:
        read = fields_of(item)
        parts.extend(read.get("content") or () if read.get("type") == "message" else [item])
    return {
        "output": answer_of(parts),
        "finishReason": "incomplete" if any(fields_of(one).get("status") == "incomplete" for one in response.output) else None,
        "usage": nonzero_usage(response.usage),
    }


def guard_agent(agent: A, tacho: Tacho | None = None, *, unguarded: Unguarded = "refuse") -> A:
    """
    A copy of the agent whose tools are guarded, also those of its MCP servers, those that are added later, and those of the
    agents it hands over to: policies decide each call on what the tool's function gets, a person approves it if a policy
    requires that, and the call is recorded as a TOOL_CALL. A refusal is the tool's answer, which the model reads.

    Raises CannotGuardError for what it cannot guard: shells, custom tools, tools that run at OpenAI, and an agent as a tool
    that is not guarded itself. `unguarded="allow"` lets these run unguarded, and reports that.
    """
    return Guarding(tacho, unguarded).agent(agent)
