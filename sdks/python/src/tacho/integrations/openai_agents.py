"""
The OpenAI Agents SDK.

    result = await Runner.run(guard_agent(agent), "Refund order 7", hooks=TachoHooks())
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool, RunHooks

import tacho as tacho_module

from ..client import Tacho
from ..guarding.blocked import ToolBlockedError
from ..recording.plain import read_safely
from .messages import answer_of, fields_of, messages_of, with_system
from .model_call import ModelCall, usage_of
from .tool_calls import arguments_of

# Bounds the calls whose end is never reported.
_OPEN_MAX = 10_000


class TachoHooks(RunHooks[Any]):
    """
    Records the model calls of `Runner.run`, streamed or not, as LLM_CALL events of the current run; outside a run, each becomes
    a run of its own. Pass it as `hooks`. One object may serve all runs. A call that fails is not recorded, because the SDK
    tells no hook of it.
    """

    def __init__(self, tacho: Tacho | None = None) -> None:
        self._tacho = tacho
        self._calls: dict[int, ModelCall] = {}

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        def request() -> dict[str, Any]:
            model = getattr(agent, "model", None)
            name = model if isinstance(model, str) else getattr(model, "model", None)
            return {"model": name, "messages": with_system(system_prompt, messages_of(input_items))}

        if len(self._calls) >= _OPEN_MAX:
            self._calls.pop(next(iter(self._calls)), None)
        self._calls[id(context)] = ModelCall(self._tacho, request)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        call = self._calls.pop(id(context), None)
        if call:
            call.end(lambda: _result_of(response))


def _result_of(response: Any) -> dict[str, Any]:
    parts: list[Any] = []
    for item in response.output:
        read = fields_of(item)
        parts.extend(read.get("content") or () if read.get("type") == "message" else [item])
    usage = response.usage
    details, out = fields_of(usage.input_tokens_details), fields_of(usage.output_tokens_details)
    return {
        "output": answer_of(parts),
        "usage": usage_of(
            promptTokens=usage.input_tokens,
            completionTokens=usage.output_tokens,
            totalTokens=usage.total_tokens,
            cachedTokens=details.get("cached_tokens"),
            reasoningTokens=out.get("reasoning_tokens"),
        ),
    }


def guard_agent(agent: Agent[Any], tacho: Tacho | None = None) -> Agent[Any]:
    """
    A copy of the agent whose function tools are guarded: policies decide each call, a person approves it if a policy requires
    that, and the call is recorded as a TOOL_CALL. A refusal is the tool's answer, which the model reads. Tools that run at
    OpenAI, and those of MCP servers and of agents it hands over to, are not guarded.
    """
    tools = [_guard_tool(tool, tacho) if isinstance(tool, FunctionTool) else tool for tool in agent.tools]
    return agent.clone(tools=tools)


def _guard_tool(tool: FunctionTool, tacho: Tacho | None) -> FunctionTool:
    invoke: Callable[..., Any] = tool.on_invoke_tool

    async def on_invoke_tool(context: Any, arguments: str) -> Any:
        client = tacho or tacho_module.client()

        async def act() -> Any:
            return await invoke(context, arguments)

        given = read_safely(lambda: arguments_of(arguments), arguments)
        try:
            if client.current_run() is not None:
                return await client.acall_guarded(tool.name, given, act)
            async with client.run(agent_name=read_safely(lambda: str(context.agent.name), None)):
                return await client.acall_guarded(tool.name, given, act)
        except ToolBlockedError as error:
            return error.model_text

    return dataclasses.replace(tool, on_invoke_tool=on_invoke_tool)
