"""The ways in which a model's stream can end, for every integration (docs/integrations/streams.md)."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from conftest import Client, Service

from .answers import AnswerServer
from .matrix import RESULTS

TEXT = "A long answer of which only half may come." * 3
PIECES = [TEXT[at : at + 6] for at in range(0, len(TEXT), 6)]


class StreamingModel:
    """Sends its text in pieces. After half of them, it can break the connection, send an error, or send nothing more."""

    def __init__(self) -> None:
        self.half: str | None = None
        self.released = threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                events = EVENTS[self.path]()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                # Announce more bytes than are sent, so that the end of the connection counts as a break.
                self.send_header("content-length", "1000000") if model.half == "cut" else None
                self.end_headers()
                sent = events[: len(events) // 2] if model.half else events
                if model.half == "error":
                    fault = {"type": "overloaded_error", "code": "overloaded", "message": "The model is overloaded"}
                    is_chat = "type" not in (events[0] if isinstance(events[0], dict) else {})
                    sent = [*sent, {"error": fault} if is_chat else {**fault, "type": "error", "error": fault}]
                for event in sent:
                    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
                    data = event if isinstance(event, str) else json.dumps(event)
                    self.wfile.write(f"{name}data: {data}\n\n".encode())
                self.wfile.flush()
                if model.half == "open":
                    model.released.wait(20)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


def _chat() -> list[Any]:
    base = {"id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    deltas = [*({"content": piece} for piece in PIECES), {}]
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]} for delta in deltas
    ]
    return [*chunks, "[DONE]"]


def _responses() -> list[Any]:
    item = {"type": "message", "id": "i", "role": "assistant", "status": "completed"}
    part = {"type": "output_text", "text": TEXT, "annotations": []}
    base = {"id": "r", "object": "response", "created_at": 1, "model": "m", "tools": [], "tool_choice": "auto"}
    base |= {"parallel_tool_calls": True, "error": None, "incomplete_details": None, "instructions": None, "metadata": {}}
    place = {"item_id": "i", "output_index": 0, "content_index": 0}
    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {**base, "status": "completed", "output": [{**item, "content": [part]}], "usage": usage}
    events: list[Any] = [
        {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in PIECES),
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "content": [part]}},
        {"type": "response.completed", "response": whole},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _messages() -> list[Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "usage": usage}
    return [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in PIECES),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


EVENTS: dict[str, Callable[[], list[Any]]] = {
    "/v1/chat/completions": _chat,
    "/v1/responses": _responses,
    "/v1/messages": _messages,
}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[StreamingModel]:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    server = StreamingModel()
    yield server
    server.close()


Open = Callable[[StreamingModel, Any], AsyncIterator[Any]]
"""Asks the recorded model for a stream."""


async def _openai(model: StreamingModel, client: Any) -> AsyncIterator[Any]:
    import openai

    from tacho_sdk.integrations.openai import record_client

    recorded = record_client(openai.AsyncOpenAI(base_url=f"{model.url}/v1", max_retries=0), client)
    question: Any = [{"role": "user", "content": "Act"}]
    stream: Any = await recorded.chat.completions.create(model="m", messages=question, stream=True)
    try:
        async for piece in stream:
            yield piece
    finally:
        await stream.close()


async def _openai_responses(model: StreamingModel, client: Any) -> AsyncIterator[Any]:
    import openai

    from tacho_sdk.integrations.openai import record_client

    recorded = record_client(openai.AsyncOpenAI(base_url=f"{model.url}/v1", max_retries=0), client)
    async with await recorded.responses.create(model="m", input="Act", stream=True) as stream:
        async for piece in stream:
            yield piece


async def _anthropic(model: StreamingModel, client: Any) -> AsyncIterator[Any]:
    import anthropic

    from tacho_sdk.integrations.anthropic import record_client

    recorded = record_client(anthropic.AsyncAnthropic(base_url=model.url, max_retries=0), client)
    question: Any = [{"role": "user", "content": "Act"}]
    async with recorded.messages.stream(model="m", max_tokens=9, messages=question) as stream:
        async for piece in stream:
            yield piece


async def _langchain(model: StreamingModel, client: Any) -> AsyncIterator[Any]:
    from langchain_openai import ChatOpenAI

    from tacho_sdk.integrations.langchain import TachoHandler

    chat = ChatOpenAI(model="m", base_url=f"{model.url}/v1", max_retries=0)
    async for piece in chat.astream("Act", {"callbacks": [TachoHandler(client)]}):
        yield piece


async def _openai_agents(model: StreamingModel, client: Any) -> AsyncIterator[Any]:
    import openai
    from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled

    from tacho_sdk.integrations.openai_agents import TachoHooks, guard_agent

    set_tracing_disabled(True)
    below = openai.AsyncOpenAI(base_url=f"{model.url}/v1", max_retries=0)
    agent = guard_agent(Agent(name="Agent", model=OpenAIResponsesModel("m", below)), client)
    result = Runner.run_streamed(agent, "Act", hooks=TachoHooks(client))
    try:
        async for piece in result.stream_events():
            yield piece
    finally:
        result.cancel()


async def _pydantic_ai(model: StreamingModel, client: Any) -> AsyncIterator[Any]:
    import openai
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from tacho_sdk.integrations.pydantic_ai import record_model

    below = openai.AsyncOpenAI(base_url=f"{model.url}/v1", max_retries=0)
    agent = Agent(record_model(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=below)), client))
    async with agent.run_stream("Act") as result:
        async for piece in result.stream_text(delta=True, debounce_by=None):
            yield piece


STREAMING: dict[str, tuple[str, Open]] = {
    "OpenAI": ("openai", _openai),
    "OpenAI responses": ("openai", _openai_responses),
    "Anthropic": ("anthropic", _anthropic),
    "LangChain": ("langchain_openai", _langchain),
    "OpenAI Agents": ("agents", _openai_agents),
    "Pydantic AI": ("pydantic_ai", _pydantic_ai),
}


async def _read(stream: AsyncIterator[Any], count: int | None = None) -> None:
    async for _ in stream:
        if count is not None:
            count -= 1
            if count == 0:
                break
    await stream.aclose()  # type: ignore[attr-defined]


async def _cancel(stream: AsyncIterator[Any]) -> None:
    read = asyncio.Event()

    async def on() -> None:
        count = 0
        async for _ in stream:
            count += 1
            if count == 8:
                read.set()

    task = asyncio.ensure_future(on())
    await read.wait()
    # Give the reader time to wait for the next piece.
    await asyncio.sleep(0.2)
    task.cancel()
    await task


WAYS: dict[str, tuple[str | None, Callable[[AsyncIterator[Any]], Any], str, str, str]] = {
    "read to the end": (None, _read, "COMPLETED", "COMPLETED", "stop"),
    "left": ("open", lambda stream: _read(stream, 8), "COMPLETED", "CANCELLED", "aborted"),
    "aborted": ("open", _cancel, "CANCELLED", "CANCELLED", "aborted"),
    "broken": ("cut", _read, "FAILED", "FAILED", "error"),
    "an error inside": ("error", _read, "FAILED", "FAILED", "error"),
}
"""How the model goes on after half, what the host does, how the run around it ends and a call outside of one, and why."""


@pytest.mark.parametrize("is_inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", STREAMING)
def test_a_stream_has_one_end(
    name: str, way: str, is_inside: bool, model: StreamingModel, make: Callable[..., Client], service: Service
) -> None:
    package, start = STREAMING[name]
    pytest.importorskip(package)
    client = make().tacho
    model.half, act, in_run, own, reason = WAYS[way]

    async def main() -> None:
        if not is_inside:
            await act(start(model, client))
            return
        async with client.run():
            await act(start(model, client))

    error: BaseException | None = None
    # Collect only the objects of this test, not a million objects of the frameworks at each collection.
    gc.freeze()
    try:
        asyncio.run(main())
    except BaseException as raised:
        error = raised
    assert (error is not None) == (in_run != "COMPLETED"), repr(error)
    gc.collect()
    gc.unfreeze()
    client.flush(30)
    (call,) = [event for event in service.events if event["eventType"] == "LLM_CALL"]
    (outcome,) = [event for event in service.events if event["eventType"] == "SESSION_OUTCOME"]
    payload = call["payload"]
    content = (payload.get("output") or {}).get("content") or ""
    said = {"completed": "stop", "end_turn": "stop"}.get(payload.get("finishReason"), payload.get("finishReason"))
    part = "whole" if content == TEXT else "none" if content == "" else "half" if TEXT.startswith(content) else content
    got = {"run": outcome["payload"]["status"], "reason": "error" if "error" in payload else said, "text": part}
    assert got == {"run": in_run if is_inside else own, "reason": reason, "text": "half" if model.half else "whole"}
    assert call["timestamp"] <= outcome["timestamp"]


def test_the_page_has_these_ways() -> None:
    file = RESULTS / "streams.json"
    text = json.dumps({name: [*WAYS] for name in STREAMING}, indent=2) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        file.write_text(text)
    assert file.read_text() == text


def test_a_call_that_outlives_its_run_says_so(make: Any, service: Service) -> None:
    openai: Any = pytest.importorskip("openai")
    from tacho_sdk.integrations.openai import record_client

    client, model = make(), AnswerServer()

    async def main() -> None:
        recorded = record_client(openai.AsyncOpenAI(base_url=f"{model.url}/v1", api_key="k"), client.tacho)
        messages = [{"role": "user", "content": "Hello"}]
        async with client.tacho.run():
            asked = asyncio.create_task(recorded.chat.completions.create(model="m", messages=messages))
            await asyncio.sleep(0)
        await asked

    asyncio.run(main())
    model.close()
    client.tacho.flush(120)
    (call,) = [event["payload"] for event in service.events if event["eventType"] == "LLM_CALL"]
    assert (call["outlivedRun"], call["finishReason"]) == (True, "stop")
