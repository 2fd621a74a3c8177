"""
Prepares policies that are decided together, once: their order, the conditions that can be true for a tool, and the match of
each. A decision then runs only those conditions, and makes no object for a policy that does not match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from .compile import Condition, NotACondition, compiled
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
    """A policy that matched a call."""

    policy_id: str
    name: str
    version: str
    effect: Action
    """The effective action: the policy's, or BLOCK if it is unknown."""
    failed: bool
    """Matched only because its condition failed."""
    failure: str | None = None
    """Why the condition failed, without a place in it."""
    message: str | None = None
    """Message of the policy."""


class Prepared(NamedTuple):
    match: Match
    """The match if the condition is true."""
    counts_on_error: bool
    condition: Condition | None
    fault: str
    """Why the condition cannot be used."""
    place: int
    """Place in the given order."""


class PolicySet:
    """Strictest first, then by policy id and version."""

    def __init__(self, policies: Sequence[PolicyLike]) -> None:
        # Keep the policies alive as long as the set, because their ids are its key.
        self.policies = list(policies)
        self._all = sorted(map(_prepared, self.policies, range(len(self.policies))), key=_strictness_of)
        tools = {tool for one in self._all for tool in _tools_of(one)}
        self._of_tool = {tool: self._for(tool) for tool in tools}
        self._of_others = self._for(None)

    def for_tool(self, name: object) -> list[Prepared]:
        """Policies whose condition can be true for a tool with this name."""
        # Comparing a very long name costs steps, so such a tool gets all policies.
        return self._of_tool.get(name, self._of_others) if type(name) is str and len(name) < _NAME_MAX else self._all

    def _for(self, tool: str | None) -> list[Prepared]:
        return [one for one in self._all if tool in _tools_of(one) or not _tools_of(one)]


_NAME_MAX = 1_000
_SETS_MAX = 256
_sets: dict[tuple[int, ...], PolicySet] = {}


def policy_set(policies: Sequence[PolicyLike]) -> PolicySet:
    """The set of these policies, prepared at their first decision."""
    key = tuple(map(id, policies))
    known = _sets.get(key)
    if known is not None:
        return known
    prepared = PolicySet(policies)
    # Policies that are not frozen may change, so their set is not cached.
    if all(map(_is_frozen, prepared.policies)):
        if len(_sets) >= _SETS_MAX:
            _sets.clear()
        _sets[key] = prepared
    return prepared


def _is_frozen(policy: PolicyLike) -> bool:
    return bool(getattr(getattr(policy, "__dataclass_params__", None), "frozen", False))


def _prepared(policy: PolicyLike, place: int) -> Prepared:
    condition = compiled(policy.condition)
    fault = ""
    if isinstance(condition, NotACondition):
        first = condition.faults[0]
        fault = f"line {first.position.line}, column {first.position.column}: {first.message}"
    return Prepared(
        match=Match(
            policy_id=policy.policy_id,
            name=policy.name,
            version=policy.version,
            effect=ACTIONS[ACTIONS.index(policy.action)] if policy.action in ACTIONS else "BLOCK",
            failed=False,
            message=message_of(getattr(policy, "description", None)),
        ),
        counts_on_error=_counts_on_error(policy),
        condition=None if fault else condition,  # type: ignore[arg-type]
        fault=fault,
        place=place,
    )


def _tools_of(prepared: Prepared) -> tuple[str, ...]:
    return () if prepared.condition is None else prepared.condition.tools


def _counts_on_error(policy: PolicyLike) -> bool:
    on_error = getattr(policy, "on_error", None)
    return policy.severity not in ("LOW", "MEDIUM") if on_error is None else on_error != "ignore"


def _strictness_of(one: Prepared) -> tuple[int, str, str, str]:
    match = one.match
    return -ACTIONS.index(match.effect), match.policy_id, match.version, match.name
