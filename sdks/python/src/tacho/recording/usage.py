"""What a run has used so far, counted as its events are recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..exact import exact_number


@dataclass
class RunUsage:
    since: float
    """When this process first saw the run, by a monotonic clock in seconds."""
    tool_calls: int = 0
    total_tokens: int = 0
    cost: float = 0.0

    def count(self, event_type: str, payload: Mapping[str, object] | None) -> None:
        if event_type == "TOOL_CALL":
            self.tool_calls += 1
        if event_type != "LLM_CALL" or not isinstance(payload, Mapping):
            return
        usage = payload.get("usage")
        tokens = usage if isinstance(usage, Mapping) else {}
        cost = _amount(payload.get("cost"))
        parts = _amount(tokens.get("promptTokens")) + _amount(tokens.get("completionTokens"))
        total = int(_amount(tokens.get("totalTokens")) or parts)
        # Nothing is called between reading and writing a sum, so no other thread runs between them.
        self.cost += cost
        self.total_tokens += total


def _amount(value: object) -> float:
    number = exact_number(value)
    return number if number is not None and math.isfinite(number) and number > 0 else 0
