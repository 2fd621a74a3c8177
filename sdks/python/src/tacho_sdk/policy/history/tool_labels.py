"""
Labels of tools and of their outputs, which a team defines: such as `untrusted` (written by strangers), `private`, `external`
(reaches people or systems outside), `destructive` and `money`. The same as tool-labels.ts of the TypeScript engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..compile import NotACondition, compiled, evaluate
from ..facts import Facts, name_parts
from ..loops_of_calls import Preparation
from .run_history import UNKNOWN


class ToolLabelsLike(Protocol):
    @property
    def tool(self) -> str: ...
    @property
    def output(self) -> Sequence[str]: ...
    @property
    def does(self) -> Sequence[str]: ...
    @property
    def when(self) -> str | None: ...


def labels_of_call(rules: Iterable[ToolLabelsLike], facts: Facts) -> tuple[list[str], list[str]]:
    """
    The labels of the call's effects, and of its output. Before the call runs, `tool.output` is not known, and neither are the
    labels that depend on it. A rule whose condition cannot be evaluated gives the label `unknown` instead of its own.
    """
    does: set[str] = set()
    output: set[str] = set()
    server, own_name = name_parts(facts)
    names = [facts.tool_name] if server == "" else [f"mcp__{server}__{own_name}", str(own_name)]
    for rule in rules:
        if not any(_is_named(rule.tool, name) for name in names):
            continue
        holds = True if rule.when is None else _evaluated(rule.when, facts)
        if holds is False:
            continue
        does.update(rule.does if holds else [UNKNOWN] * len(rule.does))
        output.update(rule.output if holds else [UNKNOWN] * len(rule.output))
    return sorted(does), sorted(output)


def faults_of_labels(rules: Iterable[ToolLabelsLike]) -> list[str]:
    """Conditions that cannot be used: their labels are always `unknown`."""
    faults = []
    for rule in rules:
        result = None if rule.when is None else compiled(rule.when, of_labels=True)
        if isinstance(result, NotACondition):
            fault = result.faults[0]
            faults.append(f"{rule.tool}: line {fault.position.line}, column {fault.position.column}: {fault.message}")
    return faults


class _HasCondition(Protocol):
    @property
    def condition(self) -> str: ...


def read_history(policies: Iterable[_HasCondition]) -> bool:
    """Whether a policy needs the past of the run."""
    for policy in policies:
        result = compiled(policy.condition)
        if not isinstance(result, NotACondition) and result.reads_history:
            return True
    return False


def preparations_for(policies: Iterable[_HasCondition]) -> list[Preparation]:
    """Functions that prepare a history for the next decision by these policies. Call them when a call has ended."""
    known = (compiled(policy.condition) for policy in policies)
    return [prepare for one in known if not isinstance(one, NotACondition) for prepare in one.preparations]


def _evaluated(source: str, facts: Facts) -> bool | None:
    """Returns None if it cannot be evaluated."""
    result = compiled(source, of_labels=True)
    return None if isinstance(result, NotACondition) else evaluate(result, facts).matched


def _is_named(pattern: str, name: str) -> bool:
    # A rule in code may lack a tool.
    start, star, end = str(pattern).partition("*")
    if not star:
        return name == pattern
    end = end.partition("*")[0]
    return len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)
