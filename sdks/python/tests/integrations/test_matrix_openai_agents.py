"""The OpenAI Agents SDK: the promise of the guard for each way of defining a tool (matrix.py)."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pathlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from conftest import Client, Service

from .life import rows_of
from .matrix import WAYS, Spy, Way, check, check_results

pytest.importorskip("agents")

import agents
import mcp.types as mcp
from agents import Agent, FunctionTool, RunContextWrapper, Runner, function_tool, handoff
from agents.mcp import MCPServer
from agents.run import RunConfig
from agents.sandbox import SandboxAgent, SandboxRunConfig
from agents.sandbox.capabilities import Filesystem, Shell
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from tacho_sdk.integrations.openai_agents import guard_agent
from tacho_sdk.integrations.unguarded import CannotGuardError

SCHEMA = {"type": "object", "properties": {"amount": {"type": "number"}}, "additionalProperties": True}


def _raw(spy: Spy, name: str) -> Any:
    async def invoke(context: Any, text: str) -> str:
        return spy.take(name, **json.loads(text))

    return FunctionTool(name=name, description="", params_json_schema=SCHEMA, on_invoke_tool=invoke, strict_json_schema=False)


def _context(spy: Spy, name: str) -> Any:
    async def act(context: RunContextWrapper[Any], amount: int) -> str:
        assert isinstance(context, RunContextWrapper)
        return spy.take(name, amount=amount)

    return act


def _variadic(spy: Spy, name: str) -> Any:
    def act(amount: int, *more: int, **others: int) -> str:
        return spy.take(name, amount=amount, more=list(more), **others)

    return function_tool(act, name_override=name, strict_mode=False)


def _callable(spy: Spy, name: str) -> Any:
    class Act:
        def __call__(self, amount: int) -> str:
            return spy.take(name, amount=amount)

    return Act()


OWN = [
    Way("raw JSON schema", "raw JSON schema", _raw, {"amount": 500, "x": [1]}, {"amount": 500, "x": [1]}),
    Way("context of the run", "injected arguments", _context, {"amount": "500"}, {"amount": 500}),
    Way("object that can be called", "method", _callable, {"amount": "500"}, {"amount": 500}),
    Way(
        "*args and **kwargs",
        "sync",
        _variadic,
        {"amount": 500, "more": ["1", 2], "others": {"x": "1"}},
        {"amount": 500, "more": [1, 2], "x": 1},
    ),
]


def wrap(function: Any, name: str) -> Any:
    return function if isinstance(function, FunctionTool) else function_tool(function, name_override=name, strict_mode=False)


def scripted(calls: dict[str, Any], *, is_text: bool = False, turns: int = 1) -> ScriptedModel:
    """A model that answers with these calls, then with a text."""
    asked = [
        [
            function_call(name, given if is_text else json.dumps(given), call_id=f"{name} {turn}")
            for name, given in calls.items()
        ]
        for turn in range(turns)
    ]
    return ScriptedModel([*[ModelStep(output=one) for one in asked], ModelStep(output=[assistant_message("done")])])


def outputs_of(result: Any) -> dict[str, str]:
    found = [item for item in result.new_items if item.type == "tool_call_output_item"]
    return {item.raw_item["call_id"].split()[0]: str(item.output) for item in found}


def run(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    agent = guard_agent(Agent(name="Refunds", model=scripted(calls), tools=list(tools.values())), client.tacho)
    return outputs_of(asyncio.run(Runner.run(agent, "Go")))


def run_twice(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    agent = guard_agent(Agent(name="Refunds", model=scripted(calls, turns=2), tools=list(tools.values())), client.tacho)
    return outputs_of(asyncio.run(Runner.run(agent, "Go")))


def run_streamed(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    async def main() -> Any:
        agent = guard_agent(Agent(name="Refunds", model=scripted(calls), tools=list(tools.values())), client.tacho)
        result = Runner.run_streamed(agent, "Go")
        async for _ in result.stream_events():
            pass
        return result

    return outputs_of(asyncio.run(main()))


def run_added(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Tools that are added to the guarded agent, or to a copy of it."""
    agent = guard_agent(Agent(name="Refunds", model=scripted(calls)), client.tacho)
    first, *others = tools.values()
    agent.tools.append(first)
    return outputs_of(asyncio.run(Runner.run(agent.clone(tools=[*agent.tools, *others]), "Go")))


