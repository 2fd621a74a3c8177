"""
Messages of models in one shape, the same in every SDK: `{role, content, toolCalls: [{id, name, arguments}], toolCallId}`. Reads
those of OpenAI (chat completions, responses), Anthropic and LangChain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..guarding.asked_calls import FreeText, ReceivedCall

# Only this many of the newest messages are read.
_MESSAGES_MAX = 10_000
_CALLS = frozenset({"tool_use", "function_call", "custom_tool_call", "tool_call", "server_tool_use"})
_TEXTS = frozenset({"text", "input_text", "output_text"})

Message = dict[str, Any]


def fields_of(value: object) -> Mapping[str, Any]:
    """The members of a mapping or a model; empty for anything else."""
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:
            dumped = dump(warnings=False)
        except TypeError:
            dumped = dump()
        return dumped if isinstance(dumped, Mapping) else {}
    return getattr(value, "__dict__", {})


def messages_of(raw_messages: object) -> list[Message]:
    """A text is the message of a user. Results of several tools become a message each."""
    if raw_messages is None:
        return []
    if isinstance(raw_messages, str):
        return [{"role": "user", "content": raw_messages}]
    if isinstance(raw_messages, (list, tuple)):
        return [message for one in raw_messages[-_MESSAGES_MAX:] for message in _messages_of_one(one)]
    return _messages_of_one(raw_messages)


def with_system(system: object, messages: list[Message]) -> list[Message]:
    """A system prompt before the messages; it may be a text or a list of parts."""
    return [*_messages_of_one({"role": "system", "content": system}), *messages] if system else messages


def answer_of(parts: object) -> Message | None:
    """The answer of a model: one message."""
    messages = _messages_of_one({"role": "assistant", "content": parts})
    if len(messages) > 1:
        return {"role": "assistant", "content": messages}
    return messages[0] if messages else None


def _messages_of_one(raw_message: object) -> list[Message]:
    if isinstance(raw_message, str):
        return [{"role": "assistant", "content": raw_message}]
    message = fields_of(raw_message)
    kind = message.get("type")
    if kind in ("function_call", "custom_tool_call"):
        return [{"role": "assistant", "toolCalls": [_tool_call(message)]}]
    if kind in ("function_call_output", "custom_tool_call_output"):
        return [_present({"role": "tool", "content": message.get("output"), "toolCallId": message.get("call_id")})]
    role = message.get("role")
    if role is None:
        return [{"role": "assistant", "content": raw_message}]
    content = message.get("content")
    calls = [_tool_call(fields_of(call)) for call in message.get("tool_calls") or ()]
    if not isinstance(content, (list, tuple)):
        return [_shaped(role, content, calls, message.get("tool_call_id"))]
    results: list[Message] = []
    left: list[Any] = []
    for content_part in content[:_MESSAGES_MAX]:
        read = fields_of(content_part)
        part_kind = read.get("type")
        if part_kind in _CALLS:
            calls.append(_tool_call(read))
        elif part_kind == "tool_result":
            results.append(_result(read))
        else:
            left.append(read.get("text", content_part) if part_kind in _TEXTS else content_part)
    is_text = all(isinstance(content_part, str) for content_part in left)
    own_content = None if not left else "\n".join(left) if is_text else left
    if results and own_content is None and not calls:
        return results
    return [*results, _shaped(role, own_content, calls, message.get("tool_call_id"))]


def _shaped(role: object, content: object, calls: list[Any], call_id: object) -> Message:
    return _present({"role": role, "content": content, "toolCalls": calls or None, "toolCallId": call_id})


def _result(content_part: Mapping[str, Any]) -> Message:
    content = content_part.get("content")
    if isinstance(content, (list, tuple)):
        content = _messages_of_one({"role": "tool", "content": content})[0].get("content")
    return _present({"role": "tool", "content": content, "toolCallId": content_part.get("tool_use_id")})


def _tool_call(call: Mapping[str, Any]) -> Message:
    named = fields_of(call.get("function") or call.get("custom") or call)
    arguments = named.get("arguments", named.get("input", named.get("args")))
    is_text = str(call.get("type")).startswith("custom") and isinstance(arguments, str)
    read = FreeText(arguments) if is_text else parsed(arguments)
    shown_call = {"id": call.get("call_id") or call.get("id"), "name": named.get("name"), "arguments": read}
    received = ReceivedCall(_present(shown_call))
    received.status = call.get("status")
    return received


def parsed(value: object) -> Any:
    """The value of a JSON text. Any other value is returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _present(message: Message) -> Message:
    return {name: value for name, value in message.items() if value is not None}
