"""The arguments of a call as a model writes them."""

from __future__ import annotations

import json
from typing import Any


class Unreadable:
    """A text without one meaning. It has no JSON form, so a policy that reads it fails closed."""


def arguments_of(text: object) -> Any:
    """
    The arguments of a call: JSON text, or an object already. `Unreadable` for a text that readers of JSON understand in
    different ways: with duplicate keys, or with constants that JSON does not have.
    """
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text or "{}", object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return Unreadable()


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("duplicate keys")
    return fields


def _refuse(constant: str) -> object:
    raise ValueError(constant)
