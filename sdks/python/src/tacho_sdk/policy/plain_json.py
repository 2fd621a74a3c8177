"""Copies plain JSON, and refuses everything else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..exact import are_doubles, class_name, exact_number, exact_text
from .values import Unreadable

Mark = Callable[[str], object]


class NotPlainJson(TypeError):
    """A value is not plain JSON. The message has its path; `reason` does not, because keys can be facts."""

    def __init__(self, path: list[str | int], reason: str) -> None:
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
        super().__init__(f"input{place} {reason}")
        self.reason = reason


def copy_json(source: object, *, max_values: float, max_levels: int, mark: Mark | None = None) -> Any:
    """
    A copy of None, booleans, finite numbers, texts, lists, tuples and dicts with text keys. Every number becomes a
    double. Raises NotPlainJson for anything else, for an int that a double cannot represent, and beyond the limits,
    including cycles. `mark`: replaces a place that is not plain JSON, instead of raising. Too many values always
    raise.
    """
    try:
        return _plain_copy(source, max_levels, [max_values])
    except _NotQuick:
        pass
    path: list[str | int] = []
    values = 0

    def copy(value: object) -> Any:
        nonlocal values
        values += 1
        if values > max_values:
            raise NotPlainJson([], f"has more than {int(max_values)} values")
        if mark is None:
            return plain(value)
        before = len(path)
        try:
            return plain(value)
        except NotPlainJson as error:
            if values > max_values:
                raise
            del path[before:]
            return mark(error.reason)

    def plain(value: object) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        text = exact_text(value)
        if text is not None:
            return text
        number = exact_number(value)
        if number is not None:
            return _double(number, path)
        if mark is not None and kind is Unreadable:
            return value
        if kind in (list, tuple, dict):
            if len(path) >= max_levels:
                raise NotPlainJson([], f"is nested more than {max_levels} levels deep")
            return copy_fields(value) if kind is dict else copy_list(value)  # type: ignore[arg-type]
        raise NotPlainJson(path, f"is a {class_name(value)}, not plain JSON")

    def copy_list(items: list[object]) -> list[Any]:
        nonlocal values
        if type(items) is list and values + len(items) <= max_values and are_doubles(items):
            values += len(items)
            return list(map(float, items))  # type: ignore[arg-type]
        copies = []
        for index, item in enumerate(items):
            path.append(index)
            copies.append(copy(item))
            path.pop()
        return copies

    def copy_fields(fields: dict[object, object]) -> dict[str, Any]:
        copies = {}
        for member_name, item in fields.items():
            key = exact_text(member_name)
            if key is None:
                raise NotPlainJson(path, "has a key that is not a text")
            if key in copies:
                raise NotPlainJson(path, "has two keys with the same text")
            path.append(key)
            copies[key] = copy(item)
            path.pop()
        return copies

    return copy(source)


class _NotQuick(Exception):
    """The value must be read with care, because a place of it may not be plain JSON."""


def _plain_copy(value: object, levels: float, room: list[float]) -> Any:
    """A fast `copy_json` for nearly all inputs: built-in types, and numbers that a double can hold."""
    room[0] -= 1
    kind = type(value)
    copied: Any
    if kind is str or value is None or kind is bool:
        copied = value
    elif kind is float or kind is int:
        copied = _exact_double(value)  # type: ignore[arg-type]
    elif levels <= 0:
        raise _NotQuick
    elif kind is dict:
        copied = {}
        for key, inner_value in value.items():  # type: ignore[attr-defined]
            if type(key) is not str:
                raise _NotQuick
            if type(inner_value) is str:
                room[0] -= 1
                copied[key] = inner_value
            else:
                copied[key] = _plain_copy(inner_value, levels - 1, room)
    elif (kind is list or kind is tuple) and len(value) <= room[0]:  # type: ignore[arg-type]
        copied = [_plain_copy(item, levels - 1, room) for item in value]  # type: ignore[attr-defined]
    else:
        raise _NotQuick
    if room[0] < 0:
        raise _NotQuick
    return copied


def _exact_double(value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise _NotQuick from None
    if number != value or number - number != 0:
        raise _NotQuick
    return number


def _double(value: int | float, path: list[str | int]) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise NotPlainJson(path, "is larger than the numbers of JSON") from None
    if not math.isfinite(number):
        raise NotPlainJson(path, f"is {value}, which JSON does not have")
    if number != value:
        raise NotPlainJson(path, "is an integer that JSON's numbers cannot hold; pass it as a text")
    return number
