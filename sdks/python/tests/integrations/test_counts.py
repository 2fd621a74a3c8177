"""A model call counts once, with all counts of the provider, even if several of the host's recorders see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import Client, Service
from tacho_sdk.recording.usage_shapes import gateway_cost, metadata_cost

from .answers import Answer, AnswerServer
from .life import PLAYS, installed

Make = Callable[..., Client]
USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 50,
    "total_tokens": 1_050,
    "prompt_tokens_details": {"audio_tokens": 900, "cached_tokens": 1},
    "completion_tokens_details": {"audio_tokens": 40, "reasoning_tokens": 2},
}
WANT = {"promptTokens": 1_000, "completionTokens": 50, "audioInputTokens": 900, "audioOutputTokens": 40}


@pytest.fixture
def url() -> Iterator[str]:
    server = AnswerServer(Answer(usage=USAGE))
    yield server.url
    server.close()


def calls_of(client: Client, service: Service) -> list[dict[str, Any]]:
    client.tacho.flush(120)
    return [event["payload"] for event in service.events if event["eventType"] == "LLM_CALL"]


# Without audio tokens: Anthropic and the responses of OpenAI Agents have none, and CrewAI does not pass them on.
NONE = ("anthropic", "crewai", "openai_agents")


@pytest.mark.parametrize("name", [name for name in installed() if name not in NONE])
def test_audio_tokens_are_kept(make: Make, service: Service, url: str, name: str) -> None:
    client = make()

    async def main() -> None:
        async with client.tacho.run():
            await PLAYS[name](client.tacho, url, [], False)

    asyncio.run(main())
    (call,) = calls_of(client, service)
    assert WANT.items() <= call["usage"].items()


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("framework", ["langchain", "pydantic_ai", "openai_agents"])
def test_a_recorded_client_below_a_recorded_framework_counts_once(
    make: Make, service: Service, url: str, framework: str, is_stream: bool
) -> None:
    """The host owns the model's client. Calls outside the framework are still recorded."""
    pytest.importorskip({"langchain": "langgraph", "openai_agents": "agents"}.get(framework, framework))
    from openai import AsyncOpenAI

    from tacho_sdk.integrations.openai import record_client

    client = make()
    sdk = record_client(AsyncOpenAI(base_url=f"{url}/v1", api_key="k"), client.tacho)

    async def langchain() -> None:
        from langchain_openai import ChatOpenAI

        from tacho_sdk.integrations.langchain import TachoHandler

        handler = TachoHandler(client.tacho)
        chat = ChatOpenAI(model="m", api_key="k", async_client=sdk.chat.completions, callbacks=[handler], streaming=is_stream)  # type: ignore[arg-type]
        await chat.ainvoke("Go", {"callbacks": [TachoHandler(client.tacho)]})

    async def pydantic_ai() -> None:
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        from tacho_sdk.integrations.pydantic_ai import record_model

        agent: Any = Agent(record_model(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=sdk)), client.tacho))
        if is_stream:
            async with agent.run_stream("Go") as result:
                await result.get_output()
        else:
            await agent.run("Go")

    async def openai_agents() -> None:
        from agents import Agent, OpenAIChatCompletionsModel, Runner

        from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

        agent = guard_agent(Agent(name="a", model=OpenAIChatCompletionsModel("m", sdk)), client.tacho)
        if is_stream:
            async for _ in Runner.run_streamed(agent, "Go", hooks=TachoHooks(client.tacho)).stream_events():
                pass
        else:
            await Runner.run(agent, "Go", hooks=TachoHooks(client.tacho))

    async def main() -> None:
        async with client.tacho.run():
            await {"langchain": langchain, "pydantic_ai": pydantic_ai, "openai_agents": openai_agents}[framework]()
            await sdk.chat.completions.create(model="m", messages=[])

    asyncio.run(main())
    by_framework, own = calls_of(client, service)
    assert own["messages"] == [] and by_framework["messages"] != []
    if not is_stream:
        assert WANT.items() <= by_framework["usage"].items()
    else:
        assert "usage" not in by_framework


@pytest.mark.parametrize("name", [name for name in ("openai", "langchain") if name in installed()])
@pytest.mark.parametrize("cost", [0.0123, "0.0123", {"input_tokens_cost": 0.01, "total_cost": 0.0123}])
def test_what_a_gateway_says_it_charges_is_the_cost(make: Make, service: Service, name: str, cost: object) -> None:
    client, server = make(), AnswerServer(Answer(usage={**USAGE, "cost": cost}))

    async def main() -> None:
        async with client.tacho.run():
            await PLAYS[name](client.tacho, server.url, [], False)

    asyncio.run(main())
    server.close()
    (call,) = calls_of(client, service)
    assert call["cost"] == 0.0123


def test_the_cost_in_what_a_gateway_adds_to_an_answer() -> None:
    assert metadata_cost(None, {"gateway": {"cost": "0.0123"}}) == 0.0123
    assert metadata_cost(None, {"openrouter": {"usage": {"cost": 0.0123}}}) == 0.0123
    costs: tuple[object, ...] = (None, "", "free", -1, float("nan"), float("inf"), "1e999", True, [1], {})
    for cost in costs:
        assert gateway_cost({"cost": cost}) is None
    assert gateway_cost({"cost": 0}) == 0
