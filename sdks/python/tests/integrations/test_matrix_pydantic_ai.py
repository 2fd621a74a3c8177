"""Pydantic AI: the promise of the guard for each way of defining a tool (matrix.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import Client, Service

from .life import rows_of
from .matrix import WAYS, Spy, Way, check, check_results
from .mcp_server import mcp_server

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, ModelRetry, RunContext, ToolDefinition
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.toolsets import (
    ApprovalRequiredToolset,
    CombinedToolset,
    DynamicToolset,
    ExternalToolset,
    FunctionToolset,
    PrefixedToolset,
    WrapperToolset,
)

from tacho_sdk.integrations.pydantic_ai import guard_toolset
from tacho_sdk.integrations.unguarded import CannotGuardError

SCHEMA = {"type": "object", "properties": {"amount": {"type": "number"}}}


def _raw(spy: Spy, name: str) -> Any:
    def act(**given: Any) -> str:
        return spy.take(name, **given)

    return Tool.from_schema(act, name=name, description="Does it.", json_schema=SCHEMA)


def _context(spy: Spy, name: str) -> Any:
    def act(context: RunContext[Any], amount: int) -> str:
        assert context.tool_name == name
        return spy.take(name, amount=amount)

    return act


OWN = [
    Way("raw JSON schema", "raw JSON schema", _raw, {"amount": 500, "x": [1]}, {"amount": 500, "x": [1]}),
    Way(
        "extra key with the name of the parameter that takes it",
        "raw JSON schema",
        _raw,
        {"amount": 500, "given": {"amount": 1}},
        {"amount": 500, "given": {"amount": 1}},
    ),
    Way("context of the run", "injected arguments", _context, {"amount": "500"}, {"amount": 500}),
]


def wrap(function: Any, name: str) -> Any:
    return function if isinstance(function, Tool) else Tool(function, name=name)


def scripted(calls: dict[str, dict[str, Any]], turns: int = 1) -> FunctionModel:
    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        turn = len(messages) // 2
        if turn >= turns:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(name, given, tool_call_id=f"{name} {turn}") for name, given in calls.items()])

    return FunctionModel(answer)


def answers_of(messages: list[ModelMessage]) -> dict[str, str]:
    parts = [part for message in messages for part in message.parts]
    return {part.tool_name: str(part.content) for part in parts if isinstance(part, ToolReturnPart)}


def run(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    toolset = guard_toolset(FunctionToolset(list(tools.values())), client.tacho)
    return answers_of(Agent(scripted(calls), toolsets=[toolset]).run_sync("Go").all_messages())


def run_twice(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    toolset = guard_toolset(FunctionToolset(list(tools.values())), client.tacho)
    return answers_of(Agent(scripted(calls, turns=2), toolsets=[toolset]).run_sync("Go").all_messages())


def run_combined(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    combined: Any = CombinedToolset([FunctionToolset([tool]) for tool in tools.values()])
    toolset = guard_toolset(combined.filtered(lambda *_: True), client.tacho)
    return answers_of(Agent(scripted(calls), toolsets=[toolset]).run_sync("Go").all_messages())


def run_served(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The tools of an MCP server."""
    with mcp_server({name: tool.function for name, tool in tools.items()}) as url:
        toolset = guard_toolset(MCPToolset(url), client.tacho)
        return answers_of(Agent(scripted(calls), toolsets=[toolset]).run_sync("Go").all_messages())


