"""
Pydantic AI.

    agent = Agent(record_model(model), toolsets=[guard_toolset(FunctionToolset([refund]))])
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.toolsets import AbstractToolset

import tacho_sdk as tacho_module

from ..client import Tacho
from ..guarding.asked_calls import record_never_ran
from ..recording.usage_shapes import gateway_cost
from .border import safely
from .messages import Message, parsed
from .model_call import ClientCall, ModelCall, NotedCall, nonzero_usage
from .pydantic_ai_tools import guarded_toolset, note_agent
from .unguarded import Unguarded

_ROLES = {"system-prompt": "system", "user-prompt": "user", "retry-prompt": "user", "tool-return": "tool"}


def record_model(model: Model, tacho: Tacho | None = None) -> Model:
    """
    A model whose calls, streamed or not, are recorded as LLM_CALL events of the current run; outside a run, each becomes a run
    of its own.
    """
    return _RecordedModel(model, tacho)


class _RecordedModel(WrapperModel):
    def __init__(self, model: Model, tacho: Tacho | None) -> None:
        super().__init__(model)
        self._tacho = tacho

    def _begin(self, messages: list[ModelMessage]) -> ClientCall:
        unrecorded: ClientCall = NotedCall(self._tacho, None)
        return safely(self._tacho, lambda: self._entered(messages), unrecorded)

    def _entered(self, messages: list[ModelMessage]) -> ClientCall:
        client = self._tacho or tacho_module.client()
        agent = safely(client, lambda: note_agent(client), None)
        safely(client, lambda: _record_denied(client, messages), None)

        def request() -> dict[str, Any]:
            said = [one for message in messages for one in _messages_of(message)]
            facts = {"model": self.wrapped.model_name, "provider": self.wrapped.system, "messages": said}
            return facts if agent is None else {**facts, "agent": agent}

        call = ModelCall(self._tacho, request)
        call.enter()
        return call

    async def request(self, messages: list[ModelMessage], *more: Any, **named: Any) -> ModelResponse:
        call = self._begin(messages)
        try:
            response = await super().request(messages, *more, **named)
        except BaseException as error:
            call.fail(error)
            raise
        call.end(lambda: _result_of(response))
        safely(self._tacho, lambda: self._record_lost(response, more), None)
        return response

    @asynccontextmanager
    async def request_stream(self, messages: list[ModelMessage], *more: Any, **named: Any) -> AsyncIterator[Any]:
        call = self._begin(messages)
        stream: Any = None

        def partial() -> dict[str, Any]:
            return {} if stream is None else _result_of(stream.get())

        try:
            async with super().request_stream(messages, *more, **named) as stream:
                call.token()
                call.opened(lambda: call.abort(partial))
                yield stream
        except BaseException as error:
            call.fail(error, partial)
            raise
        response = stream.get()
        # The reader left the stream.
        if response.finish_reason is None and getattr(stream, "state", "complete") != "complete":
            call.abort(partial)
        else:
            call.end(lambda: _result_of(response))
        safely(self._tacho, lambda: self._record_lost(response, more), None)

    def _record_lost(self, response: ModelResponse, more: tuple[Any, ...]) -> None:
        """Records calls that Pydantic AI answers itself, because no toolset has them."""
        (offered,) = [one for one in more if isinstance(one, ModelRequestParameters)]
        known = {tool.name for tool in (*offered.function_tools, *offered.output_tools)}
        outputs = {tool.name for tool in offered.output_tools}
        calls = [part for part in response.parts if part.part_kind == "tool-call"]
        # Pydantic AI runs each call, unless an output ends the run or a person must approve it.
        runs = set() if any(part.tool_name in outputs for part in calls) else _run_here(offered)
        guarding = (self._tacho or tacho_module.client()).guarding
        scope = guarding.core.current_scope()
        for part in calls:
            if part.tool_name in runs and scope is not None:
                guarding.core.asked_calls.waits(scope, part.tool_name, part.tool_call_id)
            if part.tool_name not in known:
                answer = f"There is no tool {part.tool_name}."
                record_never_ran(guarding, part.tool_name, "unknown_tool", answer, part.args, part.tool_call_id)


def _run_here(offered: ModelRequestParameters) -> set[str]:
    return {tool.name for tool in offered.function_tools if tool.kind in ("function", "unapproved")}


def _record_denied(client: Tacho, messages: list[ModelMessage]) -> None:
    """Records calls that a person denied in the framework, because no toolset is asked to run them."""
    asked = {part.tool_call_id: part for message in messages for part in message.parts if part.part_kind == "tool-call"}
    for part in messages[-1].parts:
        client.core.asked_calls.goes_on(client.core, getattr(part, "tool_call_id", None))
        if part.part_kind == "tool-return" and part.outcome == "denied":
            call = asked.get(part.tool_call_id)
            arguments = None if call is None else parsed(call.args)
            record_never_ran(client.guarding, part.tool_name, "declined", str(part.content), arguments, part.tool_call_id)


def _messages_of(message: ModelMessage) -> list[Message]:
    if isinstance(message, ModelResponse):
        return [_answer_of(message)]
    said: list[Message] = []
    for part in message.parts:
        one: Message = {"role": _ROLES.get(part.part_kind, part.part_kind), "content": getattr(part, "content", None)}
        call_id = getattr(part, "tool_call_id", None)
        said.append({**one, "toolCallId": call_id} if part.part_kind == "tool-return" else one)
    return said


def _answer_of(response: ModelResponse) -> Message:
    texts = [part.content for part in response.parts if part.part_kind == "text"]
    calls = [
        {"id": part.tool_call_id, "name": part.tool_name, "arguments": parsed(part.args)}
        for part in response.parts
        if part.part_kind == "tool-call"
    ]
    answer: Message = {"role": "assistant"}
    if texts:
        answer["content"] = "\n".join(texts)
    return {**answer, "toolCalls": calls} if calls else answer


def _result_of(response: ModelResponse) -> dict[str, Any]:
    return {
        "model": response.model_name,
        "output": _answer_of(response),
        "finishReason": response.finish_reason,
        "usage": nonzero_usage(response.usage),
        "cost": gateway_cost(response.provider_details),
    }


def guard_toolset(
    toolset: AbstractToolset[Any], tacho: Tacho | None = None, *, unguarded: Unguarded = "refuse"
) -> AbstractToolset[Any]:
    """
    A toolset whose tools are guarded: policies decide each call on its validated arguments, a person approves it if a policy
    requires that, and the call is recorded as a TOOL_CALL. A refusal is the tool's answer, which the model reads. Tools that
    are given to the agent itself (`@agent.tool`) are not guarded: put them into a `FunctionToolset`.

    Raises CannotGuardError for what it cannot guard, such as tools that run elsewhere; `unguarded="allow"` lets these run
    unguarded, and reports that.
    """
    return guarded_toolset(toolset, tacho, unguarded)
