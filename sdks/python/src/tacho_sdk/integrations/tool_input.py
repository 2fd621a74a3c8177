"""The arguments of a call as a model writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any


class Unreadable:
    """A text or number that JSON readers read differently. It has no JSON form: a policy that reads it fails closed."""


def arguments_of(text: object, *, parse_float: Callable[[str], object] = float) -> Any:
    """
    The arguments of a call: JSON text, or an object already. `Unreadable` for a text that readers of JSON understand in
    different ways: with duplicate keys, or with constants that JSON does not have.
    """
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text or "{}", object_pairs_hook=_unique, parse_constant=_refuse, parse_float=parse_float)
    except (ValueError, RecursionError):
        return Unreadable()


def exact_float(text: str) -> object:
    """Parses a number. `Unreadable` if a tool that gets the text could read more digits than a float holds."""
    number = float(text)
    try:
        # Numbers of up to 15 digits are written exactly as they were read.
        return number if Decimal(text) == Decimal(repr(number)) else Unreadable()
    except ArithmeticError:
        # An exponent of many digits.
        return Unreadable()


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("duplicate keys")
    return fields


def _refuse(constant: str) -> object:
    raise ValueError(constant)