def run_handed_over(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    billing = Agent(name="Billing", model=scripted(calls), tools=list(tools.values()))
    asked = ModelStep(output=[function_call("transfer_to_billing", "{}", call_id="1")])
    first = Agent(name="First", model=ScriptedModel([asked]), handoffs=[handoff(billing)])
    billing.handoffs = [first]
    return outputs_of(asyncio.run(Runner.run(guard_agent(first, client.tacho), "Go")))


@pytest.mark.parametrize("way", [*WAYS, *OWN], ids=lambda way: way.name)
def test_a_tool(way: Way, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, way, run, wrap)


def test_a_retry(service: Service, make: Callable[..., Client]) -> None:
    check(service, make, WAYS[0], run_twice, wrap, RuntimeError("busy"))


def run_resumed(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    """A person approves in the framework first; the guard decides what is resumed."""
    asked = [dataclasses.replace(tool, needs_approval=True) for tool in tools.values()]
    agent = guard_agent(Agent(name="Refunds", model=scripted(calls), tools=asked), client.tacho)

    async def main() -> Any:
        paused = await Runner.run(agent, "Go")
        state = paused.to_state()
        for interruption in paused.interruptions:
            state.approve(interruption)
        return await Runner.run(agent, state)

    return outputs_of(asyncio.run(main()))


class Server(MCPServer):
    """An MCP server in this process."""

    def __init__(self, tools: dict[str, Any]) -> None:
        super().__init__()
        self._tools = tools

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    @property
    def name(self) -> str:
        return "shop"

    async def list_tools(self, *_: Any) -> Any:
        return [mcp.Tool(name=name, input_schema=SCHEMA) for name in self._tools]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        said = await self._tools[tool_name].on_invoke_tool(None, json.dumps(arguments))
        return mcp.CallToolResult(content=[mcp.TextContent(type="text", text=said)])

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...


def run_served(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    agent = guard_agent(Agent(name="Refunds", model=scripted(calls), mcp_servers=[Server(tools)]), client.tacho)
    return outputs_of(asyncio.run(Runner.run(agent, "Go")))


def test_a_tool_of_an_mcp_server(service: Service, make: Callable[..., Client]) -> None:
    check(service, make, OWN[0], run_served, wrap)


def run_handed_over_later(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Hand-offs that are added to the guarded agent, or to a copy of it."""
    billing = Agent(name="Billing", model=scripted(calls), tools=list(tools.values()))
    over = ScriptedModel([ModelStep(output=[function_call("transfer_to_billing", "{}", call_id="1")])])
    on = ScriptedModel([ModelStep(output=[function_call("transfer_to_second", "{}", call_id="2")])])
    second = guard_agent(Agent(name="Second", model=over), client.tacho)
    second.handoffs.append(handoff(billing))
    first = guard_agent(Agent(name="First", model=on), client.tacho).clone(handoffs=[second])
    return outputs_of(asyncio.run(Runner.run(first, "Go")))


def run_renamed(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    others = [dataclasses.replace(tool, name=f"other_{name}") for name, tool in tools.items()]
    agent = guard_agent(Agent(name="Refunds", model=scripted(calls), tools=others), client.tacho)
    guarded: list[Any] = agent.tools
    agent.tools = [dataclasses.replace(tool, name=name) for tool, name in zip(guarded, tools, strict=True)]
    return outputs_of(asyncio.run(Runner.run(agent, "Go")))


def test_a_renamed_tool_of_its_own(service: Service, make: Callable[..., Client]) -> None:
    check(service, make, OWN[0], run_renamed, wrap)


OTHERS = [run_streamed, run_added, run_handed_over, run_handed_over_later, run_resumed, run_renamed]


@pytest.mark.parametrize("run", OTHERS, ids=lambda run: run.__name__)
def test_another_way_to_run(run: Any, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, WAYS[0], run, wrap)


@pytest.mark.parametrize(
    "text",
    [
        '{"amount": 1, "amount": 500}',
        '{"amount": 9007199254740993}',
        '{"amount": Infinity}',
        '{"amount": 1e999}',
        # A float rounds this number to 100.
        '{"amount": 100.000000000000000001}',
        '{"amount": 9007199254740993.0}',
        '{"amount": 1e-99999999999999999999}',
        "not json",
        "[1]",
    ],
)
def test_a_text_with_more_than_one_meaning_does_not_run(text: str, service: Service, make: Callable[..., Client]) -> None:
    service.deploy('tool.name == "raw" && tool.input.amount > 100.0', "BLOCK", "MEDIUM")
    client, spy = make(), Spy()

    async def invoke(context: Any, given: str) -> str:
        return spy.take("raw", text=given)

    raw = FunctionTool(name="raw", description="", params_json_schema=SCHEMA, on_invoke_tool=invoke, strict_json_schema=False)
    agent = guard_agent(Agent(name="A", model=scripted({"raw": text}, is_text=True), tools=[raw]), client.tacho)
    with client.tacho.run():
        said = outputs_of(asyncio.run(Runner.run(agent, "Go")))
    assert spy.got == []
    assert "was not run" in said["raw"]


@pytest.mark.parametrize("text", ["100.1", "99.99999999999999", "1e2", "1.50e1", "100.00000000000001", "5e-324"])
def test_a_number_that_a_float_holds_is_judged(text: str, service: Service, make: Callable[..., Client]) -> None:
    service.deploy('tool.name == "raw" && tool.input.amount > 100.0', "BLOCK", "MEDIUM")
    got: list[str] = []

    async def invoke(context: Any, given: str) -> str:
        got.append(given)
        return "done"

    raw = FunctionTool(name="raw", description="", params_json_schema=SCHEMA, on_invoke_tool=invoke, strict_json_schema=False)
    client, given = make(), f'{{"amount": {text}}}'
    agent = guard_agent(Agent(name="A", model=scripted({"raw": given}, is_text=True), tools=[raw]), client.tacho)
    with client.tacho.run():
        asyncio.run(Runner.run(agent, "Go"))
    assert got == ([] if float(text) > 100 else [given])


def test_an_agent_as_a_tool_is_guarded_inside_and_outside(service: Service, make: Callable[..., Client]) -> None:
    service.deploy('tool.name == "blocked" || tool.name == "shop" && tool.input.input.contains("secret")', "BLOCK")
    client, spy = make(), Spy()

    def sub_agent() -> Any:
        tools = [wrap(WAYS[0].make(spy, name), name) for name in ("allowed", "blocked")]
        given = {"order": 1, "amount": 500}
        return Agent(name="Shop", model=scripted({"allowed": given, "blocked": given}), tools=tools)

    unguarded = sub_agent().as_tool("shop", "Asks the shop")
    with pytest.raises(CannotGuardError, match="guard_agent"):
        guard_agent(Agent(name="A", tools=[unguarded]), client.tacho)
    inside = guard_agent(sub_agent(), client.tacho).as_tool("shop", "Asks the shop")
    for question, ran in ({"input": "the secret"}, []), ({"input": "hello"}, ["allowed"]):
        agent = guard_agent(Agent(name="A", model=scripted({"shop": question}), tools=[inside]), client.tacho)
        with client.tacho.run():
            asyncio.run(Runner.run(agent, "Go"))
        assert [name for name, _ in spy.got] == ran


def test_a_sandbox_has_its_shell_guarded_and_no_editor(
    service: Service, make: Callable[..., Client], tmp_path: pathlib.Path
) -> None:
    service.deploy('tool.name == "exec_command" && tool.input.cmd.endsWith("blocked")', "BLOCK", "MEDIUM")
    client = make()
    config = RunConfig(sandbox=SandboxRunConfig(client=UnixLocalSandboxClient()))

    def run_in(capabilities: list[Any], *names: str) -> None:
        asked = [function_call("exec_command", json.dumps({"cmd": f"touch {tmp_path / name}"}), call_id=name) for name in names]
        model = ScriptedModel([ModelStep(output=asked), ModelStep(output=[assistant_message("done")])])
        agent = guard_agent(SandboxAgent(name="A", model=model, capabilities=capabilities), client.tacho)
        asyncio.run(Runner.run(agent, "Go", run_config=config))

    run_in([Shell()], "allowed", "blocked")
    assert [path.name for path in tmp_path.iterdir()] == ["allowed"]
    with pytest.raises(CannotGuardError, match="apply_patch"):
        run_in([Filesystem()])


def test_what_cannot_be_guarded_is_refused_or_reported(service: Service, make: Callable[..., Client]) -> None:
    client = make()

    @function_tool(strict_mode=False)
    async def streams(order: int) -> AsyncIterator[str]:
        """Streams."""
        yield "piece"

    def shell(_: Any) -> str:
        return "ran"

    async def custom(*_: Any) -> str:
        return "ran"

    given: list[Any] = [
        streams,
        agents.ShellTool(executor=shell),
        agents.LocalShellTool(executor=shell),
        agents.CustomTool(name="custom", description="", on_invoke_tool=custom),
        agents.WebSearchTool(),
        agents.CodeInterpreterTool(tool_config={"type": "code_interpreter", "container": {"type": "auto"}}),
        agents.HostedMCPTool(tool_config={"type": "mcp", "server_label": "x", "server_url": "https://example.com"}),
    ]
    for one in given:
        with pytest.raises(CannotGuardError, match="cannot be guarded"):
            guard_agent(Agent(name="A", tools=[one]), client.tacho)
    assert guard_agent(Agent(name="A", tools=given), client.tacho, unguarded="allow").tools == given
    client.tacho.flush(120)
    said = [event["payload"] for event in service.events if event["eventType"] == "AGENT_STEP"]
    assert {payload["toolName"] for payload in said if not payload["isGuarded"]} >= {"streams", "shell", "custom"}


def test_a_tool_that_is_added_and_cannot_be_guarded_ends_the_run(make: Callable[..., Client]) -> None:
    agent = guard_agent(Agent(name="A", model=scripted({})), make().tacho)
    agent.tools.append(agents.LocalShellTool(executor=lambda _: "ran"))
    with pytest.raises(CannotGuardError):
        asyncio.run(Runner.run(agent, "Go"))


def test_the_page_says_so() -> None:
    others = {
        "duplicate keys": "guarded",
        "large number": "guarded",
        "generator": "refused",
        "streaming": "guarded",
        "retry": "guarded",
        "sub-agent": "guarded",
        "agent as a tool": "guarded",
        "hand-off": "guarded",
        "MCP server": "guarded",
        "human in the loop": "guarded",
        "resumed": "guarded",
        "renamed": "guarded",
        "hosted tool": "refused",
        "shell": "refused",
        "custom tool": "refused",
        **rows_of("openai_agents"),
    }
    outside = [
        "Hosted tools (web search, file search, code interpreter, hosted MCP): the provider runs them.",
        "Shells, computers, patches, custom tools and Codex: the framework runs them, not a function with a validated input.",
        "The editor of a `SandboxAgent`: the run ends with an error. Its shell is guarded.",
        "`on_handoff` of a hand-off with an `input_type`, and an agent as a tool with `parameters` of its own: refused.",
        "Realtime agents.",
    ]
    check_results("python-openai-agents", "OpenAI Agents", ["openai-agents"], [*WAYS, *OWN], others, outside)
