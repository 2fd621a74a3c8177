"""
Loops over `run.calls`, without a walk over all calls at each decision: a loop that reads only the past judges each call once,
and one that asks for a value of an input judges only the calls that have it. Results and steps are those of loops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .limits import EVALUATION_STEPS
from .loops import LoopParts, SoughtInput, body_of, build_loop
from .values import Failure, OutOfSteps, Scope, Step, Unreadable, UnreadableRead, Value
from .variables import VARIABLE_NAMES

if TYPE_CHECKING:
    from .history.run_history import RunHistory

_CALLS = VARIABLE_NAMES.index("run.calls")


Preparation = Callable[["RunHistory"], None]
"""Prepares what a condition will ask of the past when a call has ended, so that no decision waits for it."""


def build_loop_of_calls(parts: LoopParts, preparations: list[Preparation]) -> Step | None:
    """None if each decision must read all calls. Adds its preparation."""
    if parts.past and parts.loop not in ("map/2", "map/3"):
        past = PastLoop(parts)
        preparations.append(past.prepare)
        return past.step
    sought = parts.sought
    if sought is None:
        return None
    preparations.append(lambda history: history.prepare_places(sought.tool, sought.path))
    return _judge_sought_calls(parts, sought)


class Judged(NamedTuple):
    """Results of a loop on the calls that it has evaluated."""

    forgotten: int
    """Calls, or inputs of them, that the history had forgotten by then."""
    calls: int = 0
    steps: int = 0
    is_decided: bool = False
    failure: Failure | None = None
    holds: list[Value] = []
    """Calls for which the condition of the loop is true."""


class PastLoop:
    """A loop that reads only the past. Judges each call once while the history forgets none, for the same steps."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._is_quantifier = parts.loop in ("all/2", "exists/2")
        self._decisive = parts.loop == "exists/2"

    def judged(self, calls: list[Value], history: RunHistory, scope: Scope) -> Judged:
        """The result for all calls. Spends the steps of all of them."""
        forgotten = self._forgotten(history)
        known = history.loops.get(self)
        if known is None or known.forgotten != forgotten:
            known = Judged(forgotten)
        scope.spend(known.steps)
        if known.is_decided or known.calls >= len(calls):
            return known
        known = self._judge(known, calls, scope)
        history.remember_loop(self, known)
        return known

    def _forgotten(self, history: RunHistory) -> int:
        return history.forgotten_calls if self._parts.past == "settled" else history.forgotten_inputs

    def advance(self, history: RunHistory) -> None:
        """Judges a call when it has ended, rather than in the next decision."""
        known = history.loops.get(self)
        if known is None or known.forgotten != self._forgotten(history):
            # After 1,000 calls, each forgets one: all must be judged again, and perhaps no decision asks for these.
            return
        self._judge_all(history)

    def prepare(self, history: RunHistory) -> None:
        """Judges the calls of a run before its first decision asks."""
        if self not in history.loops and history.has_room_for_loops:
            self._judge_all(history)

    def _judge_all(self, history: RunHistory) -> None:
        scope = Scope({_CALLS: history.calls}, history)
        try:
            calls = self._parts.iterable(scope)
            if isinstance(calls, list):
                self.judged(calls, history, scope)
        except OutOfSteps:
            # A decision has no more steps than this, so it runs out too, and need not walk as far to say so.
            history.remember_loop(self, Judged(self._forgotten(history), steps=EVALUATION_STEPS + 1))
        except UnreadableRead:
            # The decision raises the same error when it evaluates the loop.
            pass

    def _judge(self, known: Judged, calls: list[Value], scope: Scope) -> Judged:
        parts = self._parts
        body, place, weight = parts.bodies[0], parts.place, parts.weight
        left = scope.left
        failure, is_decided, at = known.failure, False, known.calls
        holding: list[Value] = []
        while not is_decided and at < len(calls):
            scope.spend(weight)
            scope.locals[place] = calls[at]
            at += 1
            holds = body(scope)
            if type(holds) is not bool:
                is_decided = not self._is_quantifier
                if failure is None or type(holds) is Unreadable:
                    failure = holds if isinstance(holds, Failure) else parts.not_bool
            elif self._is_quantifier:
                is_decided = holds is self._decisive
            elif holds:
                holding.append(calls[at - 1])
        steps = known.steps + left - scope.left
        return Judged(known.forgotten, at, steps, is_decided, failure, [*known.holds, *holding] if holding else known.holds)

    def step(self, scope: Scope) -> Value | Failure:
        parts, history = self._parts, scope.history
        calls = parts.iterable(scope)
        if not isinstance(calls, list) or history is None:
            return calls if isinstance(calls, Failure) else parts.not_iterable
        known = self.judged(calls, history, scope)
        if self._is_quantifier:
            if known.is_decided:
                return self._decisive
            return not self._decisive if known.failure is None else known.failure
        if known.failure is not None:
            return known.failure
        return len(known.holds) == 1 if parts.loop == "exists_one/2" else known.holds


def _no_turn(_body: Step, _call: Value) -> Value:
    raise AssertionError


def _judge_sought_calls(parts: LoopParts, sought: SoughtInput) -> Step:
    """The turns of all other calls are false. They spend the same steps, but are not run."""
    run, walk = body_of(parts), build_loop(parts)
    place, weight = parts.place, parts.weight
    decisive = {"all/2": False, "exists/2": True}.get(parts.loop)

    def step(scope: Scope) -> Value | Failure:
        history, value = scope.history, sought.value(scope)
        places = None if history is None else history.places_of(sought.tool, sought.path, value)
        if history is None or places is None:
            return walk(scope)
        calls = history.calls if sought.tool is None else history.calls_of(sought.tool)
        if not places:
            # The usual case: no call can change the result.
            scope.spend(weight * len(calls))
            return run([], _no_turn)
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
