"""Decides about a call: the strictest matching policy wins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..inner_class import inner_class
from .compile import Evaluation, evaluate_in, scope_of
from .facts import Facts
from .policy_set import ACTIONS, Action, Match, PolicyLike, policy_set

__all__ = ["ACTIONS", "Action", "Decision", "Match", "PolicyFailure", "PolicyLike", "decide"]


@dataclass(frozen=True)
class PolicyFailure:
    """A policy whose condition failed."""

    policy_id: str
    name: str
    version: str
    message: str
    counted_as_matched: bool


@inner_class
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
    failed: list[tuple[tuple[str, str, str, int], PolicyFailure]] = []
    for policy in policy_set(policies).for_tool(facts.tool_name):
        outcome = Evaluation(None, policy.fault) if policy.condition is None else evaluate_in(policy.condition, scope)
        counts = outcome.matched
        if counts is False:
            continue
        match = policy.match
        if counts is None:
            counts = outcome.is_unreadable or policy.counts_on_error
            failure = PolicyFailure(match.policy_id, match.name, match.version, outcome.message, counts)
            failed.append(((match.policy_id, match.version, match.name, policy.place), failure))
            match = replace(match, failed=True, failure=_PLACE.sub("", outcome.message))
        if counts:
            matched.append(match)
    failures = tuple(failure for _, failure in sorted(failed)) if failed else ()
    return Decision(matched[0].effect if matched else "ALLOW", tuple(matched), failures)


_PLACE = re.compile(r"^line \d+, column \d+: ")
