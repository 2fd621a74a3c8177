from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conftest import Service

from .conftest import Leaving, Scene
from .model_server import CALLS, ModelServer

pytest.importorskip("langgraph")
pytest.importorskip("langchain_openai")


def agent_of(scene: Scene, model: ModelServer, **options: Any) -> Any:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    from tacho_sdk.integrations.langchain import guard_tools

    chat = ChatOpenAI(model="m", base_url=f"{model.url}/v1", stream_usage=True, **options)
    return create_react_agent(chat, guard_tools([tool(scene.refund)], scene.tacho))


def answers_of(messages: list[Any]) -> list[Any]:
    found = {message.tool_call_id: message for message in messages if message.type == "tool"}
    assert [found[call_id].status for call_id, _ in CALLS] == ["success", "error", "success"]
    return [found[call_id].content for call_id, _ in CALLS]


def test_a_graph_in_a_run(scene: Scene, model: ModelServer) -> None:
    from tacho_sdk.integrations.langchain import TachoHandler

    handler = TachoHandler(scene.tacho)
    with scene.tacho.run():
        result = agent_of(scene, model).invoke({"messages": "Refund 1, 2 and 3"}, {"callbacks": [handler]})
    messages = result["messages"]
    scene.check(provider="openai", answer=messages[-1].content, messages=answers_of(messages))
    assert not handler._calls and not handler._scopes and not handler._own


def test_a_graph_async_streamed(scene: Scene, model: ModelServer) -> None:
    from tacho_sdk.integrations.langchain import TachoHandler

    async def main() -> Any:
        agent = agent_of(scene, model, streaming=True)
        async with scene.tacho.run():
            given = {"messages": "Refund 1, 2 and 3"}
            options = {"callbacks": [TachoHandler(scene.tacho)]}
            states = [state async for state in agent.astream(given, options, stream_mode="values")]
        return states[-1]["messages"]

    messages = asyncio.run(main())
    scene.check(provider="openai", answer=messages[-1].content, messages=answers_of(messages), is_stream=True)


def test_outside_a_run_the_outermost_chain_is_one(scene: Scene, model: ModelServer, service: Service) -> None:
    from tacho_sdk.integrations.langchain import TachoHandler

    given = {"messages": "Refund 1, 2 and 3"}
    result = agent_of(scene, model).invoke(given, {"callbacks": [TachoHandler(scene.tacho)]})
    messages = result["messages"]
    scene.check(provider="openai", answer=messages[-1].content, messages=answers_of(messages))
    assert [event["payload"]["status"] for event in service.events if event["eventType"] == "SESSION_OUTCOME"] == ["COMPLETED"]
    assert scene.tacho.current_run() is None


def test_a_stream_that_is_left_leaves_no_run_behind(scene: Scene, model: ModelServer, service: Service) -> None:
    from tacho_sdk.integrations.langchain import TachoHandler

    async def main() -> None:
        stream = agent_of(scene, model).astream({"messages": "Refund 1, 2 and 3"}, {"callbacks": [TachoHandler(scene.tacho)]})
        async for _ in stream:
            break
        await stream.aclose()
        assert scene.tacho.current_run() is None

    asyncio.run(main())
    scene.tacho.flush(120)
    assert [event["eventType"] for event in service.events].count("SESSION_OUTCOME") == 1


def test_a_tools_own_errors_stay_its_own(scene: Scene) -> None:
    from langchain_core.tools import ToolException, tool

    from tacho_sdk.integrations.langchain import guard_tools

    @tool
    def fails(order: int) -> str:
        """Fails."""
        raise ToolException("no such order")

    (guarded,) = guard_tools([fails], scene.tacho)
    with scene.tacho.run(), pytest.raises(ToolException, match="no such order"):
        guarded.invoke({"order": 1, "amount": 2})
    fails.handle_tool_error = True
    (guarded,) = guard_tools([fails], scene.tacho)
    with scene.tacho.run():
        assert guarded.invoke({"order": 1, "amount": 2}) == "no such order"


def _graph(**nodes: Any) -> Any:
    from langgraph.checkpoint.memory import MemorySaver
    from langgraph.graph import START, MessagesState, StateGraph

    graph, last = StateGraph(MessagesState), START
    for name, act in nodes.items():
        graph.add_node(name, act)
        graph.add_edge(last, name)
        last = name
    return graph.compile(checkpointer=MemorySaver())


