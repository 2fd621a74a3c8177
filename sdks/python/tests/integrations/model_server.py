"""A scripted model on loopback in the formats of OpenAI and Anthropic. It plays the same scene for every integration."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CALLS = [
    ("call_1", {"order": 1, "amount": 10}),
    ("call_2", {"order": 2, "amount": 500}),
    ("call_3", {"order": 3, "amount": 50}),
]
"""Three calls at once: the first runs, a policy blocks the second, a person approves the third."""
FINAL = "Done, except order 2."


class ModelServer:
    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                given = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.requests.append((self.path, given))
                answer, events = ROUTES[self.path](given)
                if given.get("stream"):
                    data = "".join(_event(event) for event in events).encode()
                    kind = "text/event-stream"
                else:
                    data, kind = json.dumps(answer).encode(), "application/json"
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _event(event: Any) -> str:
    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    return f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n"


def _chat(given: dict[str, Any]) -> tuple[Any, Iterator[Any]]:
    is_first = not any(message["role"] == "tool" for message in given["messages"])
    function = [{"name": "refund", "arguments": json.dumps(arguments)} for _, arguments in CALLS]
    calls = [{"id": CALLS[n][0], "type": "function", "function": one} for n, one in enumerate(function)]
    message: dict[str, Any] = {"role": "assistant", "content": None if is_first else FINAL}
    if is_first:
        message["tool_calls"] = calls
    reason = "tool_calls" if is_first else "stop"
    details = {"prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 1}}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **details}
    base = {"id": "c", "created": 1, "model": "scripted-1"}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}

    def stream() -> Iterator[Any]:
        def chunk(delta: Any, finish: Any = None) -> Any:
            one = {"index": 0, "delta": delta, "finish_reason": finish}
            return {**base, "object": "chat.completion.chunk", "choices": [one]}

        yield chunk({"role": "assistant", "content": ""})
        if is_first:
            for index, call in enumerate(calls):
                text = function[index]["arguments"]
                named = {"name": "refund", "arguments": text[:5]}
                yield chunk({"tool_calls": [{**call, "index": index, "function": named}]})
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": text[5:]}}]})
        else:
            for word in FINAL.split(" "):
                yield chunk({"content": word if word == "Done," else f" {word}"})
        yield chunk({}, reason)
        yield {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}
        yield "[DONE]"

    return whole, stream()


def _responses(given: dict[str, Any]) -> tuple[Any, Iterator[Any]]:
    items = given["input"] if isinstance(given["input"], list) else []
    is_first = not any(item.get("type") == "function_call_output" for item in items)
    output: list[Any] = [
        {"type": "function_call", "id": f"f{n}", "call_id": call_id, "name": "refund", "status": "completed"}
        | {"arguments": json.dumps(arguments)}
        for n, (call_id, arguments) in enumerate(CALLS)
    ]
    if not is_first:
        content = [{"type": "output_text", "text": FINAL, "annotations": []}]
        output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}]
    details = {"input_tokens_details": {"cached_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 1}}
    base = {"id": "r", "object": "response", "created_at": 1, "model": "scripted-1", "tools": [], "tool_choice": "auto"}
    base |= {"parallel_tool_calls": True, "error": None, "incomplete_details": None, "instructions": None, "metadata": {}}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}
    whole = {**base, "status": "completed", "output": output, "usage": usage}

    def stream() -> Iterator[Any]:
        number = 0

        def event(kind: str, **more: Any) -> Any:
            nonlocal number
            number += 1
            return {"type": kind, "sequence_number": number, **more}

        yield event("response.created", response={**base, "status": "in_progress", "output": []})
        for index, item in enumerate(output):
            yield event("response.output_item.added", output_index=index, item=item)
            if is_first:
                place = {"item_id": item["id"], "output_index": index, "delta": item["arguments"]}
                yield event("response.function_call_arguments.delta", **place)
            else:
                place = {"item_id": "m", "output_index": 0, "content_index": 0}
                yield event("response.output_text.delta", **place, delta=FINAL, logprobs=[])
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=whole)

    return whole, stream()


def _messages(given: dict[str, Any]) -> tuple[Any, Iterator[Any]]:
    last = given["messages"][-1]["content"]
    is_first = not (isinstance(last, list) and any(part.get("type") == "tool_result" for part in last))
    blocks: list[Any] = [{"type": "text", "text": FINAL}]
    if is_first:
        blocks = [{"type": "tool_use", "id": id_, "name": "refund", "input": given} for id_, given in CALLS]
    reason = "tool_use" if is_first else "end_turn"
    usage = {"input_tokens": 8, "output_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 0}
    base = {"id": "m", "type": "message", "role": "assistant", "model": "scripted-1", "stop_sequence": None}
    whole = {**base, "content": blocks, "stop_reason": reason, "usage": usage}

    def stream() -> Iterator[Any]:
        first = {**usage, "output_tokens": 1}
        yield {"type": "message_start", "message": {**base, "content": [], "stop_reason": None, "usage": first}}
        for index, block in enumerate(blocks):
            empty = {**block, "input": {}} if is_first else {"type": "text", "text": ""}
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            text = json.dumps(block["input"]) if is_first else FINAL
            for part in (text[:5], text[5:]):
                delta = {"type": "input_json_delta", "partial_json": part} if is_first else {"type": "text_delta", "text": part}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        ended = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
        yield {"type": "message_stop"}

    return whole, stream()


def _embeddings(_: dict[str, Any]) -> tuple[Any, Iterator[Any]]:
    data = [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2]}]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return {"object": "list", "data": data, "model": "embed-1", "usage": usage}, iter(())


ROUTES: dict[str, Any] = {
    "/v1/chat/completions": _chat,
    "/v1/responses": _responses,
    "/v1/embeddings": _embeddings,
    "/v1/messages": _messages,
}
