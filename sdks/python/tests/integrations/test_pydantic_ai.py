from __future__ import annotations

import asyncio
from typing import Any

import pytest

from .conftest import Scene
from .model_server import ModelServer

pytest.importorskip("pydantic_ai")


@pytest.mark.parametrize("is_stream", [False, True])
def test_an_agent(scene: Scene, model: ModelServer, is_stream: bool) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.toolsets import FunctionToolset

    from tacho_sdk.integrations.pydantic_ai import guard_toolset, record_model

    async def main() -> Any:
        scripted = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{model.url}/v1", api_key="key"))
        toolset: FunctionToolset[Any] = FunctionToolset([scene.refund])
        agent = Agent(record_model(scripted, scene.tacho), toolsets=[guard_toolset(toolset, scene.tacho)])
        async with scene.tacho.run():
            if not is_stream:
                result = await agent.run("Refund 1, 2 and 3")
                return result.output, result.all_messages()
            async with agent.run_stream("Refund 1, 2 and 3") as stream:
                text = await stream.get_output()
            return text, stream.all_messages()

    text, messages = asyncio.run(main())
    answers = [part.content for message in messages for part in message.parts if part.part_kind == "tool-return"]
    scene.check(provider="openai", answer=text, messages=answers, is_stream=is_stream)
