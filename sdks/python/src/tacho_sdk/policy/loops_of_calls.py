"""
Loops over `run.calls`, without a walk over all calls at each decision: a loop that reads only the past judges each call once,
and one that asks for a value of an input judges only the calls that have it. Results and steps are those of loops.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .loops import LoopParts, SoughtInput, body_of, build_loop
from .values import Failure, Scope, Step, Unreadable, Value


def build_loop_of_calls(parts: LoopParts) -> Step | None:
    """None if each decision must look at all calls."""
    if parts.past and parts.loop not in ("map/2", "map/3"):
        return _judge_new_calls(parts)
    return None if parts.sought is None else _judge_sought_calls(parts, parts.sought)


@dataclass(frozen=True)
class Judged:
    """What a loop found in the calls that it has seen."""

    forgotten: int
    """Calls, or inputs of them, that the history had forgotten by then."""
    calls: int = 0
    steps: int = 0
    is_decided: bool = False
    failure: Failure | None = None
    holds: list[Value] = field(default_factory=list)
    """Calls for which the condition of the loop is true."""


def _judge_new_calls(parts: LoopParts) -> Step:
    """Judges each call once while the history forgets none, for the same steps."""
    body, place, weight, loop = parts.bodies[0], parts.place, parts.weight, parts.loop
    is_quantifier = loop in ("all/2", "exists/2")
    decisive = loop == "exists/2"

    def judge(known: Judged, calls: list[Value], scope: Scope) -> Judged:
        left = scope.left
        failure, is_decided, at = known.failure, False, known.calls
        holding: list[Value] = []
        while not is_decided and at < len(calls):
            scope.spend(weight)
            scope.locals[place] = calls[at]
            at += 1
            holds = body(scope)
            if type(holds) is not bool:
                is_decided = not is_quantifier
                if failure is None or type(holds) is Unreadable:
                    failure = holds if isinstance(holds, Failure) else parts.not_bool
            elif is_quantifier:
                is_decided = holds is decisive
            elif holds:
                holding.append(calls[at - 1])
        steps = known.steps + left - scope.left
        return Judged(known.forgotten, at, steps, is_decided, failure, [*known.holds, *holding])

    def step(scope: Scope) -> Value | Failure:
        calls, history = parts.iterable(scope), scope.history
        if not isinstance(calls, list) or history is None:
            return calls if isinstance(calls, Failure) else parts.not_iterable
        forgotten = history.forgotten_calls if parts.past == "settled" else history.forgotten_inputs
        known = history.loops.get(parts)
        if known is None or known.forgotten != forgotten:
            known = Judged(forgotten)
        scope.spend(known.steps)
        if not known.is_decided and known.calls < len(calls):
            known = judge(known, calls, scope)
            history.remember_loop(parts, known)
        if is_quantifier:
            if known.is_decided:
                return decisive
            return not decisive if known.failure is None else known.failure
        if known.failure is not None:
            return known.failure
        return len(known.holds) == 1 if loop == "exists_one/2" else known.holds

    return step


def _judge_sought_calls(parts: LoopParts, sought: SoughtInput) -> Step:
    """The turns of all other calls are false, and cost what they cost."""
    run, walk = body_of(parts), build_loop(parts)
    place, weight = parts.place, parts.weight
    decisive = {"all/2": False, "exists/2": True}.get(parts.loop)

    def step(scope: Scope) -> Value | Failure:
        history, value = scope.history, sought.value(scope)
        places = None if history is None else history.places_of(sought.tool, sought.path, value)
        if history is None or places is None:
            return walk(scope)
        calls = history.calls if sought.tool is None else history.calls_of(sought.tool)
        turns = iter(places)
        before = 0

        def turn(body: Step, call: Any) -> Value | Failure:
            nonlocal before
            after = next(turns) + 1
            scope.spend(weight * (after - before))
            before = after
            scope.locals[place] = call
            return body(scope)

        result = run([calls[at] for at in places], turn)
        is_early = isinstance(result, Failure) if decisive is None else result is decisive
        if not is_early:
            scope.spend(weight * (len(calls) - before))
        return result

    return step
