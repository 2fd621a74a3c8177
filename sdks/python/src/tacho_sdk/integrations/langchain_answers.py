"""
Facts about the calls of a LangChain answer: why the answer ended, the arguments as received, and the tools that were
offered.
"""

from __future__ import annotations

import re
from typing import Any

from ..guarding.asked_calls import is_cut
from .messages import fields_of, messages_of

_ARGUMENTS_MAX = 262_144
# Names of the finish reason in the integrations of providers.
_REASONS = ("finish_reason", "stop_reason", "stopReason", "finishReason", "done_reason", "completion_reason")
# Statuses of the Responses API. In other APIs, the status may be the request's.
_STATUSES = frozenset("completed incomplete failed in_progress cancelled queued".split())
_REPEATED = re.compile(r"(.+?)\1*", re.DOTALL)
_REASON_CHARS = 100


def reason_of(*metadata_values: object) -> Any:
    """Why the answer ended. A reason that means a cut answer has precedence."""
    reasons: list[Any] = []
    for one in map(fields_of, metadata_values):
        reasons += [one[name] for name in _REASONS if one.get(name)]
        if one.get("status") in _STATUSES:
            reasons.append(one["status"])
    # LangChain joins the texts of a stream's pieces: `stopstop`.
    read = [_REPEATED.fullmatch(one)[1] if isinstance(one, str) and len(one) < _REASON_CHARS else one for one in reasons]  # type: ignore[index]
    return next((one for one in read if is_cut(one)), read[0] if read else None)


class CallPieces:
    """
    The calls of a stream as received: LangChain closes open brackets, and so makes arguments that the model did
    not write.
    """

    def __init__(self) -> None:
        self._calls: dict[Any, dict[str, Any]] = {}
        self._texts: list[str] = []

    def add(self, token: Any, message: Any) -> None:
        """`message` of the chunk, if the model is a chat model."""
        text = getattr(message, "text", None)
        self._texts.append(str(text) if isinstance(text, str) else str(token or ""))
        for piece in getattr(message, "tool_call_chunks", None) or ():
            # Some models send no index, and each call in one piece.
            index = piece.get("id") if piece.get("index") is None else piece["index"]
            call = self._calls.setdefault(index, {"id": None, "name": None, "args": ""})
            call["id"] = call["id"] or piece.get("id")
            call["name"] = call["name"] or piece.get("name")
            call["args"] = (call["args"] + (piece.get("args") or ""))[:_ARGUMENTS_MAX]

    def result(self) -> dict[str, Any]:
        """The result of a stream that did not end."""
        content = "".join(self._texts)
        if not content and not self.calls:
            return {}
        result_message = {"role": "assistant", "content": content or None}
        return {"output": messages_of([{**result_message, "tool_calls": self.calls} if self.calls else result_message])[0]}

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [{**call, "args": call["args"] or {}} for call in self._calls.values() if call["name"]]


def as_received(message: Any) -> list[Any]:
    """The calls with their arguments as text and, in the Responses API, with each call's status."""
    content = getattr(message, "content", None)
    parts = (
        [content_part for content_part in content if fields_of(content_part).get("type") == "function_call"]
        if isinstance(content, list)
        else []
    )
    return (
        parts
        or getattr(message, "tool_call_chunks", None)
        or fields_of(getattr(message, "additional_kwargs", None)).get("tool_calls")
        or []
    )


def names_of(tools: Any) -> set[str]:
    """Names of the tools that the model was offered. Empty if a tool may have any name."""
    known: set[str] = set()
    for tool in map(fields_of, tools):
        inner = tool.get("function_declarations") or tool.get("functionDeclarations")
        parts = inner if isinstance(inner, (list, tuple)) else [tool.get("function") or tool.get("toolSpec") or tool]
        names = [name for name in (fields_of(content_part).get("name") for content_part in parts) if isinstance(name, str)]
        # The provider itself runs a tool that has only a type, so its calls are not the host's.
        if not names and not isinstance(tool.get("type"), str):
            return set()
        known.update(names)
    return known
