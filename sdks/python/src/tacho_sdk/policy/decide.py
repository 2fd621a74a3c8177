"""Decides about a call: the strictest matching policy wins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .compile import Condition, Evaluation, NotACondition, compiled, evaluate_in, known_conditions, scope_of
from .facts import Facts
from .message import message_of

Action = Literal["ALLOW", "WARN", "REQUIRE_APPROVAL", "BLOCK"]
# From least to most strict.
ACTIONS: tuple[Action, ...] = ("ALLOW", "WARN", "REQUIRE_APPROVAL", "BLOCK")


class PolicyLike(Protocol):
    @property
    def policy_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def condition(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def on_error(self) -> str | None: ...


@dataclass(frozen=True)
class Match:
    policy_id: str
    name: str
    version: str
    effect: Action
    """The effective action: the policy's, or BLOCK if it is unknown."""
    failed: bool
    """Matched only because its condition failed."""
    failure: str | None = None
    """Why it failed, without a place in the condition."""
    message: str | None = None
    """What the policy says."""


@dataclass(frozen=True)
class PolicyFailure:
    policy_id: str
    name: str
    version: str
    message: str
    counted_as_matched: bool


@dataclass(frozen=True)
class Decision:
    action: Action
    matched: tuple[Match, ...]
    """Strictest first, then by policy id and version."""
    failures: tuple[PolicyFailure, ...]
    """Conditions that could not be compiled or evaluated, by policy id and version."""


def decide(policies: Sequence[PolicyLike], facts: Facts) -> Decision:
    """
    The strictest match wins; without a match the action is ALLOW. The order of policies does not matter. Never raises.

    A condition that cannot be compiled or evaluated counts as matched or not as the policy's `on_error` says. Without one it
    counts as matched if the severity is CRITICAL or HIGH, and as not matched if it is MEDIUM or LOW. A condition that reads a
    part of the input that cannot be read counts as matched in each case. `failures` lists it in all cases. Unknown values fail
    closed: an unknown action counts as BLOCK, an unknown severity as CRITICAL, an unknown `on_error` as `act`.
    """
    scope = scope_of(facts)
    matched: list[Match] = []
    failures: list[PolicyFailure] = []
    for policy in policies:
        condition = known_conditions.get(policy.condition) or compiled(policy.condition)
        outcome = evaluate_in(condition, scope) if type(condition) is Condition else _faulty(condition)
        counts = outcome.matched
        if counts is False:
            continue
        name = (policy.policy_id, policy.name, policy.version)
        if counts is None:
            counts = outcome.is_unreadable or _acts_on_error(policy)
            failures.append(PolicyFailure(*name, outcome.message, counts))
        if counts:
            message = message_of(getattr(policy, "description", None))
            failure = _PLACE.sub("", outcome.message) if outcome.matched is None else None
            matched.append(Match(*name, _effect_of(policy.action), failure is not None, failure, message))
    matched.sort(key=lambda match: (-ACTIONS.index(match.effect), *_order_of(match)))
    failures.sort(key=_order_of)
    return Decision(matched[0].effect if matched else "ALLOW", tuple(matched), tuple(failures))


def _faulty(condition: Condition | NotACondition) -> Evaluation:
    assert isinstance(condition, NotACondition)
    fault = condition.faults[0]
    place = f"line {fault.position.line}, column {fault.position.column}"
    return Evaluation(None, f"{place}: {fault.message}")


_PLACE = re.compile(r"^line \d+, column \d+: ")


def _acts_on_error(policy: PolicyLike) -> bool:
    on_error = getattr(policy, "on_error", None)
    return policy.severity not in ("LOW", "MEDIUM") if on_error is None else on_error != "ignore"


def _effect_of(action: str) -> Action:
    return ACTIONS[ACTIONS.index(action)] if action in ACTIONS else "BLOCK"


def _order_of(policy: Match | PolicyFailure) -> tuple[str, str, str]:
    return policy.policy_id, policy.version, policy.name
