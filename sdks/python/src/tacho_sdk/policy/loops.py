"""Loops of a condition: `all`, `exists`, `exists_one`, `filter` and `map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..inner_class import inner_class
from .values import Failure, OutOfSteps, Scope, Step, Unreadable, Value

_Turn = Callable[[Step, Value], "Value | Failure"]
Run = Callable[[list[Value], _Turn], "Value | Failure"]


@inner_class
class SoughtInput:
    """Restricts a loop to calls whose input has a value at a path: `c.input.id == tool.input.id && …`."""

    tool: str | None
    """Name of the only tool."""
    path: tuple[str, ...]
    value: Step
    """Reads no call, and spends no step."""


@inner_class
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
    """Parts of the run's calls that the loop reads, if it reads nothing else."""
    sought: SoughtInput | None = None
    """Restriction of the calls that can count, if the condition of the loop implies one."""


def build_loop(parts: LoopParts) -> Step:
    """A loop visits the elements of a list, or the keys of a map."""
    iterable, place, weight = parts.iterable, parts.place, parts.weight
    run = body_of(parts)
    decisive = {"all/2": False, "exists/2": True}.get(parts.loop)
    first_body = parts.bodies[0]

    def find(items: list[Value], scope: Scope) -> Value | Failure:
        """A faster `run` for quantifiers, with half the function calls."""
        failure: Failure | None = None
        for item in items:
            scope.left -= weight
            if scope.left < 0:
                raise OutOfSteps
            scope.locals[place] = item
            holds = first_body(scope)
            if holds is decisive:
                return decisive
            if type(holds) is not bool and (failure is None or type(holds) is Unreadable):
                failure = holds if isinstance(holds, Failure) else parts.not_bool
        return not decisive if failure is None else failure

    def step(scope: Scope) -> Value | Failure:
        source = iterable(scope)
        if isinstance(source, list):
            items = source
        elif isinstance(source, dict):
            scope.spend(len(source))
            items = list(source)
        else:
            return source if isinstance(source, Failure) else parts.not_iterable
        if decisive is not None:
            return find(items, scope)

        def turn(body: Step, item: Value) -> Value | Failure:
            scope.spend(weight)
            scope.locals[place] = item
            return body(scope)

        return run(items, turn)

    return step


def body_of(parts: LoopParts) -> Run:
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


def _quantify(parts: LoopParts, decisive: bool) -> Run:
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


def _exists_one(parts: LoopParts) -> Run:
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


def _collect(condition: Step | None, transform: Step | None, not_bool: Failure) -> Run:
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
