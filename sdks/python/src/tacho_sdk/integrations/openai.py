"""
The OpenAI client.

    client = record_client(OpenAI())
    answers = call_tools(completion.choices[0].message, [refund])
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..client import Tacho
from ..recording.usage_shapes import call_usage, gateway_cost, metadata_cost
from .messages import answer_of, fields_of, messages_of, with_system
from .methods import Method, record_methods
from .tool_calls import AskedCall, Tools, aguarded_answer, guarded_answer

C = TypeVar("C")


def record_client(client: C, tacho: Tacho | None = None) -> C:
    """
    Records the model calls of a client, `OpenAI` or `AsyncOpenAI`, as LLM_CALL events of the current run. Outside a run, each
    call becomes a run of its own. Returns the same client, whose answers and errors stay the same. It records calls of
    `chat.completions` (also in `beta`), `responses` and `embeddings`, streamed or not, also by `with_raw_response` and
    `with_streaming_response`. A copy made by `with_options` is not recorded.
    """
    return record_methods(client, tacho, _METHODS)


def note_client(client: object, tacho: Tacho | None) -> None:
    """Prepares a client for a framework that does not pass on why an answer ended. Records no calls."""
    record_methods(client, tacho, _METHODS, is_noted=True)


def call_tools(message: Any, tools: Tools, tacho: Tacho | None = None) -> list[dict[str, Any]]:
    """
    Runs the tool calls of a completion or its message, or the function calls of a response, each guarded. Returns the messages,
    or the input items, with their answers. A refusal and the exception of a tool are answers too, which the model reads. A call
    of an answer that was cut (finish reason `length`) does not run: pass the completion, because a message has no finish
    reason, or let `record_client` see the answer.
    """
    return [shape(guarded_answer(tacho, tools, call)[0]) for call, shape in _calls_of(message)]


async def acall_tools(message: Any, tools: Tools, tacho: Tacho | None = None) -> list[dict[str, Any]]:
    """The same for asyncio; the calls run at once."""

    async def answer(call: AskedCall, shape: _Shape) -> dict[str, Any]:
        return shape((await aguarded_answer(tacho, tools, call))[0])

    return await asyncio.gather(*(answer(*one) for one in _calls_of(message)))


_Shape = Callable[[str], dict[str, Any]]


def _calls_of(message: Any) -> list[tuple[AskedCall, _Shape]]:
    """The calls in a message, a choice, a completion, or a response."""
    read = fields_of(message)
    if read.get("choices"):
        read = fields_of(read["choices"][0])
    reason = read.get("finish_reason")
    if "message" in read and "tool_calls" not in read:
        read = fields_of(read["message"])
    if read.get("tool_calls"):
        calls = [fields_of(call) for call in read["tool_calls"]]
        return [_chat_call(call, reason) for call in calls if call.get("function")]
    items = [fields_of(item) for item in read.get("output") or ()]
    return [_response_call(item, read.get("status")) for item in items if item.get("type") == "function_call"]


def _chat_call(call: Mapping[str, Any], reason: object) -> tuple[AskedCall, _Shape]:
    function, call_id = fields_of(call.get("function")), call.get("id")
    answer = {"role": "tool", "tool_call_id": call_id}
    asked = AskedCall(call_id, function["name"], function["arguments"], reason)
    return asked, lambda text: {**answer, "content": text}


def _response_call(item: Mapping[str, Any], reason: object) -> tuple[AskedCall, _Shape]:
    call_id, status = item.get("call_id"), item.get("status")
    # A call may be complete although its answer is not.
    asked = AskedCall(call_id, item["name"], item["arguments"], reason if status is None else status)
    return asked, lambda text: {"type": "function_call_output", "call_id": call_id, "output": text}


def _chat_request(named: dict[str, Any]) -> dict[str, Any]:
    return {"model": named.get("model"), "provider": "openai", "messages": messages_of(named.get("messages"))}


def _chat_result(answer: Mapping[str, Any]) -> dict[str, Any]:
    choices = [fields_of(choice) for choice in answer.get("choices") or ()]
    answered = [
        (messages_of([choice["message"]])[0], choice.get("finish_reason")) for choice in choices if choice.get("message")
    ]
    output: Any = [{**answer_message, "finishReason": reason} for answer_message, reason in answered] or None
    if len(answered) == 1:
        output = answered[0][0]
    choice = choices[0] if choices else {}
    usage = call_usage(answer.get("usage"))
    return {
        "model": answer.get("model"),
        "usage": usage,
        "cost": metadata_cost(answer.get("usage"), fields_of(choice.get("message")).get("provider_metadata")),
        "output": output,
        "finishReason": choice.get("finish_reason"),
    }


def _response_request(named: dict[str, Any]) -> dict[str, Any]:
    messages = with_system(named.get("instructions"), messages_of(named.get("input")))
    return {"model": named.get("model"), "provider": "openai", "messages": messages}


def _response_result(answer: Mapping[str, Any]) -> dict[str, Any]:
    parts: list[Any] = []
    for item in answer.get("output") or ():
        read = fields_of(item)
        parts.extend(read.get("content") or () if read.get("type") == "message" else [item])
    usage = call_usage(answer.get("usage"))
    return {
        "model": answer.get("model"),
        "usage": usage,
        "cost": gateway_cost(answer.get("usage")),
        "output": answer_of(parts),
        "finishReason": answer.get("status"),
    }


def _embedding_request(named: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": named.get("input")}]
    return {"model": named.get("model"), "provider": "openai", "messages": messages}


def _embedding_result(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": answer.get("model"), "usage": call_usage(answer.get("usage")), "cost": gateway_cost(answer.get("usage"))}


class _ChatStream:
    def __init__(self) -> None:
        self.is_complete = False
        self.news: list[tuple[object, bool]] = []
        self._answer: dict[str, Any] = {}
        self._candidates: dict[Any, _Candidate] = {}

    def add(self, piece: Mapping[str, Any]) -> bool:
        self._answer.update({name: piece[name] for name in ("model", "usage") if piece.get(name)})
        is_output = False
        for raw_choice in piece.get("choices") or ():
            choice = fields_of(raw_choice)
            candidate = self._candidates.setdefault(choice.get("index"), _Candidate())
            is_output = candidate.add(choice, self.news) or is_output
        self.is_complete = bool(self._candidates) and all(one.finish_reason for one in self._candidates.values())
        return is_output

    def result(self) -> dict[str, Any]:
        return _chat_result({**self._answer, "choices": [one.choice() for one in self._candidates.values()]})


class _Candidate:
    def __init__(self) -> None:
        self.finish_reason: Any = None
        self._content: list[str] = []
        self._calls: dict[Any, dict[str, Any]] = {}

    def add(self, choice: Mapping[str, Any], news: list[tuple[object, bool]]) -> bool:
        delta = fields_of(choice.get("delta"))
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        content, calls = delta.get("content"), delta.get("tool_calls") or ()
        if content:
            self._content.append(content)
        for call_delta in calls:
            call = fields_of(call_delta)
            if call.get("id"):
                news.append((call["id"], False))
            known = self._calls.setdefault(call.get("index"), {"id": call.get("id"), "type": call.get("type")})
            for kind, text in (("function", "arguments"), ("custom", "input")):
                if call.get(kind):
                    named, piece = known.setdefault(kind, {"name": "", text: ""}), fields_of(call[kind])
                    named["name"] += piece.get("name") or ""
                    named[text] += piece.get(text) or ""
        return bool(content or calls)

    def choice(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": "".join(self._content) or None, "tool_calls": [*self._calls.values()]}
        return {"message": message, "finish_reason": self.finish_reason}


class _ResponseStream:
    def __init__(self) -> None:
        self.is_complete = False
        self.news: list[tuple[object, bool]] = []
        self._response: Mapping[str, Any] = {}
        self._content: list[str] = []
        self._calls: dict[Any, dict[str, Any]] = {}

    def add(self, piece: Mapping[str, Any]) -> bool:
        kind = str(piece.get("type"))
        ends = ("response.completed", "response.failed", "response.incomplete")
        if kind in ("response.created", *ends):
            self._response = fields_of(piece.get("response"))
        self.is_complete = self.is_complete or kind in ends
        if kind == "response.output_text.delta":
            self._content.append(str(piece.get("delta")))
        self._add_call(kind, piece)
        return kind.endswith(".delta")

    def result(self) -> dict[str, Any]:
        result = _response_result(self._response)
        if result["output"] is None or not self.is_complete:
            calls = [read for call in self._calls.values() for read in messages_of([call])[0]["toolCalls"]]
            result_message = {"role": "assistant", "content": "".join(self._content)}
            result["output"] = {**result_message, "toolCalls": calls} if calls else result_message
        if not self.is_complete:
            result["finishReason"] = None
        return result

    def _add_call(self, kind: str, piece: Mapping[str, Any]) -> None:
        item, place = fields_of(piece.get("item")), piece.get("output_index")
        if item.get("type") in ("function_call", "custom_tool_call"):
            self._calls[place] = dict(item)
            self.news.append((item.get("call_id"), kind == "response.output_item.done" and item.get("status") == "completed"))
        elif kind == "response.function_call_arguments.delta" and place in self._calls:
            self._calls[place]["arguments"] = f"{self._calls[place].get('arguments') or ''}{piece.get('delta')}"


_METHODS = [
    Method("chat.completions.create", _chat_request, _chat_result, _ChatStream),
    Method("chat.completions.parse", _chat_request, _chat_result, _ChatStream),
    Method("beta.chat.completions.create", _chat_request, _chat_result, _ChatStream),
    Method("beta.chat.completions.parse", _chat_request, _chat_result, _ChatStream),
    Method("responses.create", _response_request, _response_result, _ResponseStream),
    Method("responses.parse", _response_request, _response_result, _ResponseStream),
    Method("embeddings.create", _embedding_request, _embedding_result, _ChatStream),
]
