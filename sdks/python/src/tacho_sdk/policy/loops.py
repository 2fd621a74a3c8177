"""Loops of a condition: `all`, `exists`, `exists_one`, `filter` and `map`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .values import Failure, Scope, Step, Unreadable, Value

_Turn = Callable[[Step, Value], "Value | Failure"]
_Run = Callable[[list[Value], _Turn], "Value | Failure"]


@dataclass(frozen=True, eq=False)
class LoopParts:
    """A loop of a condition: its parts, and the cost of one turn."""

    loop: str
    iterable: Step
    bodies: list[Step]
    place: int
    """Slot of the loop variable in the scope."""
    weight: int
    """Nodes of the bodies: the steps of one turn, without those that the bodies spend themselves."""
    not_iterable: Failure
    not_bool: Failure
    past: Literal["settled", "inputs"] | None = None
    """What it reads of the run's calls, if it reads nothing else."""


def build_loop(parts: LoopParts) -> Step:
    """A loop visits the elements of a list, or the keys of a map."""
    if parts.past and parts.loop in ("all/2", "exists/2"):
        return _judge_new_calls(parts, parts.loop == "exists/2")
    iterable, place, weight = parts.iterable, parts.place, parts.weight
    run = _body_of(parts)

    def step(scope: Scope) -> Value | Failure:
        source = iterable(scope)
        if isinstance(source, list):
            items = source
        elif isinstance(source, dict):
            scope.spend(len(source))
            items = list(source)
        else:
            return source if isinstance(source, Failure) else parts.not_iterable

        def turn(body: Step, item: Value) -> Value | Failure:
            scope.spend(weight)
            scope.locals[place] = item
            return body(scope)

        return run(items, turn)

    return step


@dataclass(frozen=True)
class Judged:
    """What a loop found in the calls that it has seen."""

    forgotten: int
    """Calls, or inputs of them, that the history had forgotten by then."""
    calls: int
    steps: int
    is_decided: bool
    failure: Failure | None


def _judge_new_calls(parts: LoopParts, decisive: bool) -> Step:
    """`all` or `exists` over the calls of the run: judges each call once while the history forgets none, for the same steps."""
    body, place, weight = parts.bodies[0], parts.place, parts.weight

    def step(scope: Scope) -> Value | Failure:
        calls, history = parts.iterable(scope), scope.history
        if not isinstance(calls, list) or history is None:
            return calls if isinstance(calls, Failure) else parts.not_iterable
        forgotten = history.forgotten_calls if parts.past == "settled" else history.forgotten_inputs
        known = history.loops.get(parts)
        if known is None or known.forgotten != forgotten:
            known = Judged(forgotten, 0, 0, False, None)
        left = scope.left
        scope.spend(known.steps)
        failure, is_decided, at = known.failure, known.is_decided, known.calls
        while not is_decided and at < len(calls):
            scope.spend(weight)
            scope.locals[place] = calls[at]
            at += 1
            holds = body(scope)
            if holds is decisive:
                is_decided = True
            elif type(holds) is not bool and (failure is None or type(holds) is Unreadable):
                failure = holds if isinstance(holds, Failure) else parts.not_bool
        if at != known.calls:
            history.remember_loop(parts, Judged(forgotten, at, left - scope.left, is_decided, failure))
        if is_decided:
            return decisive
        return not decisive if failure is None else failure

    return step


def _body_of(parts: LoopParts) -> _Run:
    match parts.loop:
        case "all/2":
            return _quantify(parts, False)
        case "exists/2":
            return _quantify(parts, True)
        case "exists_one/2":
            return _exists_one(parts)
        case "filter/2":
            return _collect(parts.bodies[0], None, parts.not_bool)
        case "map/2":
            return _collect(None, parts.bodies[0], parts.not_bool)
    return _collect(parts.bodies[0], parts.bodies[1], parts.not_bool)


def _quantify(parts: LoopParts, decisive: bool) -> _Run:
    """A true turn decides `exists` and a false turn decides `all`, even if other turns are errors."""
    body = parts.bodies[0]

    def run(items: list[Value], turn: _Turn) -> Value | Failure:
        failure: Failure | None = None
        for item in items:
            holds = turn(body, item)
            if holds is decisive:
                return decisive
            if type(holds) is not bool and (failure is None or type(holds) is Unreadable):
                failure = holds if isinstance(holds, Failure) else parts.not_bool
        return not decisive if failure is None else failure

    return run


def _exists_one(parts: LoopParts) -> _Run:
    body = parts.bodies[0]

    def run(items: list[Value], turn: _Turn) -> Value | Failure:
        count = 0
        for item in items:
            holds = turn(body, item)
            if type(holds) is not bool:
                return holds if isinstance(holds, Failure) else parts.not_bool
            count += holds
        return count == 1

    return run


def _collect(condition: Step | None, transform: Step | None, not_bool: Failure) -> _Run:
    def run(items: list[Value], turn: _Turn) -> Value | Failure:
        collected: list[Value] = []
        for item in items:
            keep = turn(condition, item) if condition else True
            if type(keep) is not bool:
                return keep if isinstance(keep, Failure) else not_bool
            if not keep:
                continue
            value = turn(transform, item) if transform else item
            if isinstance(value, Failure):
                return value
            collected.append(value)
        return collected

    return run
