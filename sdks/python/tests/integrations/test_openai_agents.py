from __future__ import annotations

import asyncio
from typing import Any

import pytest

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
