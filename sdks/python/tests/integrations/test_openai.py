from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest

from conftest import Service

from .conftest import Scene
from .model_server import CALLS, FINAL, ModelServer

openai = pytest.importorskip("openai")
QUESTION = {"role": "user", "content": "Refund 1, 2 and 3"}
OPTIONS = {"stream": True, "stream_options": {"include_usage": True}}


def test_chat_completions(scene: Scene, model: ModelServer) -> None:
    from tacho_sdk.integrations.openai import call_tools, record_client

    client = record_client(openai.OpenAI(base_url=f"{model.url}/v1"), scene.tacho)
    messages: list[Any] = [QUESTION]
    with scene.tacho.run():
        answer = client.chat.completions.create(model="m", messages=messages).choices[0].message
        messages += [answer, *call_tools(answer, [scene.refund], scene.tacho)]
        last = client.chat.completions.create(model="m", messages=messages).choices[0].message
    scene.check(provider="openai", answer=last.content, messages=messages[2:])


def test_chat_completions_async_streamed(scene: Scene, model: ModelServer) -> None:
    from tacho_sdk.integrations.openai import acall_tools, record_client

    async def main() -> Any:
        client = record_client(openai.AsyncOpenAI(base_url=f"{model.url}/v1"), scene.tacho)
        messages: list[Any] = [QUESTION]
        async with scene.tacho.run():
            stream = await client.chat.completions.create(model="m", messages=messages, **OPTIONS)
            assert isinstance(stream, openai.AsyncStream)
            pieces = [piece async for piece in stream]
            texts = [piece.choices[0].delta.tool_calls for piece in pieces if piece.choices]
            assert sum(1 for text in texts if text) == 6
            calls = [
                {"id": id_, "type": "function", "function": {"name": "refund", "arguments": str(given).replace("'", '"')}}
                for id_, given in CALLS
            ]
            answer = {"role": "assistant", "tool_calls": calls}
            messages += [answer, *await acall_tools(answer, {"refund": scene.refund}, scene.tacho)]
            last = await client.chat.completions.create(model="m", messages=messages, **OPTIONS)
            text = "".join([piece.choices[0].delta.content or "" async for piece in last if piece.choices])
        return text, messages[2:]

    text, answers = asyncio.run(main())
    scene.check(provider="openai", answer=text, messages=answers, is_stream=True)


@pytest.mark.parametrize("is_stream", [False, True])
def test_responses(scene: Scene, model: ModelServer, is_stream: bool) -> None:
    from tacho_sdk.integrations.openai import call_tools, record_client

    client = record_client(openai.OpenAI(base_url=f"{model.url}/v1"), scene.tacho)

    def ask(items: list[Any]) -> Any:
        if not is_stream:
            return client.responses.create(model="m", input=items)
        events = list(client.responses.create(model="m", input=items, stream=True))
        return events[-1].response

    items: list[Any] = [QUESTION]
    with scene.tacho.run():
        first = ask(items)
        answers = call_tools(first, [scene.refund], scene.tacho)
        last = ask([*items, *first.output, *answers])
    scene.check(provider="openai", answer=last.output_text, messages=answers, is_stream=is_stream)


def test_outside_a_run_each_call_is_a_run_and_errors_stay_the_clients_own(
    scene: Scene, model: ModelServer, service: Service
) -> None:
    from tacho_sdk.integrations.openai import record_client

    client = record_client(openai.OpenAI(base_url=f"{model.url}/v1", max_retries=0), scene.tacho)
    assert client.embeddings.create(model="embed", input="text").data[0].embedding == [0.1, 0.2]
    with pytest.raises(openai.APIConnectionError):
        record_client(openai.OpenAI(base_url="http://127.0.0.1:1", max_retries=0), scene.tacho).chat.completions.create(
            model="m", messages=[]
        )
    stream = client.chat.completions.create(model="m", messages=[QUESTION, {"role": "tool", "content": ""}], **OPTIONS)
    assert next(iter(stream)).choices[0].delta.role == "assistant"
    stream.close()
    del stream
    gc.collect()
    scene.tacho.flush(120)
    statuses = [event["payload"]["status"] for event in service.events if event["eventType"] == "SESSION_OUTCOME"]
    assert statuses == ["COMPLETED", "FAILED", "CANCELLED"]
    calls = [event["payload"] for event in service.events if event["eventType"] == "LLM_CALL"]
    assert calls[0]["usage"] == {"promptTokens": 3, "totalTokens": 3}
    assert calls[1]["error"].startswith("APIConnectionError") and calls[2]["finishReason"] == "aborted"


def test_an_unknown_tool_and_a_failing_one_are_answers_for_the_model(scene: Scene) -> None:
    from tacho_sdk.integrations.openai import call_tools

    def fails(order: int) -> None:
        raise ValueError("no such order")

    calls = [("fails", '{"order": 1}'), ("missing", "{}"), ("fails", "not json")]
    message = {"tool_calls": [{"id": "1", "function": {"name": name, "arguments": given}} for name, given in calls]}
    answers = [answer["content"] for answer in call_tools(message, [fails], scene.tacho)]
    assert answers == [
        "ValueError: no such order",
        "LookupError: There is no tool missing.",
        "TypeError: The arguments are not a JSON object.",
    ]
    assert FINAL


def test_a_stream_that_is_left_open_stands_before_the_outcome_of_its_run(
    make: Any, service: Service, model: ModelServer
) -> None:
    from openai import OpenAI

    from tacho_sdk.integrations.openai import record_client

    client = make().tacho
    sdk = record_client(OpenAI(base_url=f"{model.url}/v1"), client)
    with client.run():
        stream: Any = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "Go"}], stream=True)
        next(stream)
        next(stream)
    time.sleep(0.05)
    stream.close()
    client.flush(120)
    events = sorted(service.events, key=lambda event: event["timestamp"])
    assert [event["eventType"] for event in events] == ["LLM_CALL", "SESSION_OUTCOME"]
    assert events[0]["payload"]["finishReason"] == "aborted" and events[0]["timestamp"] < events[1]["timestamp"]