def _run(scene: Scene, service: Service, graph: Any, raises: type[BaseException] | None) -> list[dict[str, Any]]:
    from tacho_sdk.integrations.langchain import TachoHandler

    options = {"callbacks": [TachoHandler(scene.tacho)], "configurable": {"thread_id": "x"}}
    if raises is None:
        graph.invoke({"messages": []}, options)
    else:
        with pytest.raises(raises):
            graph.invoke({"messages": []}, options)
    scene.tacho.flush(120)
    return service.events


def test_unguarded_tools_and_nodes_are_recorded_and_a_failure_says_why(scene: Scene, service: Service) -> None:
    from langchain_core.tools import tool

    from tacho_sdk.integrations.langchain import guard_tools

    @tool
    def weather(city: str) -> str:
        """The weather."""
        return f"sunny in {city}"

    (guarded,) = guard_tools([tool(scene.refund)], scene.tacho)

    def look(state: Any) -> Any:
        guarded.invoke({"order": 1, "amount": 2})
        return {"messages": [weather.invoke({"city": "Oslo"})]}

    def pay(state: Any) -> Any:
        raise ValueError("no money") from KeyError("bank")

    events = _run(scene, service, _graph(look=look, pay=pay), ValueError)
    kinds = [(event["eventType"], event["label"]) for event in events if event["eventType"] != "POLICY_DECISION"]
    assert kinds == [
        *(("TOOL_START", "refund"), ("TOOL_CALL", "refund"), ("TOOL_CALL", "weather")),
        *(("AGENT_STEP", "look"), ("AGENT_STEP", "pay"), ("SESSION_OUTCOME", "failed")),
    ]
    call, _, failed, end = events[-4:]
    assert (call["payload"]["input"], call["payload"]["output"]) == ({"city": "Oslo"}, "sunny in Oslo")
    assert call["payload"]["outcome"] == "returned"
    for event in (failed, end):
        exception = event["payload"]["exception"]
        assert (exception["type"], exception["causes"]) == ("ValueError", [{"type": "KeyError", "message": "'bank'"}])
        assert "raise ValueError" in exception["stack"]


def test_a_graph_that_pauses_has_not_failed(scene: Scene, service: Service) -> None:
    from langgraph.types import interrupt

    events = _run(scene, service, _graph(ask=lambda state: {"messages": [interrupt("Refund?")]}), None)
    (step,) = [event for event in events if event["eventType"] == "AGENT_STEP"]
    assert step["payload"]["paused"] == "GraphInterrupt" and "error" not in step["payload"]


@pytest.mark.parametrize("kind", ["sync tool", "async tool", "whole agent in a thread", "left stream", "step timeout"])
@pytest.mark.parametrize("has_run", [False, True])
def test_an_agent_that_gave_up_runs_nothing_later(
    make: Any, service: Service, model: ModelServer, kind: str, has_run: bool
) -> None:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    from tacho_sdk.integrations.langchain import TachoHandler, guard_tools

    leaving, client, ran = Leaving(service), make().tacho, list[int]()

    def refund(order: int, amount: int) -> str:
        """Refunds an order."""
        ran.append(order)
        return "refunded"

    async def arefund(order: int, amount: int) -> str:
        """Refunds an order."""
        return refund(order, amount)

    made = tool("refund")(arefund if kind == "async tool" else refund)
    chat = ChatOpenAI(model="m", base_url=f"{model.url}/v1")
    agent = create_react_agent(chat, guard_tools([made], client))
    given: Any = {"messages": "Refund 1, 2 and 3"}
    options: Any = {"callbacks": [TachoHandler(client)]}

    class Impatient(BaseCallbackHandler):
        """Sets the timeout after the model's step, which is slow on a busy machine: only the tools' step may time out."""

        def on_llm_end(self, *_: Any, **__: Any) -> None:
            agent.step_timeout = 2

    async def main() -> None:
        if kind == "left stream":
            stream: Any = agent.astream(given, options)

            async def read() -> None:
                async for _ in stream:
                    pass

            task = asyncio.ensure_future(read())
            await asyncio.to_thread(leaving.until_held)
            task.cancel()
            await asyncio.wait([task])
            await stream.aclose()
            return
        running: Any = asyncio.to_thread(agent.invoke, given, options) if "thread" in kind else agent.ainvoke(given, options)
        task = asyncio.ensure_future(running)
        await asyncio.to_thread(leaving.until_held)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.1)

    def act() -> None:
        if kind != "step timeout":
            asyncio.run(main())
            return
        with pytest.raises(TimeoutError):
            agent.invoke(given, {"callbacks": [TachoHandler(client), Impatient()]})

    if has_run:
        with client.run():
            act()
            leaving.check(client, ran, {"cancelled"})
    else:
        act()
        leaving.check(client, ran, {"cancelled", "run_ended"})


