"""Each way to call a model with the clients of OpenAI and Anthropic is recorded once, and completely."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Client, Service

from .model_server import FINAL, ModelServer

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

# Requests that the scripted model answers with a text.
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}, {"role": "tool", "content": ""}]}
RESPONSE: dict[str, Any] = {"model": "m", "input": [{"type": "function_call_output", "call_id": "1", "output": "x"}]}
RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "x"}
MESSAGE: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": [RESULT]}]}


def read(stream: Any) -> None:
    with stream as opened:
        for _ in opened:
            pass


def body(stream: Any, way: str = "read") -> None:
    with stream as response:
        for _ in response.iter_lines() if way == "lines" else (response.read(),):
            pass


def leave(stream: Any) -> None:
    for _ in stream:
        break
    stream.close()


def leave_managed(stream: Any) -> None:
    with stream as opened:
        for _ in opened:
            break


WHOLE: dict[str, Callable[[Any, Any], Any]] = {
    "raw": lambda o, a: o.chat.completions.with_raw_response.create(**CHAT).parse(),
    "raw and never parsed": lambda o, a: o.chat.completions.with_raw_response.create(**CHAT),
    "raw stream": lambda o, a: list(o.chat.completions.with_raw_response.create(**CHAT, stream=True).parse()),
    "streaming response": lambda o, a: body(o.chat.completions.with_streaming_response.create(**CHAT)),
    "lines": lambda o, a: body(o.chat.completions.with_streaming_response.create(**CHAT, stream=True), "lines"),
    "raw responses": lambda o, a: o.responses.with_raw_response.create(**RESPONSE),
    "beta parse": lambda o, a: o.beta.chat.completions.parse(**CHAT),
    "chat stream": lambda o, a: read(o.chat.completions.stream(**CHAT)),
    "beta stream": lambda o, a: read(o.beta.chat.completions.stream(**CHAT)),
    "responses stream": lambda o, a: read(o.responses.stream(**RESPONSE)),
    "messages raw": lambda o, a: a.messages.with_raw_response.create(**MESSAGE).parse(),
    "messages parse": lambda o, a: a.messages.parse(**MESSAGE),
    "messages stream": lambda o, a: read(a.messages.stream(**MESSAGE)),
}
LEFT: dict[str, Callable[[Any, Any], Any]] = {
    "stream": lambda o, a: leave(o.chat.completions.create(**CHAT, stream=True)),
    "responses": lambda o, a: leave(o.responses.create(**RESPONSE, stream=True)),
    "messages": lambda o, a: leave(a.messages.create(**MESSAGE, stream=True)),
    "messages stream": lambda o, a: leave_managed(a.messages.stream(**MESSAGE)),
}


def clients(client: Client, model: ModelServer, prefix: str = "") -> tuple[Any, Any]:
    from tacho_sdk.integrations import anthropic as of_anthropic
    from tacho_sdk.integrations import openai as of_openai

    return (
        of_openai.record_client(getattr(openai, f"{prefix}OpenAI")(base_url=f"{model.url}/v1"), client.tacho),
        of_anthropic.record_client(getattr(anthropic, f"{prefix}Anthropic")(base_url=model.url), client.tacho),
    )


def the_call(client: Client, service: Service) -> dict[str, Any]:
    assert client.tacho.flush(120).left == 0
    call, outcome = service.events
    assert (call["eventType"], outcome["eventType"]) == ("LLM_CALL", "SESSION_OUTCOME")
    return {**call["payload"], "status": outcome["payload"]["status"]}


def check_whole(call: dict[str, Any]) -> None:
    assert call["model"] == "scripted-1" and call["output"] == {"role": "assistant", "content": FINAL}
    assert call["usage"]["promptTokens"] == 10 and call["usage"]["completionTokens"] == 5
    assert call["status"] == "COMPLETED" and len(call["messages"]) > 0


@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_is_recorded_whole(make: Callable[..., Client], service: Service, model: ModelServer, way: str) -> None:
    client = make()
    kept = WHOLE[way](*clients(client, model))
    check_whole(the_call(client, service))
    del kept


@pytest.mark.parametrize("way", LEFT)
def test_a_stream_that_is_closed_early_is_recorded(
    make: Callable[..., Client], service: Service, model: ModelServer, way: str
) -> None:
    client = make()
    kept = LEFT[way](*clients(client, model))
    call = the_call(client, service)
    assert (call["finishReason"], call["status"]) == ("aborted", "CANCELLED")
    del kept


async def aread(stream: Any) -> None:
    async with stream as opened:
        async for _ in opened:
            pass


async def abody(stream: Any) -> None:
    async with stream as response:
        async for _ in response.iter_lines():
            pass


AWAITED: dict[str, Callable[[Any, Any], Any]] = {
    "raw": lambda o, a: o.chat.completions.with_raw_response.create(**CHAT),
    "lines": lambda o, a: abody(o.chat.completions.with_streaming_response.create(**CHAT, stream=True)),
    "chat stream": lambda o, a: aread(o.chat.completions.stream(**CHAT)),
    "messages stream": lambda o, a: aread(a.messages.stream(**MESSAGE)),
    "beta parse": lambda o, a: o.beta.chat.completions.parse(**CHAT),
}


@pytest.mark.parametrize("way", AWAITED)
def test_an_awaited_answer_is_recorded_whole(
    make: Callable[..., Client], service: Service, model: ModelServer, way: str
) -> None:
    client = make()

    async def main() -> None:
        await AWAITED[way](*clients(client, model, "Async"))

    asyncio.run(main())
    check_whole(the_call(client, service))
