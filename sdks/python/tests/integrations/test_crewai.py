"""Needs a separate environment (requirements-crewai.in), because CrewAI needs older versions of other packages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Client, Service

from .conftest import Leaving, Scene
from .model_server import ModelServer

crewai = pytest.importorskip("crewai")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")


def own_tool(scene: Scene) -> Any:
    class Refund(crewai.tools.BaseTool):  # type: ignore[misc, name-defined]
        name: str = "Refund"
        description: str = "Refunds an order."

        def _run(self, order: int, amount: int) -> str:
            return scene.refund(order, amount)

    return Refund()


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("kind", ["function", "class"])
def test_a_crew(scene: Scene, model: ModelServer, is_stream: bool, kind: str) -> None:
    from crewai.events import crewai_event_bus
    from crewai.tools import tool

    from tacho_sdk.integrations.crewai import TachoListener, guard_tools

    with crewai_event_bus.scoped_handlers():
        TachoListener(scene.tacho)
        tools = [tool("refund")(scene.refund) if kind == "function" else own_tool(scene)]
        llm = crewai.LLM(model="openai/scripted-1", base_url=f"{model.url}/v1", api_key="key", stream=is_stream)
        agent = crewai.Agent(
            role="Refunds", goal="Refund", backstory="A shop", llm=llm, tools=guard_tools(tools, scene.tacho), verbose=False
        )
        task = crewai.Task(description="Refund 1, 2 and 3", expected_output="A sentence", agent=agent)
        with scene.tacho.run():
            result = crewai.Crew(agents=[agent], tasks=[task], verbose=False).kickoff()
        last = model.requests[-1][1]["messages"]
        answers = [message["content"] for message in last if message["role"] == "tool"]
    scene.check(provider=None, answer=result.raw, messages=answers, is_stream=is_stream, prompt=None)


def test_an_async_tool_outside_a_run_is_a_run_of_its_own(scene: Scene) -> None:
    from crewai.tools import tool

    from tacho_sdk.integrations.crewai import guard_tools

    async def refund(order: int, amount: int) -> str:
        """Refunds an order."""
        return scene.refund(order, amount)

    (guarded,) = guard_tools([tool("refund")(refund)], scene.tacho)
    assert guarded.run(order=1, amount=10) == "refunded 10 for 1"
    # The refusal is an answer, not an error, because CrewAI repeats a call that raises.
    assert "A policy forbids this call" in guarded.run(order=2, amount=500).as_agent_message()
    assert scene.ran == [1]


@pytest.mark.parametrize("kind", ["max_execution_time", "kickoff_async"])
def test_a_crew_that_gave_up_runs_nothing_later(
    make: Callable[..., Client], service: Service, model: ModelServer, kind: str
) -> None:
    from crewai.tools import tool

    from tacho_sdk.integrations.crewai import guard_tools

    leaving, client, ran = Leaving(service), make().tacho, list[int]()

    def refund(order: int, amount: int) -> str:
        """Refunds an order."""
        ran.append(order)
        return "refunded"

    llm = crewai.LLM(model="openai/scripted-1", base_url=f"{model.url}/v1", api_key="key")
    limit = {"max_execution_time": 5} if kind == "max_execution_time" else {}
    tools = guard_tools([tool("refund")(refund)], client)
    agent = crewai.Agent(role="R", goal="Refund", backstory="A shop", llm=llm, tools=tools, max_retry_limit=0, **limit)
    task = crewai.Task(description="Refund 1, 2 and 3", expected_output="A sentence", agent=agent)
    crew = crewai.Crew(agents=[agent], tasks=[task])

    async def main() -> None:
        running = asyncio.ensure_future(crew.kickoff_async())
        await asyncio.to_thread(leaving.until_held)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(running, 0.1)

    with client.run():
        if kind == "kickoff_async":
            asyncio.run(main())
        else:
            with pytest.raises(TimeoutError):
                crew.kickoff()
        leaving.check(client, ran, {"cancelled"}, by_time=kind == "max_execution_time")
