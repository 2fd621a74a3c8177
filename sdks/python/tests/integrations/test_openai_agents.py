from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from conftest import Service

from . import model_server
from .conftest import Scene
from .model_server import ModelServer

agents = pytest.importorskip("agents")


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_an_agent(scene: Scene, model: ModelServer, is_stream: bool, api: str) -> None:
    from openai import AsyncOpenAI

    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

    agents.set_tracing_disabled(True)
    kind = agents.OpenAIChatCompletionsModel if api == "chat" else agents.OpenAIResponsesModel

    async def main() -> Any:
        scripted = kind("scripted-1", openai_client=AsyncOpenAI(base_url=f"{model.url}/v1"))
        tool = agents.function_tool(scene.refund)
        agent = guard_agent(agents.Agent(name="Refunds", model=scripted, tools=[tool]), scene.tacho)
        options: dict[str, Any] = {"input": "Refund 1, 2 and 3", "hooks": TachoHooks(scene.tacho)}
        async with scene.tacho.run():
            if not is_stream:
                return await agents.Runner.run(agent, **options)
            result = agents.Runner.run_streamed(agent, **options)
            async for _ in result.stream_events():
                pass
            return result

    result = asyncio.run(main())
    answers = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    scene.check(provider=None, answer=result.final_output, messages=answers)


def _asked(given: dict[str, Any]) -> tuple[Any, Any]:
    """A model: the outer agent calls both other agents at once, and each of these calls one refund."""
    name = given["messages"][0]["content"]
    is_done = any(message["role"] == "tool" for message in given["messages"])
    order = {"first": 1, "second": 3}.get(name)
    asked = [("refund", {"order": order, "amount": 5})] if order else [("first", {"input": "?"}), ("second", {"input": "?"})]
    functions = [{"name": tool, "arguments": json.dumps(arguments)} for tool, arguments in asked]
    calls = [{"id": f"{name}-{n}", "type": "function", "function": one} for n, one in enumerate(functions)]
    message = {"role": "assistant", "content": "Done."} if is_done else {"role": "assistant", "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "stop" if is_done else "tool_calls"}
    return {"id": "c", "created": 1, "model": "m", "object": "chat.completion", "choices": [choice]}, ()


def test_agents_as_tools_in_parallel(
    scene: Scene, service: Service, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each guarded call is recorded below its own agent, and none is reported as never run."""
    from openai import AsyncOpenAI

    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

    monkeypatch.setitem(model_server.ROUTES, "/v1/chat/completions", _asked)
    agents.set_tracing_disabled(True)
    scripted = agents.OpenAIChatCompletionsModel("m", openai_client=AsyncOpenAI(base_url=f"{model.url}/v1"))

    def guarded(name: str, tools: list[Any]) -> Any:
        return guard_agent(agents.Agent(name=name, instructions=name, model=scripted, tools=tools), scene.tacho)

    def as_tool(name: str) -> Any:
        inner = guarded(name, [agents.function_tool(scene.refund)])
        return inner.as_tool(name, "Asks.", hooks=TachoHooks(scene.tacho))

    async def main() -> None:
        async with scene.tacho.run():
            outer = guarded("outer", [as_tool("first"), as_tool("second")])
            await agents.Runner.run(outer, "Refund both", hooks=TachoHooks(scene.tacho))

    asyncio.run(main())
    scene.tacho.flush(120)
    calls = [event for event in service.events if event["eventType"] == "TOOL_CALL"]
    above = {event["spanId"]: event["label"] for event in calls}
    places = sorted((event["label"], above.get(event["parentSpanId"])) for event in calls if event["label"] == "refund")
    assert places == [("refund", "first"), ("refund", "second")]
    assert {event["payload"]["outcome"] for event in calls} == {"returned"}
