"""
The same agent in each framework, for the last rows of docs/integrations/guarded.md. Each function gets a client, the URL of the
model, tools as functions, and whether the model streams.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tacho_sdk import Tacho

Tools = list[Callable[..., Any]]
Play = Callable[[Tacho, str, Tools, bool], Awaitable[object]]
"""Its answer is what the host reads; of some plays, nothing."""
QUESTION = "Refund order 7"
_TURNS_MAX = 5


async def openai(client: Tacho, url: str, tools: Tools, is_stream: bool) -> object:
    from openai import AsyncOpenAI

    from tacho_sdk.integrations.openai import acall_tools, record_client

    sdk: Any = record_client(AsyncOpenAI(base_url=f"{url}/v1", api_key="k"), client)
    for _ in range(_TURNS_MAX):
        answer = await sdk.chat.completions.create(model="m", messages=[], stream=is_stream)
        message: Any = None
        if is_stream:
            deltas = [piece.choices[0].delta async for piece in answer]
            content = [delta.content for delta in deltas]
            message = {"tool_calls": [call for delta in deltas for call in delta.tool_calls or ()], "content": content}
        else:
            message = answer.choices[0].message
        if not await acall_tools(message, tools, client):
            return message
    return None


async def anthropic(client: Tacho, url: str, tools: Tools, is_stream: bool) -> object:
    from anthropic import AsyncAnthropic

    from tacho_sdk.integrations.anthropic import acall_tools, record_client

    sdk: Any = record_client(AsyncAnthropic(base_url=url, api_key="k"), client)
    for _ in range(_TURNS_MAX):
        given: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": QUESTION}]}
        if is_stream:
            async with sdk.messages.stream(**given) as stream:
                message = await stream.get_final_message()
        else:
            message = await sdk.messages.create(**given)
        # Pass only the content, because some hosts keep nothing else.
        if not await acall_tools({"content": message.content}, tools, client):
            return message
    return None


async def langchain(client: Tacho, url: str, tools: Tools, is_stream: bool) -> object:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    from tacho_sdk.integrations.langchain import TachoHandler, guard_tools

    chat = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", streaming=is_stream)  # type: ignore[arg-type]
    agent = create_react_agent(chat, guard_tools([tool(one) for one in tools], client))
    options: Any = {"callbacks": [TachoHandler(client)]}
    return (await agent.ainvoke({"messages": QUESTION}, options))["messages"][-1].content


async def openai_agents(client: Tacho, url: str, tools: Tools, is_stream: bool) -> object:
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool
    from agents.exceptions import ModelBehaviorError
    from openai import AsyncOpenAI

    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

    model = OpenAIResponsesModel("m", AsyncOpenAI(base_url=f"{url}/v1", api_key="k"))
    agent = guard_agent(Agent(name="first", model=model, tools=[function_tool(one) for one in tools]), client)
    hooks = TachoHooks(client)
    try:
        if not is_stream:
            return (await Runner.run(agent, QUESTION, hooks=hooks)).final_output
        result = Runner.run_streamed(agent, QUESTION, hooks=hooks)
        async for _ in result.stream_events():
            pass
        return result.final_output
    except ModelBehaviorError:
        return None  # The SDK ends the run for a tool that it does not know.


async def pydantic_ai(client: Tacho, url: str, tools: Tools, is_stream: bool) -> object:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.toolsets import FunctionToolset

    from tacho_sdk.integrations.pydantic_ai import guard_toolset, record_model

    model = record_model(OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k")), client)
    toolset: Any = guard_toolset(FunctionToolset(tools), client)
    agent: Any = Agent(model, toolsets=[toolset], retries=3)
    if is_stream:
        async with agent.run_stream(QUESTION) as result:
            return await result.get_output()
    return (await agent.run(QUESTION)).output


async def crewai(client: Tacho, url: str, tools: Tools, is_stream: bool) -> object:
    import crewai as framework
    from crewai.events import crewai_event_bus
    from crewai.tools import tool

    from tacho_sdk.integrations.crewai import TachoListener, guard_tools

    with crewai_event_bus.scoped_handlers():
        TachoListener(client)
        llm = framework.LLM(model="openai/m", base_url=f"{url}/v1", api_key="k", stream=is_stream)
        guarded = guard_tools([tool(one.__name__)(one) for one in tools], client)
        agent = framework.Agent(role="First", goal="Refund", backstory="A shop", llm=llm, tools=guarded, max_retry_limit=0)
        task = framework.Task(description=QUESTION, expected_output="A word", agent=agent)
        result = await framework.Crew(agents=[agent], tasks=[task]).kickoff_async()
        crewai_event_bus.flush()
        return str(result)


PLAYS: dict[str, Play] = {
    "openai": openai,
    "anthropic": anthropic,
    "langchain": langchain,
    "openai_agents": openai_agents,
    "pydantic_ai": pydantic_ai,
    "crewai": crewai,
}
_MODULES = {"langchain": "langgraph", "openai_agents": "agents"}
_ROWS = ("cut", "never reached the tool", "gave up", "forked")


def installed() -> list[str]:
    return [name for name in PLAYS if importlib.util.find_spec(_MODULES.get(name, name))]


def rows_of(name: str) -> dict[str, str]:
    """The rows that test_life.py proves for an integration."""
    return dict.fromkeys([*_ROWS, *(["handed off"] if name in HAND_OFFS else [])], "guarded")


async def langgraph_goto(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    """A node that calls a model hands over with a `Command`."""
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import Command

    from tacho_sdk.integrations.langchain import TachoHandler

    chat = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", streaming=is_stream)  # type: ignore[arg-type]

    async def first(state: MessagesState) -> Any:
        await chat.ainvoke(state["messages"])
        return Command(goto="billing")

    graph: Any = StateGraph(MessagesState)
    graph.add_node("first", first, destinations=("billing",))
    graph.add_node("billing", _graph_agent(client, chat, tools, "billing"))
    graph.add_edge(START, "first")
    await graph.compile().ainvoke({"messages": QUESTION}, {"callbacks": [TachoHandler(client)]})


async def langgraph_edge(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    """A supervisor whose conditional edge leads to a worker, and back to it when the worker is done."""
    await _supervise(client, url, lambda chat: _graph_agent(client, chat, tools, "billing"), is_stream)


async def langgraph_edge_to_function(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    """Like `langgraph_edge`. The worker is a function that calls an agent without a name."""

    def worker(chat: Any) -> Any:
        async def billing(state: Any) -> Any:
            return {"messages": (await _graph_agent(client, chat, tools).ainvoke(state))["messages"][-1:]}

        return billing

    await _supervise(client, url, worker, is_stream)


async def langgraph_edge_to_model(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    """Like `langgraph_edge`. The worker is a function that calls its model and its tool."""
    from langchain_core.tools import tool

    from tacho_sdk.integrations.langchain import guard_tools

    (refund,) = guard_tools([tool(one) for one in tools], client)

    def worker(chat: Any) -> Any:
        async def billing(state: Any) -> Any:
            asked = await chat.bind_tools([refund]).ainvoke(state["messages"])
            done = [await refund.ainvoke({**call, "type": "tool_call"}) for call in asked.tool_calls]
            return {"messages": [await chat.ainvoke([*state["messages"], asked, *done])]}

        return billing

    await _supervise(client, url, worker, is_stream)


async def _supervise(client: Tacho, url: str, worker: Callable[[Any], Any], is_stream: bool) -> None:
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph

    from tacho_sdk.integrations.langchain import TachoHandler

    chat = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", streaming=is_stream)  # type: ignore[arg-type]

    async def first(state: MessagesState) -> Any:
        return {"messages": [await chat.ainvoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("first", first)
    graph.add_node("billing", worker(chat))
    graph.add_edge(START, "first")
    graph.add_edge("billing", "first")
    ways = {"pay": "billing", "done": END}
    graph.add_conditional_edges("first", lambda state: "pay" if len(state["messages"]) < 3 else "done", ways)
    await graph.compile().ainvoke({"messages": QUESTION}, {"callbacks": [TachoHandler(client)]})


async def langgraph_transfer(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    """A tool of a supervisor hands over, as in langgraph-supervisor and langgraph-swarm."""
    from typing import Annotated

    from langchain_core.messages import ToolMessage
    from langchain_core.tools import InjectedToolCallId, tool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import Command

    from tacho_sdk.integrations.langchain import TachoHandler

    def transfer_to_billing(call_id: Any) -> Any:
        """Hands over."""
        answer = ToolMessage("Transferred.", tool_call_id=call_id)
        return Command(goto="billing", graph=Command.PARENT, update={"messages": [answer]})

    # LangChain cannot look up an annotation of this module.
    transfer_to_billing.__annotations__["call_id"] = Annotated[str, InjectedToolCallId]
    chat = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", streaming=is_stream)  # type: ignore[arg-type]
    graph: Any = StateGraph(MessagesState)
    graph.add_node("first", _graph_agent(client, chat, [tool(transfer_to_billing)], "first"), destinations=("billing",))
    graph.add_node("billing", _graph_agent(client, chat, tools, "billing"))
    graph.add_edge(START, "first")
    await graph.compile().ainvoke({"messages": QUESTION}, {"callbacks": [TachoHandler(client)]})


async def langgraph_sub_agent(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    """A tool of one agent runs another agent."""
    from langchain_openai import ChatOpenAI

    from tacho_sdk.integrations.langchain import TachoHandler

    chat = ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", streaming=is_stream)  # type: ignore[arg-type]
    billing = _graph_agent(client, chat, tools, "billing")

    async def ask_billing(question: str) -> str:
        """Asks billing."""
        return str((await billing.ainvoke({"messages": question}))["messages"][-1].content)

    options: Any = {"callbacks": [TachoHandler(client)]}
    await _graph_agent(client, chat, [ask_billing], "first").ainvoke({"messages": QUESTION}, options)


def _graph_agent(client: Tacho, chat: Any, tools: list[Any], name: str | None = None) -> Any:
    from langchain_core.tools import BaseTool, tool
    from langgraph.prebuilt import create_react_agent

    from tacho_sdk.integrations.langchain import guard_tools

    made = [one if isinstance(one, BaseTool) else tool(one) for one in tools]
    return create_react_agent(chat, guard_tools(made, client), name=name)


async def openai_agents_handoff(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    from agents import Agent, OpenAIChatCompletionsModel, function_tool
    from openai import AsyncOpenAI

    from tacho_sdk.integrations.openai_agents import guard_agent

    model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=f"{url}/v1", api_key="k"))
    billing = Agent(name="billing", model=model, tools=[function_tool(one) for one in tools])
    await _run_agent(client, guard_agent(Agent(name="first", model=model, handoffs=[billing]), client), is_stream)


async def openai_agents_as_tool(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    from agents import Agent, OpenAIChatCompletionsModel, function_tool
    from openai import AsyncOpenAI

    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

    model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=f"{url}/v1", api_key="k"))
    billing = guard_agent(Agent(name="billing", model=model, tools=[function_tool(one) for one in tools]), client)
    asked = billing.as_tool("ask_billing", "Asks billing.", hooks=TachoHooks(client))
    await _run_agent(client, guard_agent(Agent(name="first", model=model, tools=[asked]), client), is_stream)


async def _run_agent(client: Tacho, agent: Any, is_stream: bool) -> None:
    from agents import Runner

    from tacho_sdk.integrations.openai_agents import TachoHooks

    if not is_stream:
        await Runner.run(agent, QUESTION, hooks=TachoHooks(client))
        return
    result = Runner.run_streamed(agent, QUESTION, hooks=TachoHooks(client))
    async for _ in result.stream_events():
        pass


async def pydantic_ai_delegation(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.toolsets import FunctionToolset

    from tacho_sdk.integrations.pydantic_ai import guard_toolset, record_model

    model = record_model(OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k")), client)
    guarded: Any = guard_toolset(FunctionToolset(tools), client)
    billing: Any = Agent(model, name="billing", toolsets=[guarded])

    async def ask_billing(question: str) -> str:
        return str((await billing.run(question)).output)

    asking: Any = guard_toolset(FunctionToolset([ask_billing]), client)
    first: Any = Agent(model, name="first", toolsets=[asking])
    if is_stream:
        async with first.run_stream(QUESTION) as result:
            await result.get_output()
    else:
        await first.run(QUESTION)


async def crewai_delegation(client: Tacho, url: str, tools: Tools, is_stream: bool) -> None:
    import crewai as framework
    from crewai.events import crewai_event_bus
    from crewai.tools import tool

    from tacho_sdk.integrations.crewai import TachoListener, guard_tools

    with crewai_event_bus.scoped_handlers():
        TachoListener(client)
        llm = framework.LLM(model="openai/m", base_url=f"{url}/v1", api_key="k", stream=is_stream)
        guarded = guard_tools([tool(one.__name__)(one) for one in tools], client)
        about: dict[str, Any] = {"goal": "Refund", "backstory": "A shop", "llm": llm}
        first = framework.Agent(role="first", allow_delegation=True, **about)
        billing = framework.Agent(role="billing", tools=guarded, allow_delegation=False, **about)
        task = framework.Task(description=QUESTION, expected_output="A word", agent=first)
        await framework.Crew(agents=[first, billing], tasks=[task]).kickoff_async()
        crewai_event_bus.flush()


_DELEGATION = json.dumps({"task": "Refund", "context": "None", "coworker": "billing"})
HAND_OFFS: dict[str, list[tuple[Play, tuple[str, str] | None]]] = {
    "langchain": [
        (langgraph_goto, None),
        (langgraph_edge, None),
        (langgraph_edge_to_function, None),
        (langgraph_edge_to_model, None),
        (langgraph_transfer, ("transfer_to_billing", "{}")),
        (langgraph_sub_agent, ("ask_billing", '{"question": "?"}')),
    ],
    "openai_agents": [
        (openai_agents_handoff, ("transfer_to_billing", "{}")),
        (openai_agents_as_tool, ("ask_billing", '{"input": "?"}')),
    ],
    "pydantic_ai": [(pydantic_ai_delegation, ("ask_billing", '{"question": "?"}'))],
    "crewai": [(crewai_delegation, ("delegate_work_to_coworker", _DELEGATION))],
}
"""How an agent called first hands over to one called billing: by a call of its model, or by code."""
