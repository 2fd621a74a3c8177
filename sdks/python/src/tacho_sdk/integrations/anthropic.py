"""
The Anthropic client.

    client = record_client(Anthropic())
    answers = call_tools(message, [refund])
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar

from ..client import Tacho
from ..recording.usage_shapes import call_usage
from .messages import answer_of, fields_of, messages_of, parsed, with_system
from .methods import Method, record_methods
from .tool_calls import AskedCall, Tools, aguarded_answer, guarded_answer

C = TypeVar("C")


def record_client(client: C, tacho: Tacho | None = None) -> C:
    """
    The same client, `Anthropic` or `AsyncAnthropic`. `messages.create`, `parse` and `stream`, also in `beta` and by
    `with_raw_response` and `with_streaming_response`, are recorded as LLM_CALL events of the current run; outside a run, each
    becomes a run of its own. The answers and errors of the client stay the same. A copy made by `with_options` is not recorded.
    """
    return record_methods(client, tacho, _METHODS)


def call_tools(message: Any, tools: Tools, tacho: Tacho | None = None) -> list[dict[str, Any]]:
    """
    Runs the tool uses of a message, each guarded. Returns the `tool_result` blocks for the next message of the user. A refusal
    and the exception of a tool are results with `is_error`, which the model reads.
    """
    return [_block(use, guarded_answer(tacho, tools, _asked(message, use))) for use in _uses_of(message)]


async def acall_tools(message: Any, tools: Tools, tacho: Tacho | None = None) -> list[dict[str, Any]]:
    """The same for asyncio; the calls run at once."""

    async def answer(use: Mapping[str, Any]) -> dict[str, Any]:
        return _block(use, await aguarded_answer(tacho, tools, _asked(message, use)))

    return await asyncio.gather(*map(answer, _uses_of(message)))


def _uses_of(message: Any) -> list[Mapping[str, Any]]:
    parts = [fields_of(content_part) for content_part in fields_of(message).get("content") or ()]
    return [content_part for content_part in parts if content_part.get("type") == "tool_use"]


def _asked(message: Any, use: Mapping[str, Any]) -> AskedCall:
    return AskedCall(use.get("id"), use["name"], use["input"], fields_of(message).get("stop_reason"))


def _block(use: Mapping[str, Any], answer: tuple[str, bool]) -> dict[str, Any]:
    text, is_error = answer
    block = {"type": "tool_result", "tool_use_id": use.get("id"), "content": text}
    return {**block, "is_error": True} if is_error else block


def _request(named: dict[str, Any]) -> dict[str, Any]:
    messages = with_system(named.get("system"), messages_of(named.get("messages")))
    return {"model": named.get("model"), "provider": "anthropic", "messages": messages}


def _result(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": answer.get("model"),
        "usage": call_usage(answer.get("usage")),
        "output": answer_of(answer.get("content")),
        "finishReason": answer.get("stop_reason"),
    }


class _Stream:
    def __init__(self) -> None:
        self.is_complete = False
        self.news: list[tuple[object, bool]] = []
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[Any, dict[str, Any]] = {}

    def add(self, piece: Mapping[str, Any]) -> bool:
        kind = piece.get("type")
        if kind == "message_start":
            self._message = dict(fields_of(piece.get("message")))
            self._count(self._message.get("usage"))
        elif kind == "content_block_start":
            block = self._blocks[piece.get("index")] = {**fields_of(piece.get("content_block"))}
            if block.get("type") == "tool_use":
                self.news.append((block.get("id"), False))
        elif kind == "content_block_delta":
            self._append(self._blocks.setdefault(piece.get("index"), {"type": "text"}), fields_of(piece.get("delta")))
        elif kind == "message_delta":
            self._message["stop_reason"] = fields_of(piece.get("delta")).get("stop_reason")
            self._count(piece.get("usage"))
            self.is_complete = self._message["stop_reason"] is not None
        elif kind == "message_stop":
            self.is_complete = True
        return kind == "content_block_delta"

    def _count(self, usage: Any) -> None:
        self._usage.update({name: value for name, value in fields_of(usage).items() if value is not None})

    def _append(self, block: dict[str, Any], delta: Mapping[str, Any]) -> None:
        if "text" in delta:
            block["text"] = block.get("text", "") + delta["text"]
        elif "partial_json" in delta:
            before = block.get("input")
            block["input"] = (before if isinstance(before, str) else "") + delta["partial_json"]

    def result(self) -> dict[str, Any]:
        blocks = [{**block, "input": parsed(block.get("input"))} for block in self._blocks.values()]
        return _result({**self._message, "usage": self._usage, "content": blocks})


_METHODS = [
    Method("messages.create", _request, _result, _Stream),
    Method("messages.parse", _request, _result, _Stream),
    Method("messages.stream", _request, _result, _Stream, is_managed=True),
    Method("beta.messages.create", _request, _result, _Stream),
    Method("beta.messages.parse", _request, _result, _Stream),
    Method("beta.messages.stream", _request, _result, _Stream, is_managed=True),
]
