"""Calls that never reach their tool are recorded, and a cut call never runs. Each test has one answer with four calls."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from conftest import Client, Service
from tacho_sdk.guarding.asked_calls import tool_calls_of
from tacho_sdk.integrations.fitting import Unfit, _fit_simple, fitted
from tacho_sdk.integrations.messages import messages_of

ASKED = [
    ("c1", "refund", '{"order": 7, "amount": 5'),
    ("c2", "no_such_tool", '{"order": 7}'),
    ("c3", "refund", '{"order": "seven", "amount": 5}'),
    ("c4", "refund", '{"order": 8, "amount": 6}'),
]
CODES = ["unreadable", "unknown_tool", "unfit"]
WANT = [*((f"c{n + 1}", "never_ran", code) for n, code in enumerate(CODES)), ("c4", "returned", None)]
Make = Callable[..., Client]


def calls_of(service: Service) -> list[tuple[Any, Any, Any]]:
    payloads = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    return sorted((one.get("toolCallId"), one["outcome"], one.get("reasonCode")) for one in payloads)


def completion(reason: str) -> dict[str, Any]:
    calls = [{"id": id_, "type": "function", "function": {"name": name, "arguments": text}} for id_, name, text in ASKED]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"id": "x", "choices": [{"index": 0, "finish_reason": reason, "message": message}]}


def response(status: str) -> dict[str, Any]:
    item = {"type": "function_call", "status": "completed"}
    items = [{**item, "call_id": id_, "name": name, "arguments": text} for id_, name, text in ASKED]
    return {"status": status, "output": items}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "answer", [completion("tool_calls"), completion("tool_calls")["choices"][0]["message"], response("incomplete")]
)
def test_call_tools_records_each_call_and_the_model_reads_why(
    make: Make, service: Service, answer: Any, is_async: bool
) -> None:
    openai, client, ran = importlib.import_module("tacho_sdk.integrations.openai"), make().tacho, []

    def refund(order: int, amount: int) -> str:
        ran.append((order, amount))
        return "refunded"

    with client.run():
        given = (answer, [refund], client)
        said = asyncio.run(openai.acall_tools(*given)) if is_async else openai.call_tools(*given)
    client.flush(120)
    assert ran == [(8, 6)] and calls_of(service) == WANT
    texts = [str(one.get("content", one.get("output"))) for one in said]
    assert "not a JSON object" in texts[0] and "no tool no_such_tool" in texts[1] and "order" in texts[2]
    kept = [event["payload"].get("arguments") for event in service.events if event["eventType"] == "TOOL_CALL"]
    assert set(kept) >= {text for _, _, text in ASKED[:3]}
    found = [one for one in service.of("/issue-records") if one["recordKind"] == "DETECTION"]
    assert [one["payload"]["reasonCode"] for one in found] == CODES


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_no_call_of_a_cut_answer_runs(make: Make, service: Service, reason: str) -> None:
    openai, anthropic = (importlib.import_module(f"tacho_sdk.integrations.{name}") for name in ("openai", "anthropic"))
    client, ran = make().tacho, list[int]()

    def refund(order: int, amount: int) -> None:
        ran.append(order)

    with client.run():
        said = openai.call_tools(completion(reason), [refund], client)
        uses = [{"type": "tool_use", "id": "u", "name": "refund", "input": {"order": 7, "amount": 5}}]
        said += anthropic.call_tools({"content": uses, "stop_reason": "max_tokens"}, [refund], client)
    client.flush(120)
    assert ran == [] and all("before its arguments were complete" in one["content"] for one in said)
    assert [(outcome, code) for _, outcome, code in calls_of(service)] == [("never_ran", "cut")] * 5


def test_what_was_converted_is_what_policies_judge(make: Make, service: Service) -> None:
    openai, client, ran = importlib.import_module("tacho_sdk.integrations.openai"), make().tacho, list[Any]()
    service.deploy("tool.input.amount > 100", "BLOCK")

    def refund(order: int, amount: float) -> None:
        ran.append((order, amount))

    call = {"id": "c", "function": {"name": "refund", "arguments": '{"order": "7", "amount": "500"}'}}
    with client.run():
        openai.call_tools({"tool_calls": [call]}, [refund], client)
        call["function"]["arguments"] = '{"order": "7", "amount": "50"}'  # type: ignore[index]
        openai.call_tools({"tool_calls": [call]}, [refund], client)
    client.flush(120)
    assert ran == [(7, 50.0)]


def test_without_pydantic_simple_hints_are_checked() -> None:
    assert [_fit_simple("n", int, "7"), _fit_simple("n", float | None, None), _fit_simple("n", Any, object)] == [
        7,
        None,
        object,
    ]
    for hint, value in ((int, "seven"), (str, 7), (bool, 1), (list[int], {})):
        with pytest.raises(Unfit):
            _fit_simple("n", hint, value)
    with pytest.raises(Unfit):
        fitted(lambda order: order, {"other": 1})


@pytest.mark.parametrize("reason", ["tool_calls", "length"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_graph(make: Make, service: Service, reason: str, is_async: bool) -> None:
    pytest.importorskip("langgraph")
    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.prebuilt import create_react_agent

    from tacho_sdk.integrations.langchain import TachoHandler, guard_tools

    class Model(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self.bind(tools=[{"name": one.name} for one in tools])

    client, ran = make().tacho, list[int]()

    def refund(order: int, amount: int) -> str:
        """Refunds."""
        ran.append(order)
        return "refunded"

    calls = [{"id": id_, "name": name, "args": json.loads(text)} for id_, name, text in ASKED[1:]]
    lost = {"id": "c1", "name": "refund", "args": ASKED[0][2], "error": "bad", "type": "invalid_tool_call"}
    raw = [{"id": id_, "function": {"name": name, "arguments": text}} for id_, name, text in ASKED]
    first = AIMessage(
        content="",
        tool_calls=calls,
        invalid_tool_calls=[lost],
        additional_kwargs={"tool_calls": raw},
        response_metadata={"finish_reason": reason},
    )
    agent = create_react_agent(Model(responses=[first, AIMessage(content="done")]), guard_tools([tool(refund)], client))
    given: Any = ({"messages": "Refund"}, {"callbacks": [TachoHandler(client)]})
    with client.run():
        asyncio.run(agent.ainvoke(*given)) if is_async else agent.invoke(*given)
    client.flush(120)
    (asked, _) = [event["payload"] for event in service.events if event["eventType"] == "LLM_CALL"]
    assert {call["id"] for call in asked["toolCalls"]} == {"c1", "c2", "c3", "c4"}
    if reason == "tool_calls":
        assert ran == [8] and calls_of(service) == WANT
    else:
        assert ran == []
        assert {call["id"]: call["arguments"] for call in asked["toolCalls"]}["c1"] == ASKED[0][2]
        assert all(outcome == "never_ran" for _, outcome, _ in calls_of(service))
        assert ("c4", "never_ran", "cut") in calls_of(service)


@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_an_agent_of_openai(make: Make, service: Service, status: str) -> None:
    agents: Any = pytest.importorskip("agents")
    from agents.items import ModelResponse
    from agents.usage import Usage
    from openai.types.responses import ResponseFunctionToolCall

    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

    client, ran = make().tacho, list[int]()

    @agents.function_tool  # type: ignore[untyped-decorator]
    def refund(order: int, amount: int) -> str:
        """Refunds."""
        ran.append(order)
        return "refunded"

    def item(call_id: str, name: str, text: str) -> Any:
        given: Any = {"type": "function_call", "call_id": call_id, "name": name, "arguments": text, "status": status}
        return ResponseFunctionToolCall(**given)

    class Model(agents.Model):  # type: ignore[misc]
        answers = [
            [item("h", "transfer_to_other", "{}")],
            [item(*one) for one in (ASKED[0], ASKED[2], ASKED[3])],
            [item(*ASKED[1])],
        ]

        async def get_response(self, *_: Any, **__: Any) -> Any:
            return ModelResponse(output=self.answers.pop(0), usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any: ...

    model = Model()
    other = agents.Agent(name="other", model=model, tools=[refund])
    agent = guard_agent(agents.Agent(name="first", model=model, handoffs=[other]), client)
    with client.run(), pytest.raises(agents.exceptions.ModelBehaviorError):
        agents.Runner.run_sync(agent, "Refund", hooks=TachoHooks(client))
    client.flush(120)
    if status == "completed":
        assert ran == [8] and calls_of(service) == WANT
    else:
        assert ran == [] and ("c4", "never_ran", "cut") in calls_of(service)
    events = [(event["eventType"], event["payload"]) for event in service.events]
    assert [payload for kind, payload in events if kind == "HANDOFF"] == [{"from": "first", "to": "other", "toolCallId": "h"}]
    assert [payload.get("agent") for kind, payload in events if kind == "LLM_CALL"] == [None, "other", "other"]


def pieces_of(reason: str, calls: Any = ASKED) -> list[dict[str, Any]]:
    """A streamed chat completion."""
    asked = [
        {"index": n, "id": id_, "type": "function", "function": {"name": name, "arguments": text}}
        for n, (id_, name, text) in enumerate(calls)
    ]
    choice: dict[str, Any] = {"index": 0, "delta": {"role": "assistant", "tool_calls": asked}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": reason}
    return [
        {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [one]} for one in (choice, end)
    ]


@pytest.fixture
def answering() -> Any:
    """A server that streams these answers as chat completions, and then a text."""
    servers = []

    def start(*answers: list[dict[str, Any]]) -> str:
        left = [*answers]
        text = {"index": 0, "delta": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                pieces = left.pop(0) if left else [{**pieces_of("stop", [])[0], "choices": [text]}]
                lines = [f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in [*pieces, "[DONE]"]]
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write("".join(lines).encode())

            def log_message(self, *_: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("reason", ["tool_calls", "length"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_pydantic_ai(make: Make, service: Service, answering: Any, reason: str, is_stream: bool) -> None:
    pydantic_ai: Any = pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel
    from pydantic_ai.toolsets import FunctionToolset

    from tacho_sdk.integrations.pydantic_ai import guard_toolset, record_model

    client, ran = make().tacho, list[int]()

    def refund(order: int, amount: int) -> str:
        ran.append(order)
        return "refunded"

    def answer(messages: Any, _: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        calls = [ToolCallPart(name, text, tool_call_id=id_) for id_, name, text in ASKED]
        given: Any = {"finish_reason": "length" if reason == "length" else "tool_call"}
        return ModelResponse(parts=calls, **given)

    async def stream(messages: Any, _: Any) -> Any:
        if len(messages) > 1:
            yield "done"
            return
        yield {n: DeltaToolCall(name, text, tool_call_id=id_) for n, (id_, name, text) in enumerate(ASKED)}

    async def main() -> None:
        model = record_model(FunctionModel(answer, stream_function=stream), client)
        toolset: FunctionToolset[Any] = FunctionToolset([refund])
        agent = pydantic_ai.Agent(model, toolsets=[guard_toolset(toolset, client)], retries=3)
        async with client.run():
            if is_stream:
                async with agent.run_stream("Refund") as result:
                    await result.get_output()
            else:
                await agent.run("Refund")

    if is_stream and reason == "length":
        pytest.skip("FunctionModel gives a stream no finish reason")
    asyncio.run(main())
    client.flush(120)
    if reason == "tool_calls":
        assert ran == [8] and calls_of(service) == WANT
    else:
        assert ran == [] and ("c1", "never_ran", "cut") in calls_of(service) and ("c4", "never_ran", "cut") in calls_of(service)


CUT = [("c1", "refund", '{"order": 7, "amount": 5')]


def test_a_cut_stream_of_openai_and_langchain_and_agents(make: Make, service: Service, answering: Any) -> None:
    openai_client: Any = pytest.importorskip("openai")
    agents: Any = pytest.importorskip("agents")
    pytest.importorskip("langgraph")
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    from tacho_sdk.integrations.langchain import TachoHandler, guard_tools
    from tacho_sdk.integrations.openai import call_tools, record_client
    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent
    from tacho_sdk.integrations.pydantic_ai import guard_toolset, record_model

    client, ran = make().tacho, list[int]()

    def refund(order: int, amount: int) -> str:
        """Refunds."""
        ran.append(amount)
        return "refunded"

    with client.run(run_id="openai"):
        sdk = record_client(openai_client.OpenAI(base_url=answering(pieces_of("length", CUT)), api_key="k"), client)
        list(sdk.chat.completions.create(model="m", messages=[], stream=True))
        calls = [{"id": id_, "function": {"name": name, "arguments": text + "}"}} for id_, name, text in CUT]
        call_tools({"tool_calls": calls}, [refund], client)
    with client.run(run_id="langchain"):
        chat: Any = ChatOpenAI(model="m", base_url=answering(pieces_of("length", CUT)), api_key="k", streaming=True)  # type: ignore[arg-type]
        graph = create_react_agent(chat, guard_tools([tool(refund)], client))
        list(graph.stream({"messages": "Refund"}, {"callbacks": [TachoHandler(client)]}, stream_mode="messages"))

    async def run_agents() -> None:
        sdk = openai_client.AsyncOpenAI(base_url=answering(pieces_of("length", CUT)), api_key="k")
        model = agents.OpenAIChatCompletionsModel("m", sdk)
        agent = guard_agent(agents.Agent(name="a", model=model, tools=[agents.function_tool(refund)]), client)
        async with client.run(run_id="agents"):
            result = agents.Runner.run_streamed(agent, "Refund", hooks=TachoHooks(client))
            async for _ in result.stream_events():
                pass

    async def run_pydantic_ai() -> None:
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider
        from pydantic_ai.toolsets import FunctionToolset

        url = answering(pieces_of("length", CUT))
        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="k"))
        toolset: FunctionToolset[Any] = FunctionToolset([refund])
        agent: Any = Agent(record_model(model, client), toolsets=[guard_toolset(toolset, client)])
        async with client.run(run_id="pydantic"), agent.run_stream("Refund") as result:
            await result.get_output()

    asyncio.run(run_agents())
    if importlib.util.find_spec("pydantic_ai"):
        asyncio.run(run_pydantic_ai())
    client.flush(120)
    assert ran == []
    by_run = {
        name: [
            event["payload"].get("reasonCode")
            for event in service.events
            if event["runId"] == name and event["eventType"] == "TOOL_CALL"
        ]
        for name in ("openai", "langchain", "agents", "pydantic")
    }
    assert by_run == {"openai": ["cut"], "langchain": ["cut"], "agents": ["cut"], "pydantic": ["cut"]}


def test_candidates_of_a_stream_and_free_text(make: Make, service: Service, answering: Any) -> None:
    openai_client: Any = pytest.importorskip("openai")
    from tacho_sdk.integrations.openai import record_client

    client = make().tacho
    first, end = pieces_of("tool_calls", ASKED[3:])
    custom = {"index": 0, "id": "x1", "type": "custom", "custom": {"name": "shell", "input": "ls -la"}}
    second = {"index": 1, "delta": {"tool_calls": [custom]}, "finish_reason": "length"}
    sdk = record_client(
        openai_client.OpenAI(base_url=answering([first, {**first, "choices": [second]}, end]), api_key="k"), client
    )
    with client.run():
        list(sdk.chat.completions.create(model="m", messages=[], n=2, stream=True))
    client.flush(120)
    (call,) = [event["payload"] for event in service.events if event["eventType"] == "LLM_CALL"]
    assert call["toolCalls"] == [
        {"id": "c4", "name": "refund"},
        {"id": "x1", "name": "shell", "problem": "cut", "arguments": "ls -la"},
    ]
    assert messages_of({"type": "custom_tool_call", "call_id": "x", "name": "shell", "input": "ls"})[0]["toolCalls"] == [
        {"id": "x", "name": "shell", "arguments": "ls"}
    ]
    said = messages_of(
        {"role": "assistant", "content": [{"type": "custom_tool_call", "call_id": "x", "name": "s", "input": "ls"}]}
    )
    assert tool_calls_of(client.core, said, "completed", None) == [{"id": "x", "name": "s"}]
