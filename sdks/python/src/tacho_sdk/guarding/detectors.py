"""Detectors that examine one run: loops and budgets. Pure: the caller supplies clock and usage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DetectorAction = Literal["WARN", "REQUIRE_APPROVAL", "BLOCK"]
"""Action of a detector on a finding, besides recording it."""
_REPORTED_MAX = 1_000


@dataclass(frozen=True)
class Loop:
    """When equal calls are a loop."""

    calls: int = 5
    """How many calls of one tool with the same input, including this one, make a loop. At least 2."""
    window: int = 20
    """Number of guarded calls of the run that are examined."""
    action: DetectorAction = "WARN"


@dataclass(frozen=True)
class Budget:
    """The most one run may use; None is no limit."""

    tool_calls: int | None = None
    total_tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    """Limit since the run began."""
    action: DetectorAction = "WARN"


@dataclass(frozen=True)
class Detection:
    """What a detector found."""

    type: Literal["LOOP_DETECTED", "BUDGET_EXCEEDED"]
    action: DetectorAction
    reason_code: str
    """Stable: `same_input`, or the name of the budget."""
    message: str
    """Message for people and models."""
    is_new: bool
    """True for the first finding in this run. Later findings apply the action but are not reported again."""


class LoopDetector:
    """Remembers the last calls of one run."""

    def __init__(self, options: Loop, recent: list[str] | None = None) -> None:
        """`recent`: calls in other processes."""
        self._action = options.action
        self._threshold = max(2, options.calls)
        self._most = max(options.window, self._threshold)
        self._recent = [] if recent is None else recent
        self._reported: set[str] = set()

    def observe(self, tool_name: str, input_hash: str) -> Detection | None:
        """Counts this call. Returns whether it is a loop."""
        key = f"{input_hash} {tool_name}"
        self._recent.append(key)
        del self._recent[: -self._most]
        times = self._recent.count(key)
        if times < self._threshold:
            return None
        is_new = key not in self._reported
        # Bounded: a run that loops over more inputs reports some of them again.
        if is_new and len(self._reported) >= _REPORTED_MAX:
            self._reported.clear()
        self._reported.add(key)
        message = f"{tool_name} was called {times} times with the same input"
        return Detection("LOOP_DETECTED", self._action, "same_input", message, is_new)


class BudgetDetector:
    """Remembers which budgets of one run were already reported."""

    def __init__(self, options: Budget) -> None:
        self._options = options
        self._reported: set[str] = set()

    def check(self, *, tool_calls: int, total_tokens: int, cost: float, seconds: float) -> Detection | None:
        """The first budget that this call exceeds. The usage is without this call."""
        options = self._options
        for name, used, limit, unit in (
            ("toolCalls", tool_calls + 1, options.tool_calls, "tool calls"),
            ("totalTokens", total_tokens, options.total_tokens, "tokens"),
            ("cost", cost, options.cost, "cost"),
            ("seconds", seconds, options.seconds, "seconds"),
        ):
            if limit is None or used <= limit:
                continue
            is_new = name not in self._reported
            self._reported.add(name)
            message = f"the run is over its budget of {limit} {unit}"
            return Detection("BUDGET_EXCEEDED", options.action, name, message, is_new)
        return None
