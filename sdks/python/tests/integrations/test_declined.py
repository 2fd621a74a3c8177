"""A call that a person declines in the framework's own way never runs, and its record says so."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Client, Service

from .answers import Answer, AnswerServer

Make = Callable[..., Client]
ASKED = Answer((("c1", "refund", '{"order": 7}'), ("c2", "refund", '{"order": 8}')))


@pytest.fixture
def url() -> Any:
    server = AnswerServer(ASKED)
    yield server.url
    server.close()


def refund(order: int) -> str:
    """Refunds an order."""
    return "refunded"


def check(client: Client, service: Service) -> None:
    client.tacho.flush(120)
    calls = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    states = sorted((one["toolCallId"], one["outcome"], one.get("reasonCode")) for one in calls)
    assert states == [("c1", "never_ran", "declined"), ("c2", "returned", None)]
    (declined,) = [one for one in calls if one["toolCallId"] == "c1"]
    assert "not today" in declined["error"]["message"] and "7" in str(declined["arguments"])
    assert service.of("/issue-records") == []


def events_of(service: Service, run_id: str) -> list[dict[str, Any]]:
    return [event for event in service.events if event["runId"] == run_id]


def check_waits(client: Client, service: Service) -> None:
    client.tacho.flush(120)
    last = events_of(service, "asks")[-1]
    assert (last["eventType"], last["label"]) == ("WAITING", "refund waits for a person")
    assert last["payload"] == {"waitingFor": "approval", "toolName": "refund", "toolCallId": "c1"}


def check_ended(service: Service) -> None:
    """The decision arrives in another run, so the run that asked gets no further events."""
    ends = [[event["eventType"] for event in events_of(service, run_id)][-2:] for run_id in ("asks", "answers")]
    assert ends == [["WAITING", "SESSION_OUTCOME"], ["LLM_CALL", "SESSION_OUTCOME"]]


def test_pydantic_ai(make: Make, service: Service, url: str) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied
    from pydantic_ai.toolsets import ApprovalRequiredToolset, FunctionToolset

    from tacho_sdk.integrations.pydantic_ai import guard_toolset, record_model

    client = make()
    model = record_model(OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k")), client.tacho)
    inner: Any = FunctionToolset([refund])
    toolset = guard_toolset(ApprovalRequiredToolset(inner), client.tacho)
    agent: Any = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    with client.tacho.run(run_id="asks"):
        paused = agent.run_sync("Go")
    check_waits(client, service)
    with client.tacho.run(run_id="answers"):
        results = DeferredToolResults(approvals={"c1": ToolDenied("not today"), "c2": True})
        agent.run_sync(message_history=paused.all_messages(), deferred_tool_results=results)
    check(client, service)
    check_ended(service)


@pytest.mark.parametrize("is_stream", [False, True])
def test_openai_agents(make: Make, service: Service, url: str, is_stream: bool) -> None:
    agents: Any = pytest.importorskip("agents")
    from openai import AsyncOpenAI

    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

    client = make()
    model = agents.OpenAIResponsesModel("m", AsyncOpenAI(base_url=f"{url}/v1", api_key="k"))
    tool = agents.function_tool(refund, needs_approval=True)
    agent = guard_agent(agents.Agent(name="a", model=model, tools=[tool]), client.tacho)

    async def run(given: Any) -> Any:
        if not is_stream:
            return await agents.Runner.run(agent, given, hooks=TachoHooks(client.tacho))
        result = agents.Runner.run_streamed(agent, given, hooks=TachoHooks(client.tacho))
        async for _ in result.stream_events():
            pass
        return result

    async def main() -> None:
        async with client.tacho.run(run_id="asks"):
            paused = await run("Go")
        check_waits(client, service)
        async with client.tacho.run(run_id="answers"):
            state = paused.to_state()
            first, second = paused.interruptions
            state.reject(first, rejection_message="not today")
            state.approve(second)
            await run(state)

    asyncio.run(main())
    check(client, service)
    check_ended(service)


@pytest.mark.parametrize("kind", ["node", "middleware"])
def test_langgraph(make: Make, service: Service, url: str, kind: str) -> None:
    pytest.importorskip("langgraph")
    if kind == "middleware" and not importlib.util.find_spec("langchain"):
        pytest.skip("the middleware needs langchain, which is not installed")
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.prebuilt import create_react_agent
    from langgraph.types import Command, interrupt

    from tacho_sdk.integrations.langchain import TachoHandler, guard_tools

    client = make()
    chat = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k")  # type: ignore[arg-type]
    tools = guard_tools([tool(refund)], client.tacho)
    agent: Any
    if kind == "middleware":
        langchain_agents: Any = importlib.import_module("langchain.agents")
        middleware: Any = importlib.import_module("langchain.agents.middleware")
        asking = middleware.HumanInTheLoopMiddleware(interrupt_on={"refund": True})
        agent = langchain_agents.create_agent(chat, tools, middleware=[asking], checkpointer=InMemorySaver())
        resume: Any = {"decisions": [{"type": "reject", "message": "not today"}, {"type": "approve"}]}
    else:

        def ask(state: Any) -> Any:
            last = state["messages"][-1]
            if len(last.tool_calls) < 2:
                return {}
            said = interrupt("Refund?")
            return {"messages": [ToolMessage(said, tool_call_id=last.tool_calls[0]["id"], status="error")]}

        agent = create_react_agent(chat, tools, post_model_hook=ask, checkpointer=InMemorySaver())
        resume = "not today"
    turns: list[tuple[str, Any]] = [("asks", {"messages": "Go"}), ("answers", Command(resume=resume))]
    for run_id, given in turns:
        with client.tacho.run(run_id=run_id):
            agent.invoke(given, {"callbacks": [TachoHandler(client.tacho)], "configurable": {"thread_id": "1"}})
        if run_id == "asks":
            check_waits(client, service)
    check(client, service)
    assert [event["eventType"] for event in events_of(service, "asks")][-2:] == ["WAITING", "SESSION_OUTCOME"]
    assert events_of(service, "answers")[-1]["eventType"] == "SESSION_OUTCOME"