def test_a_call_that_a_cache_answers_or_two_handlers_see_is_paid_once(
    scene: Scene, model: ModelServer, service: Service
) -> None:
    from langchain_core.caches import InMemoryCache
    from langchain_openai import ChatOpenAI

    from tacho_sdk.integrations.langchain import TachoHandler

    handlers: list[Any] = [TachoHandler(scene.tacho), TachoHandler(scene.tacho)]
    chat = ChatOpenAI(model="m", base_url=f"{model.url}/v1", cache=InMemoryCache(), callbacks=handlers[:1])
    with scene.tacho.run():
        for _ in range(2):
            chat.invoke("Refund 1, 2 and 3", {"callbacks": handlers[1:]})
    scene.tacho.flush()
    calls = [event["payload"] for event in service.events if event["eventType"] == "LLM_CALL"]
    assert [call.get("notCounted") for call in calls] == [None, "cache"]


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_tool_that_only_the_handler_sees_has_an_outcome(scene: Scene, service: Service, is_cancelled: bool) -> None:
    from langchain_core.tools import tool

    from tacho_sdk.integrations.langchain import TachoHandler

    @tool
    def slow(n: int) -> str:
        """Slow."""
        raise KeyboardInterrupt if is_cancelled else ValueError("no")

    with scene.tacho.run(), pytest.raises((KeyboardInterrupt, ValueError)):
        slow.invoke({"n": 1}, {"callbacks": [TachoHandler(scene.tacho)]})
    scene.tacho.flush()
    (call,) = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    assert call["outcome"] == ("cancelled" if is_cancelled else "failed") and ("error" in call) is not is_cancelled


def test_two_handlers_tell_of_one_hand_off_and_leave_no_agent_behind(make: Any, service: Service) -> None:
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import Command

    from tacho_sdk.integrations.langchain import TachoHandler

    client = make().tacho
    graph: Any = StateGraph(MessagesState)
    graph.add_node("first", lambda _: Command(goto="second"), destinations=("second",))
    graph.add_node("second", lambda _: client.record("INSIDE", "inside") and {"messages": []})
    graph.add_edge(START, "first")
    with client.run():
        options: Any = {"callbacks": [TachoHandler(client), TachoHandler(client)]}
        graph.compile().invoke({"messages": []}, options)
        client.record("AFTER", "after")
    client.flush(120)
    told = [(event["eventType"], event["payload"].get("agent")) for event in service.events]
    assert told == [
        ("AGENT_STEP", None),
        ("HANDOFF", None),
        ("INSIDE", "second"),
        ("AGENT_STEP", "second"),
        ("AFTER", None),
        ("SESSION_OUTCOME", None),
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"order": "7"}, None),
        ({"order": "seven"}, "order: "),
        ({}, "missing a required argument: 'order'"),
        ({"order": 7, "amuont": 5}, "unexpected keyword argument 'amuont'"),
    ],
)
def test_a_class_without_a_schema_gets_arguments_that_fit_its_hints(
    make: Any, service: Service, arguments: dict[str, Any], reason: str | None
) -> None:
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool

    from tacho_sdk.integrations.langchain import guard_tools

    got: list[object] = []

    class Unchecked(BaseTool):
        name: str = "refund"
        description: str = "Refunds an order"

        def _run(self, order, amount=1, run_manager=None, *, config):  # type: ignore[no-untyped-def]
            got.append(order)
            return "refunded"

    # LangChain cannot look up an annotation of this module.
    Unchecked._run.__annotations__.update(order=int, amount=float, config=RunnableConfig)
    client = make().tacho
    (tool,) = guard_tools([Unchecked()], client)
    call: Any = {"type": "tool_call", "id": "c1", "name": "refund", "args": arguments}
    with client.run():
        answer = tool.invoke(call)
    client.flush()
    (recorded,) = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    facts = [recorded.get(name) for name in ("toolCallId", "outcome", "reasonCode")]
    if reason is None:
        assert facts == ["c1", "returned", None] and got == [7] and recorded["input"] == {"order": 7, "amount": 1.0}
    else:
        assert facts == ["c1", "never_ran", "unfit"] and got == []
        assert reason in answer.content and recorded["error"]["message"] == answer.content
