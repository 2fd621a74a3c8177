"""Runs one agent in a Python framework, for `replay-python.test.ts`. Arguments: framework, prompt, file of the tool."""

import asyncio
import json
import os
import sys
from typing import Any

import tacho_sdk as tacho

framework, prompt, proof = sys.argv[1:4]
base = os.environ["OPENAI_BASE_URL"]
client = tacho.Tacho(agent_name="Refunds")


def refund(order: int) -> str:
    """Refunds an order."""
    with open(proof, "a") as file:
        file.write(f"{order}\n")
    return f"refunded {order}"


def langgraph() -> None:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    from tacho_sdk.integrations.langchain import TachoHandler, guard_tools

    chat = ChatOpenAI(model="gpt-5", max_retries=0)
    agent = create_react_agent(chat, guard_tools([tool(refund)], client))
    with client.run():
        agent.invoke({"messages": prompt}, {"callbacks": [TachoHandler(client)]})


async def pydantic_ai() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.toolsets import FunctionToolset

    from tacho_sdk.integrations.pydantic_ai import guard_toolset, record_model

    toolset: FunctionToolset[Any] = FunctionToolset([refund])
    agent = Agent(record_model(OpenAIChatModel("gpt-5"), client), toolsets=[guard_toolset(toolset, client)])
    async with client.run():
        await agent.run(prompt)


async def openai_agents() -> None:
    import agents

    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

    agents.set_tracing_disabled(True)
    agent = guard_agent(agents.Agent(name="Refunds", model="gpt-5", tools=[agents.function_tool(refund)]), client)
    async with client.run():
        await agents.Runner.run(agent, input=prompt, hooks=TachoHooks(client))


def crewai() -> None:
    from crewai import LLM, Agent, Crew, Task
    from crewai.events import crewai_event_bus
    from crewai.tools import tool

    from tacho_sdk.integrations.crewai import TachoListener, guard_tools

    TachoListener(client)
    tools = guard_tools([tool("refund")(refund)], client)
    llm = LLM(model="openai/gpt-5", base_url=base)
    agent = Agent(role="Refunds", goal="Refund", backstory="A shop", llm=llm, tools=tools, max_retry_limit=0)
    with client.run():
        Crew(agents=[agent], tasks=[Task(description=prompt, expected_output="A sentence", agent=agent)]).kickoff()
        crewai_event_bus.flush()


def openai_client() -> None:
    from openai import OpenAI

    from tacho_sdk.integrations.openai import record_client

    openai = record_client(OpenAI(max_retries=0), client)
    guarded = client.guard(name="refund")(refund)
    messages: list[Any] = [{"role": "user", "content": prompt}]
    with client.run():
        while True:
            message = openai.chat.completions.create(model="gpt-5", messages=messages).choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                try:
                    answer = guarded(**json.loads(call.function.arguments))
                except tacho.ToolBlockedError as error:
                    answer = error.model_text
                messages.append({"role": "tool", "content": answer, "tool_call_id": call.id})


def anthropic_client() -> None:
    from anthropic import Anthropic

    from tacho_sdk.integrations.anthropic import call_tools, record_client

    anthropic = record_client(Anthropic(max_retries=0), client)
    tools = [refund]
    messages: list[Any] = [{"role": "user", "content": prompt}]
    with client.run():
        while True:
            message = anthropic.messages.create(model="claude-opus-5-5", max_tokens=100, messages=messages)
            answers = call_tools(message, tools, client)
            if not answers:
                return
            messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": answers}]


def openai_responses() -> None:
    from openai import OpenAI

    from tacho_sdk.integrations.openai import call_tools, record_client

    openai = record_client(OpenAI(max_retries=0), client)
    tools = [refund]
    said: list[Any] = [{"role": "user", "content": prompt}]
    with client.run():
        while True:
            response = openai.responses.create(model="gpt-5", input=said)
            answers = call_tools(response, tools, client)
            if not answers:
                return
            said += [*(item.model_dump(exclude_none=True) for item in response.output), *answers]


act = {
    "langgraph": langgraph,
    "pydantic_ai": pydantic_ai,
    "openai_agents": openai_agents,
    "crewai": crewai,
    "openai": openai_client,
    "openai_responses": openai_responses,
    "anthropic": anthropic_client,
}[framework]
made = act()
if made is not None:
    asyncio.run(made)