def run_approved(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    """A person approves in the framework first; the guard decides what is resumed."""
    inner: Any = FunctionToolset(list(tools.values()))
    toolset = guard_toolset(ApprovalRequiredToolset(inner), client.tacho)
    agent: Any = Agent(scripted(calls), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    paused = agent.run_sync("Go")
    approvals: Any = {f"{name} 0": True for name in calls}
    resumed = agent.run_sync(
        message_history=paused.all_messages(), deferred_tool_results=DeferredToolResults(approvals=approvals)
    )
    return answers_of(resumed.all_messages())


# Without "extra keys": Pydantic AI tells the model that the key is not permitted.
ASKED = [way for way in [*WAYS, *OWN] if way.name != "extra keys"]


@pytest.mark.parametrize("way", ASKED, ids=lambda way: way.name)
def test_a_tool(way: Way, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, way, run, wrap)


@pytest.mark.parametrize("run", [run_combined, run_approved], ids=lambda run: run.__name__)
def test_another_way_to_run(run: Any, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, WAYS[0], run, wrap)


def test_a_tool_of_an_mcp_server(service: Service, make: Callable[..., Client]) -> None:
    check(service, make, OWN[0], run_served, wrap)


def test_a_retry(service: Service, make: Callable[..., Client]) -> None:
    check(service, make, WAYS[0], run_twice, wrap, ModelRetry("busy"))


def test_a_policy_names_a_tool_as_the_model_does(service: Service, make: Callable[..., Client]) -> None:
    service.deploy('tool.name == "shop_act"', "BLOCK")
    client, spy = make(), Spy()
    inner: Any = FunctionToolset([wrap(WAYS[0].make(spy, "act"), "act")])
    toolset = guard_toolset(PrefixedToolset(inner, "shop"), client.tacho)
    with client.tacho.run():
        Agent(scripted({"shop_act": {"order": 1, "amount": 1}}), toolsets=[toolset]).run_sync("Go")
    assert spy.got == []


def test_what_cannot_be_guarded_is_refused_or_reported(service: Service, make: Callable[..., Client]) -> None:
    client = make()

    def streams(order: int) -> Iterator[str]:
        """Streams."""
        yield "piece"

    class Changing(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await super().call_tool(name, {"amount": 500}, ctx, tool)

    async def process(ctx: Any, call_tool: Any, name: str, tool_args: dict[str, Any]) -> Any:
        return await call_tool(name, {"amount": 500})

    class Served(MCPToolset[Any]):
        async def direct_call_tool(self, name: str, args: dict[str, Any], **more: Any) -> Any:
            return await super().direct_call_tool(name, {"amount": 500}, **more)

    class Own(FunctionToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await super().call_tool(name, {"amount": 500}, ctx, tool)

    def act(amount: int) -> None:
        """Does it."""

    inner: Any = FunctionToolset([act])
    given: list[Any] = [
        ExternalToolset([ToolDefinition(name="elsewhere")]),
        FunctionToolset([streams]),
        Own([act]),
        Served("http://localhost/mcp"),
        MCPToolset("http://localhost/mcp", process_tool_call=process),
        Changing(inner),
        PrefixedToolset(Changing(inner), "x"),
        act,
    ]
    for one in given:
        with pytest.raises(CannotGuardError, match="cannot be guarded"):
            guard_toolset(one, client.tacho)
        guard_toolset(one, client.tacho, unguarded="allow")
    client.tacho.flush(120)
    said = [event["payload"] for event in service.events if event["eventType"] == "AGENT_STEP"]
    assert [payload["toolName"] for payload in said if not payload["isGuarded"]] == [
        "elsewhere",
        "streams",
        "Own",
        "Served",
        "MCPToolset",
        "Changing",
        "Changing",
        "act",
    ]


def test_a_toolset_that_is_made_for_a_run_is_checked_then(make: Callable[..., Client]) -> None:
    class Changing(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await super().call_tool(name, {"amount": 500}, ctx, tool)

    async def made(_: Any) -> Any:
        return Changing(FunctionToolset([wrap(WAYS[0].make(Spy(), "act"), "act")]))

    toolset = guard_toolset(DynamicToolset(made), make().tacho)
    with pytest.raises(CannotGuardError):
        Agent(scripted({}), toolsets=[toolset]).run_sync("Go")


def test_the_page_says_so() -> None:
    others = {
        "extra keys": "guarded",
        "generator": "refused",
        "streaming": "guarded",
        "retry": "guarded",
        "MCP server": "guarded",
        "human in the loop": "guarded",
        "resumed": "guarded",
        "hosted tool": {
            "cannot": "native tools of the model are given to the agent, not to a toolset; the provider runs them."
        },
        "unknown shape": "refused",
        **rows_of("pydantic_ai"),
    }
    outside = [
        "Tools that are given to the agent itself (`@agent.tool`, `tools=[…]`): put them into a `FunctionToolset`.",
        "Functions of `output_type`.",
        "Tools that run elsewhere (`ExternalToolset`) or in LangChain, toolsets of yours that may change arguments, an "
        "`MCPToolset` with `process_tool_call`: refused.",
    ]
    check_results("python-pydantic-ai", "Pydantic AI", ["pydantic-ai-slim"], ASKED, others, outside)
