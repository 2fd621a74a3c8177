"""No call of a cut answer runs, however the provider, the framework or the stream reports the cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Client, Service
from tacho_sdk.guarding.asked_calls import is_cut, tool_calls_of
from tacho_sdk.integrations.langchain_answers import names_of, reason_of
from tacho_sdk.integrations.messages import messages_of
from tacho_sdk.integrations.openai import call_tools, record_client

REASONS = json.loads((Path(__file__).parents[4] / "packages/contract/vectors/finish-reasons.json").read_text())
Make = Callable[..., Client]


def test_a_call_is_whole_only_of_the_reasons_that_both_sdks_know() -> None:
    assert [one for one in REASONS["whole"] if is_cut(one)] == []
    assert [one for one in [*REASONS["cut"], *REASONS["unlisted"], 7] if not is_cut(one)] == []
    assert not is_cut(None) and not is_cut("")


def test_a_call_has_a_status_of_its_own(make: Make) -> None:
    def asked(status: str, reason: str) -> Any:
        item = {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}", "status": status}
        return tool_calls_of(make().tacho.core, messages_of([item]), reason, None)[0].get("problem")

    assert [asked("completed", "incomplete"), asked("incomplete", "completed")] == [None, "cut"]


def test_equal_ids_in_two_runs_are_two_calls(make: Make) -> None:
    client, ran = make().tacho, list[int]()

    def refund(order: int) -> None:
        ran.append(order)

    def asked(run: Any, order: int, reason: str) -> dict[str, Any]:
        call = {"id": "functions.refund:0", "function": {"name": "refund", "arguments": f'{{"order": {order}}}'}}
        tool_calls_of(client.core, messages_of([{"role": "assistant", "tool_calls": [call]}]), reason, run._scope)
        return {"tool_calls": [call]}

    for first in ("length", "tool_calls"):
        runs = [client.start_run(), client.start_run()]
        answers = [asked(runs[0], 1, first), asked(runs[1], 2, "tool_calls" if first == "length" else "length")]
        for run, answer in zip(runs, answers, strict=True):
            with run.within():
                call_tools(answer, [refund], client)
    assert ran == [2, 1]


class Stream:
    """An answer in the form that OpenAI's client returns."""

    def __init__(self, pieces: list[Any]) -> None:
        self._iterator = iter(pieces)

    def __iter__(self) -> Any:
        return self._iterator

    def close(self) -> None: ...


def piece(delta: Any, reason: str | None = None) -> Any:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


CALL = piece({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "refund", "arguments": '{"order": 7}'}}]})


@pytest.mark.parametrize(
    ("pieces", "read", "reason"),
    [
        ([CALL, piece({}, "tool_calls")], 9, "tool_calls"),
        ([CALL, piece({}, "tool_calls")], 2, "tool_calls"),
        ([CALL, piece({}, "length")], 2, "length"),
        ([CALL, piece({}, "tool_calls")], 1, "aborted"),
        ([CALL], 9, None),
    ],
)
def test_a_host_runs_the_calls_of_a_stream(make: Make, service: Service, pieces: Any, read: int, reason: str | None) -> None:
    client, ran = make().tacho, list[int]()

    class Completions:
        def create(self, **_: Any) -> Any:
            return Stream(pieces)

    class OpenAI:
        chat = type("Chat", (), {"completions": Completions()})()

    def refund(order: int) -> None:
        ran.append(order)

    sdk: Any = record_client(OpenAI(), client)
    with client.run():
        stream = sdk.chat.completions.create(model="m", messages=[], stream=True)
        for _, _ in zip(range(read), stream, strict=False):
            pass
        call_tools({"tool_calls": CALL["choices"][0]["delta"]["tool_calls"]}, [refund], client)
    client.flush(120)
    (told,) = [event["payload"] for event in service.events if event["eventType"] == "LLM_CALL"]
    assert (ran, told.get("finishReason")) == ([7] if reason == "tool_calls" else [], reason)
    assert service.events[-1]["eventType"] == "SESSION_OUTCOME"


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"stopReason": "guardrail_intervened"}, "guardrail_intervened"),
        ({"done_reason": "length"}, "length"),
        ({"finishReason": "MAX_TOKENS"}, "MAX_TOKENS"),
        ({"completion_reason": "length"}, "length"),
        ({"status": "incomplete"}, "incomplete"),
        ({"status": "ok"}, None),
        ({"finish_reason": "stopstop"}, "stop"),
        ({"finish_reason": "tool_calls", "status": "incomplete"}, "incomplete"),
        ({}, None),
    ],
)
def test_a_reason_has_many_names_in_langchain(metadata: Any, reason: str | None) -> None:
    assert reason_of(metadata, None) == reason == reason_of({}, metadata)


def test_a_tool_of_the_provider_has_no_name() -> None:
    own = {"type": "function", "function": {"name": "refund"}}
    assert names_of([own, {"type": "web_search"}]) == {"refund"}
    assert names_of([{"function_declarations": [{"name": "a"}, {"name": "b"}]}]) == {"a", "b"}
    assert names_of([own, {"google_search": {}}]) == set()
