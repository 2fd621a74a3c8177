"""Calls that never reach their tool are on the record, and a cut call never runs as whole: one answer with four calls."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Client, Service
from tacho.integrations.fitting import Unfit, _fit_simple, fitted

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
    openai, client, ran = importlib.import_module("tacho.integrations.openai"), make().tacho, []

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
    openai, anthropic = (importlib.import_module(f"tacho.integrations.{name}") for name in ("openai", "anthropic"))
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
    openai, client, ran = importlib.import_module("tacho.integrations.openai"), make().tacho, list[Any]()
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

    from tacho.integrations.langchain import TachoHandler, guard_tools

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

    from tacho.integrations.openai_agents import TachoHooks, guard_agent

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
    assert [payload for kind, payload in events if kind == "HANDOFF"] == [{"from": "first", "to": "other"}]
    assert [payload.get("agent") for kind, payload in events if kind == "LLM_CALL"] == [None, "other", "other"]
