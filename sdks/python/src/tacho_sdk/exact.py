"""
Exact texts and numbers from a host's values. An instance of a subclass, such as a StrEnum, is taken by its built-in value:
its own methods could answer differently from what a policy compares. Nothing here calls code of the host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def exact_text(value: object) -> str | None:
    """The text as a `str`; None if the value is not a text."""
    # `isinstance` would read `__class__`, which a host can define.
    return str.__str__(value) if issubclass(type(value), str) else None


def exact_number(value: object) -> int | float | None:
    """The number as an `int` or `float`; None if the value is not a number. A bool is not."""
    kind = type(value)
    if kind is bool:
        return None
    if issubclass(kind, int):
        return int.__int__(value)  # type: ignore[arg-type]
    return float.__float__(value) if issubclass(kind, float) else None  # type: ignore[arg-type]


_NUMBERS = frozenset({int, float})
_PLAIN = frozenset({int, float, bool, type(None), str})


def is_flat(value: object) -> bool:
    """
    Whether the value is a list of only texts, numbers, booleans and None. Long lists of numbers need not be read one by one.
    """
    return type(value) is list and _PLAIN.issuperset(map(type, value))


def are_doubles(numbers: Sequence[object]) -> bool:
    """Whether a list has only numbers that a double holds exactly."""
    if not _NUMBERS.issuperset(map(type, numbers)):
        return False
    try:
        doubles = list(map(float, numbers))  # type: ignore[arg-type]
    except OverflowError:
        return False
    return doubles == numbers and all(map(math.isfinite, doubles))


def class_name(value: object) -> str:
    """The name of the value's class."""
    return str.__str__(type.__dict__["__name__"].__get__(type(value)))
