"""LangChain and LangGraph: the promise of the guard for each way of defining a tool (matrix.py)."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pydantic
import pytest

from conftest import Client, Service

from .life import rows_of
from .matrix import WAYS, Spy, Way, check, check_results

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, Tool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, ToolRuntime
from langgraph.types import Command, interrupt

from tacho_sdk.integrations.langchain import guard_tools
from tacho_sdk.integrations.unguarded import CannotGuardError

SCHEMA = {
    "type": "object",
    "$defs": {"amount": {"type": "number"}},
    "anyOf": [{"properties": {"amount": {"$ref": "#/$defs/amount"}}, "required": ["amount"]}],
    "properties": {},
}


class Aliased(pydantic.BaseModel, extra="allow", populate_by_name=True):
    amount: int = pydantic.Field(alias="the-amount")


class Ours(InjectedToolArg):
    pass


def _raw_schema(spy: Spy, name: str) -> Any:
    def act(**given: Any) -> str:
        return spy.take(name, **given)

    return StructuredTool(name=name, description="Does it.", args_schema=SCHEMA, func=act)


def _adapter(spy: Spy, name: str) -> Any:
    """A tool in the form that langchain-mcp-adapters creates."""

    async def call_tool(
        runtime: Annotated[object | None, InjectedToolArg()] = None, **arguments: Any
    ) -> tuple[list[dict[str, str]], None]:
        return [{"type": "text", "text": spy.take(name, **arguments)}], None

    return StructuredTool(
        name=name, description="", args_schema=SCHEMA, coroutine=call_tool, response_format="content_and_artifact"
    )


def _aliased(spy: Spy, name: str) -> Any:
    def act(amount: int) -> str:
        return spy.take(name, amount=amount)

    return StructuredTool.from_function(act, name=name, description="Does it.", args_schema=Aliased)


def _text(spy: Spy, name: str) -> Any:
    return Tool(name=name, description="Does it.", func=lambda text: spy.take(name, input=text))


def _class(spy: Spy, name: str) -> Any:
    class Own(BaseTool):
        def _run(self, order: int, amount: int = 500) -> str:
            return spy.take(name, order=order, amount=amount)

    return Own(name=name, description="Does it.")


def _async_class(spy: Spy, name: str) -> Any:
    class Own(BaseTool):
        def _run(self, order: int, amount: int) -> str:
            return spy.take(name, order=order, amount=amount)

        async def _arun(self, order: int, amount: int) -> str:
            return self._run(order, amount)

    return Own(name=name, description="Does it.")


class WithCallbacks(pydantic.BaseModel):
    amount: int
    callbacks: list[str]


def _callbacks(spy: Spy, name: str) -> Any:
    """LangChain fills a parameter `callbacks` of a function, but not of a class."""

    class Own(BaseTool):
        args_schema: Any = WithCallbacks

        def _run(self, amount: int, callbacks: list[str]) -> str:
            return spy.take(name, amount=amount, callbacks=callbacks)

    return Own(name=name, description="Does it.")


def _async_callbacks(spy: Spy, name: str) -> Any:
    class Own(BaseTool):
        args_schema: Any = WithCallbacks

        def _run(self, amount: int, callbacks: list[str]) -> str:
            raise NotImplementedError

        async def _arun(self, amount: int, callbacks: list[str]) -> str:
            return spy.take(name, amount=amount, callbacks=callbacks)

    return Own(name=name, description="Does it.")


def _optional_config(spy: Spy, name: str) -> Any:
    """LangChain fills only the first parameter whose type is exactly `RunnableConfig`."""

    def act(amount: int, config: RunnableConfig, second: RunnableConfig, third: RunnableConfig | None = None) -> str:
        assert "callbacks" in config
        return spy.take(name, amount=amount, second=second, third=third)

    return StructuredTool(name=name, description="Does it.", args_schema={"type": "object", "properties": {}}, func=act)


def _injected(spy: Spy, name: str) -> Any:
    @tool(name)
    def act(
        amount: int,
        state: Annotated[dict[str, Any], InjectedState],
        call_id: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
        config: RunnableConfig,
    ) -> str:
        """Does it."""
        assert state["messages"] and call_id == name and runtime.state and "callbacks" in config
        return spy.take(name, amount=amount)

    return act


def _artifact(spy: Spy, name: str) -> Any:
    @tool(name, response_format="content_and_artifact")
    def act(order: int, amount: int) -> tuple[str, dict[str, int]]:
        """Does it."""
        return spy.take(name, order=order, amount=amount), {"amount": amount}

    return act


def _as_tool(spy: Spy, name: str) -> Any:
    from langchain_core.runnables import RunnableLambda

    def act(given: dict[str, int]) -> str:
        return spy.take(name, **given)

    return RunnableLambda(act).as_tool(args_schema=Aliased, name=name, description="Does it.")


OWN = [
    Way(
        "raw JSON schema with anyOf and $ref",
        "raw JSON schema",
        _raw_schema,
        {"amount": 500, "x": [1]},
        {"amount": 500, "x": [1]},
    ),
    Way(
        "extra key with the name of the parameter that takes it",
        "extra keys",
        _raw_schema,
        {"amount": 500, "given": {"amount": 1}},
        {"amount": 500, "given": {"amount": 1}},
    ),
    Way("async tool of an MCP server (adapter)", "MCP server", _adapter, {"amount": 500, "x": "y"}, {"amount": 500, "x": "y"}),
    Way("alias", "alias", _aliased, {"the-amount": "500"}, {"amount": 500}),
    Way(
        "text input",
        "string input",
        _text,
        {"__arg1": '{"amount": 1}'},
        {"input": '{"amount": 1}'},
        'tool.input.input == "{\\"amount\\": 1}"',
    ),
    Way("class", "method", _class, {"order": 1}, {"order": 1, "amount": 500}),
    Way("async class", "method", _async_class, {"order": 1, "amount": 500}, {"order": 1, "amount": 500}),
    Way(
        "class with an argument called callbacks",
        "method",
        _callbacks,
        {"amount": 1, "callbacks": ["evil"]},
        {"amount": 1, "callbacks": ["evil"]},
        'tool.input.callbacks.exists(one, one == "evil")',
    ),
    Way(
        "async class with an argument called callbacks",
        "method",
        _async_callbacks,
        {"amount": 1, "callbacks": ["evil"]},
        {"amount": 1, "callbacks": ["evil"]},
        'tool.input.callbacks.exists(one, one == "evil")',
    ),
    Way(
        "second and optional config",
        "injected arguments",
        _optional_config,
        {"amount": 1, "second": {"tags": ["evil"]}, "third": {"tags": ["evil"]}},
        {"amount": 1, "second": {"tags": ["evil"]}, "third": {"tags": ["evil"]}},
        'tool.input.second.tags[0] == "evil" && tool.input.third.tags[0] == "evil"',
    ),
    Way("injected state, runtime and config", "injected arguments", _injected, {"amount": 500}, {"amount": 500}),
    Way("content and artifact", "artifact", _artifact, {"order": 1, "amount": 500}, {"order": 1, "amount": 500}),
    Way("runnable as a tool", "extra keys", _as_tool, {"the-amount": 500, "x": 1}, {"amount": 500, "x": 1}),
]


def wrap(function: Any, name: str) -> Any:
    return function if isinstance(function, BaseTool) else tool(name)(function)


def run_of(is_async: bool, turns: int = 1, rename: bool = False) -> Any:
    def run(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
        asked: Any = [{"name": name, "args": given, "id": name, "type": "tool_call"} for name, given in calls.items()]
        graph: Any = StateGraph(MessagesState)
        given_tools = [one.model_copy(update={"name": "other"}) for one in tools.values()] if rename else [*tools.values()]
        guarded = guard_tools(given_tools, client.tacho)
        if rename:
            guarded = [one.model_copy(update={"name": name}) for one, name in zip(guarded, tools, strict=True)]
        graph.add_node("tools", ToolNode(guarded, handle_tool_errors=True))
        graph.add_edge(START, "tools")
        graph.add_edge("tools", END)
        given = {"messages": [AIMessage(content="", tool_calls=asked)]}
        compiled = graph.compile()
        for _ in range(turns):
            result = asyncio.run(compiled.ainvoke(given)) if is_async else compiled.invoke(given)
        answers = [message for message in result["messages"] if isinstance(message, ToolMessage)]
        assert {answer.tool_call_id for answer in answers if answer.status == "error"} == {"blocked", "rejected"}, answers
        return {answer.tool_call_id: str(answer.content) for answer in answers}

    return run


@pytest.mark.parametrize("way", [*WAYS, *OWN], ids=lambda way: way.name)
def test_a_tool(way: Way, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, way, run_of(way.name.startswith("async")), wrap)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_retry(is_async: bool, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, WAYS[0], run_of(is_async, turns=2), wrap, RuntimeError("busy"))


@pytest.mark.parametrize("way", [WAYS[0], OWN[4]], ids=lambda way: way.name)
def test_a_synchronous_tool_of_an_asynchronous_graph(way: Way, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, way, run_of(True), wrap)


def test_what_a_guarded_tool_runs_is_guarded_too(service: Service, make: Callable[..., Client]) -> None:
    service.deploy('tool.name == "inner"', "BLOCK")
    ran: list[str] = []

    @tool
    def inner(order: int) -> str:
        """Does it."""
        ran.append("inner")
        return "did inner"

    later: list[asyncio.Task[Any]] = []
    client = make()
    (guarded,) = guard_tools([inner], client.tacho)

    @tool
    async def outer(order: int) -> str:
        """Calls another tool: at once, in a thread and in a task that outlives it."""
        later.append(asyncio.create_task(asyncio.to_thread(lambda: _refusal(lambda: guarded.invoke({"order": 2})))))
        said = [
            _refusal(lambda: guarded.invoke({"order": 1})),
            await asyncio.to_thread(_refusal, lambda: guarded.invoke({"order": 3})),
        ]
        return "".join(said)

    async def main() -> str:
        (sub_agent,) = guard_tools([outer], client.tacho)
        async with client.tacho.run():
            return str(await sub_agent.ainvoke({"order": 1})) + str(await later[0])

    assert asyncio.run(main()).count("A policy forbids this call") == 3
    assert ran == []


def _refusal(call: Callable[[], Any]) -> str:
    return str(call())


def test_what_cannot_be_guarded_is_refused_or_reported(service: Service, make: Callable[..., Client]) -> None:
    client = make()

    @tool
    def streams(order: int) -> Iterator[str]:
        """Streams."""
        yield "piece"

    class Invoked(BaseTool):
        def invoke(self, *args: Any, **named: Any) -> str:
            return "ran"

        def _run(self) -> str:
            return ""

    class Decorated(BaseTool):
        @functools.wraps(BaseTool.run)
        def run(self, *args: Any, **named: Any) -> str:  # type: ignore[override]
            return "ran"

        def _run(self) -> str:
            return ""

    changed = Tool(name="changed", description="Does it.", func=lambda text: text)
    object.__setattr__(changed, "invoke", lambda *_: "ran")
    own: list[Any] = [Invoked(name="invoked", description=""), Decorated(name="decorated", description=""), changed]
    given: list[Any] = [streams, *own, {"type": "web_search"}, len]
    for one in given:
        with pytest.raises(CannotGuardError, match="cannot be guarded"):
            guard_tools([one], client.tacho)
    with client.tacho.run():
        assert guard_tools(given, client.tacho, unguarded="allow") == given
    client.tacho.flush(120)
    assert client.codes.count("unguarded_tool") == 1
    said = [event["payload"] for event in service.events if event["eventType"] == "AGENT_STEP"]
    assert [payload["toolName"] for payload in said] == [
        "streams",
        "invoked",
        "decorated",
        "changed",
        "web_search",
        "builtin_function_or_method",
    ]
    assert {payload["isGuarded"] for payload in said} == {False}


def test_a_tool_that_interrupts_is_paused_and_runs_when_resumed(service: Service, make: Callable[..., Client]) -> None:
    client = make()

    @tool
    def ask(order: int) -> str:
        """Asks a person."""
        return f"they said {interrupt('Refund?')}"

    asked: Any = [{"name": "ask", "args": {"order": 1}, "id": "1", "type": "tool_call"}]
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(guard_tools([ask], client.tacho)))
    graph.add_edge(START, "tools")
    compiled = graph.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    with client.tacho.run():
        compiled.invoke({"messages": [AIMessage(content="", tool_calls=asked)]}, config)
        result = compiled.invoke(Command(resume="yes"), config)
    assert result["messages"][-1].content == "they said yes"
    client.tacho.flush(120)
    calls = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    outputs = [call["output"] for call in calls if "output" in call]
    assert outputs == ["they said yes"]
    assert [call.get("paused") for call in calls] == [True, None]
    assert not any("error" in call for call in calls)
    assert service.of("/issue-records") == []


def test_what_a_marker_of_ones_own_injects_is_judged(service: Service, make: Callable[..., Client]) -> None:
    """LangChain hides such an argument from the model, but accepts it if the model writes it."""
    service.deploy('tool.name == "pay" && tool.input.amount > 100.0', "BLOCK")
    ran: list[float] = []

    @tool
    def pay(amount: Annotated[float, Ours()]) -> str:
        """Pays."""
        ran.append(amount)
        return "paid"

    (guarded,) = guard_tools([pay], make().tacho)
    assert "A policy forbids this call" in str(guarded.invoke({"amount": 500}))
    assert guarded.invoke({"amount": 50}) == "paid"
    assert ran == [50]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_renamed_tool(is_async: bool, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, WAYS[0], run_of(is_async, rename=True), wrap)


def test_a_guarded_tool_is_guarded_once(service: Service, make: Callable[..., Client]) -> None:
    client = make()

    @tool
    def act(order: int) -> str:
        """Does it."""
        return "did it"

    (guarded,) = guard_tools(guard_tools([act], client.tacho), client.tacho)
    with client.tacho.run():
        assert guarded.batch([{"order": 1}, {"order": 2}]) == ["did it", "did it"]
    client.tacho.flush(120)
    calls = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    assert sorted(call["input"]["order"] for call in calls if "output" in call) == [1, 2]


def test_a_tools_own_handler_may_answer_in_parts(make: Callable[..., Client]) -> None:
    @tool
    def fails(order: int) -> str:
        """Fails."""
        raise ToolException("no such order")

    parts = [{"type": "text", "text": "no"}]
    fails.handle_tool_error = lambda _: parts
    (guarded,) = guard_tools([fails], make().tacho)
    assert guarded.invoke({"order": 1}) == parts


def test_the_page_says_so() -> None:
    others = {
        "generator": "refused",
        "streaming": "guarded",
        "batch": "guarded",
        "retry": "guarded",
        "sub-agent": "guarded",
        "resumed": "guarded",
        "renamed": "guarded",
        "hosted tool": "refused",
        "own runner": "refused",
        "unknown shape": "refused",
        **rows_of("langchain"),
    }
    outside = [
        "Tools that do not pass through `guard_tools`, such as those that middleware adds, and nodes of a graph.",
        "Tools of the provider, such as a web search: the provider runs them.",
        "Values that LangChain injects (state, store, runtime, config) are not judged: agents and `ToolNode` replace what a "
        "model wrote. If you call `tool.invoke` with a model's arguments yourself, remove these first.",
        "The answer that `interrupt` returns when a run is resumed: it is not part of the input.",
        "`tool_interceptors` of `langchain-mcp-adapters` run inside the tool: what they change in the arguments is not judged.",
    ]
    check_results("python-langchain", "LangChain", ["langchain-core", "langgraph"], [*WAYS, *OWN], others, outside)
