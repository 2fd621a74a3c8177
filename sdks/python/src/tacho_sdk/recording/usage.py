"""Usage of a run so far, counted when its events are recorded."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from ..exact import exact_number, exact_text
from .usage_shapes import TOKENS_MAX, call_usage

_TOOLS_MAX = 1_000


@dataclass(eq=False, repr=False)
class RunUsage:
    since: float
    """When the run began, by a monotonic clock in seconds, without the time between its processes."""
    tool_calls: int = 0
    total_tokens: int = 0
    cost: float = 0.0
    authorized: dict[str, int] = field(default_factory=dict)
    """Calls that were counted when they were authorized, by tool: their TOOL_CALL events are not counted again."""

    def at_least(self, tool_calls: object, total_tokens: object, cost: object, seconds: object) -> None:
        """Takes over the usage that another process of the run reports."""
        self.tool_calls = max(self.tool_calls, int(_amount(tool_calls)))
        self.total_tokens = max(self.total_tokens, int(_amount(total_tokens)))
        self.cost = max(self.cost, _amount(cost))
        self.since = min(self.since, time.monotonic() - _amount(seconds))

    def authorize(self, tool_name: str) -> None:
        self.authorized[tool_name] = self.authorized.get(tool_name, 0) + 1
        if len(self.authorized) > _TOOLS_MAX:
            del self.authorized[next(iter(self.authorized))]

    def count(self, event_type: str, payload: Mapping[str, object] | None) -> None:
        if event_type == "TOOL_CALL" and not self._was_authorized(payload):
            self.tool_calls += 1
        if event_type != "LLM_CALL" or not isinstance(payload, Mapping) or payload.get("notCounted"):
            return
        usage = payload.get("usage")
        total = _plain_total(usage)
        if total is None:
            tokens = call_usage(usage) or {}
            total = tokens.get("totalTokens")
            if total is None:
                total = (tokens.get("promptTokens") or 0) + (tokens.get("completionTokens") or 0)
        cost = _amount(payload.get("cost"))
        # Call nothing between reading and writing a sum, so that no other thread runs between them.
        self.cost += cost
        self.total_tokens += total

    def _was_authorized(self, payload: Mapping[str, object] | None) -> bool:
        tool_name = exact_text(payload.get("toolName")) if isinstance(payload, Mapping) else None
        calls = self.authorized.pop(tool_name, 0) if tool_name is not None else 0
        if tool_name is not None and calls > 1:
            self.authorized[tool_name] = calls - 1
        return calls > 0


def _plain_total(usage: object) -> int | None:
    """The sum of a usage that has only the documented names. None: the slower `call_usage` must read it."""
    if type(usage) is not dict:
        return None
    prompt, completion, total = usage.get("promptTokens"), usage.get("completionTokens"), usage.get("totalTokens")
    if not _is_count(prompt) or not _is_count(completion):
        return None
    if len(usage) == 2:
        return prompt + completion
    return total if len(usage) == 3 and _is_count(total) else None


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= TOKENS_MAX


def _amount(value: object) -> float:
    number = exact_number(value)
    return number if number is not None and math.isfinite(number) and number > 0 else 0
