"""A model on loopback that sends a test's answers, whole or streamed, in the formats of OpenAI and Anthropic."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """An answer of the model. Without `calls`, the answer is `text`."""

    calls: tuple[tuple[str, str, str], ...] = ()
    """Id, tool and arguments as text."""
    is_cut: bool = False
    text: str = "done"
    usage: dict[str, Any] | None = None
    """The usage of a whole chat completion."""


class AnswerServer:
    """Each request takes the next answer; after the last one, the model says that it is done."""

    def __init__(self, *answers: Answer) -> None:
        left = [*answers]
        self.requests: list[Any] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                given = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.requests.append(given)
                answer = left.pop(0) if left else Answer()
                format_of = {"/v1/chat/completions": _chat, "/v1/responses": _response, "/v1/messages": _message}
                whole, events = format_of[self.path](answer)
                is_stream = bool(given.get("stream"))
                data = "".join(map(_event, events)).encode() if is_stream else json.dumps(whole).encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _event(event: Any) -> str:
    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    return f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n"


def _chat(answer: Answer) -> tuple[Any, Iterator[Any]]:
    base = {"id": "c", "created": 1, "model": "m"}
    reason = "length" if answer.is_cut else "tool_calls" if answer.calls else "stop"
    calls = [{"id": id_, "type": "function", "function": {"name": name, "arguments": text}} for id_, name, text in answer.calls]
    message = {"role": "assistant", "content": None if calls else answer.text, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}

    def stream() -> Iterator[Any]:
        delta = {**message, **({"tool_calls": [{"index": n, **call} for n, call in enumerate(calls)]} if calls else {})}
        for one, said in ((delta, None), ({}, reason)):
            yield {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": one, "finish_reason": said}]}
        yield "[DONE]"

    counted = {"usage": answer.usage} if answer.usage else {}
    return {**base, "object": "chat.completion", "choices": [choice], **counted}, stream()


def _response(answer: Answer) -> tuple[Any, Iterator[Any]]:
    status = "incomplete" if answer.is_cut else "completed"
    part = {"type": "output_text", "text": answer.text, "annotations": []}
    output: list[Any] = [{"type": "message", "id": "m", "role": "assistant", "status": status, "content": [part]}]
    if answer.calls:
        item = {"type": "function_call", "status": status}
        output = [
            {**item, "id": f"f{id_}", "call_id": id_, "name": name, "arguments": text} for id_, name, text in answer.calls
        ]
    base = {"id": "r", "object": "response", "created_at": 1, "model": "m", "tools": [], "tool_choice": "auto"}
    details = {"reason": "max_output_tokens"} if answer.is_cut else None
    base |= {"parallel_tool_calls": True, "error": None, "incomplete_details": details, "instructions": None, "metadata": {}}
    whole = {**base, "status": status, "output": output}

    def stream() -> Iterator[Any]:
        yield {"type": "response.created", "sequence_number": 1, "response": {**base, "status": "in_progress", "output": []}}
        for n, item in enumerate(output):
            place = {"sequence_number": 2, "output_index": n, "item": item}
            yield {"type": "response.output_item.added", **place}
            yield {"type": "response.output_item.done", **place}
        yield {"type": f"response.{status}", "sequence_number": 3, "response": whole}

    return whole, stream()


def _message(answer: Answer) -> tuple[Any, Iterator[Any]]:
    """In whole answers of Anthropic, inputs are objects, even if the end of the answer is missing."""
    reason = "max_tokens" if answer.is_cut else "tool_use" if answer.calls else "end_turn"
    blocks: list[Any] = [{"type": "tool_use", "id": id_, "name": name, "input": text} for id_, name, text in answer.calls]
    blocks = blocks or [{"type": "text", "text": answer.text}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    base = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "usage": usage}
    read = [{**block, "input": _mended(block["input"])} if "input" in block else block for block in blocks]

    def stream() -> Iterator[Any]:
        yield {"type": "message_start", "message": {**base, "content": [], "stop_reason": None}}
        for n, block in enumerate(blocks):
            is_call = "input" in block
            empty = {**block, "input": {}} if is_call else {"type": "text", "text": ""}
            yield {"type": "content_block_start", "index": n, "content_block": empty}
            delta = {"type": "input_json_delta", "partial_json": block["input"]} if is_call else block | {"type": "text_delta"}
            yield {"type": "content_block_delta", "index": n, "delta": delta}
            yield {"type": "content_block_stop", "index": n}
        yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    return {**base, "content": read, "stop_reason": reason}, stream()


def _mended(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text + "}")
