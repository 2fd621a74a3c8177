"""An index of a run's calls by one value of their inputs, for conditions such as `c.input.id == tool.input.id`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Only shorter texts are indexed: from 32 UTF-16 units on, a comparison costs steps. A character has one or two units.
_SHORT = 16
_SHORT_ASCII = 32


def is_indexed(value: object) -> bool:
    if type(value) is not str:
        return type(value) is float
    return len(value) < _SHORT or (len(value) < _SHORT_ASCII and value.isascii())


class CallIndex:
    """Grows with the calls; the history makes a new one when it forgets a call."""

    def __init__(self, path: Sequence[str], forgotten_calls: int) -> None:
        self.forgotten_calls = forgotten_calls
        self._path = path
        self._seen = 0
        # Number of the oldest calls, whose inputs the history has forgotten. They must be judged for every value.
        self._forgotten_inputs = 0
        # Places in the list of calls by value, also of calls whose input was forgotten. Most values have one place.
        self._places: dict[str | float, int | list[int]] = {}
        # Places of calls that must be judged for every value.
        self._others: list[int] = []

    def add_new(self, calls: Sequence[dict[str, Any]]) -> None:
        """Adds the calls that it does not have yet."""
        for place in range(self._seen, len(calls)):
            self._add(calls[place], place)
        self._seen = len(calls)
        while self._forgotten_inputs < len(calls) and "input" not in calls[self._forgotten_inputs]:
            self._forgotten_inputs += 1

    def places_of(self, value: str | float) -> list[int]:
        """Places of the added calls whose input may have the value, in order."""
        places = self._places.get(value, [])
        known = [places] if isinstance(places, int) else places
        first = self._forgotten_inputs
        if first == 0 and not self._others:
            return known
        return [*range(first), *sorted(place for place in (*known, *self._others) if place >= first)]

    def _add(self, call: dict[str, Any], place: int) -> None:
        value: Any = call
        for key in self._path:
            value = value.get(key) if isinstance(value, dict) else None
        if not is_indexed(value):
            self._others.append(place)
            return
        before = self._places.get(value)
        if before is None:
            self._places[value] = place
        elif isinstance(before, int):
            self._places[value] = [before, place]
        else:
            before.append(place)
