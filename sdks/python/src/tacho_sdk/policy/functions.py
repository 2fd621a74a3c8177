"""Implements signatures.py. build.py builds `has`, the loops, `matches` and the time getters with a zone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from .clock import DURATION_FIELDS, TIMESTAMP_FIELDS, UTC, shown_in
from .position import units
from .text import number_text
from .times import (
    LONGEST_NUMBER,
    SECOND,
    Duration,
    Timestamp,
    parse_duration,
    parse_timestamp,
    show_duration,
    show_timestamp,
    timestamp_of,
)
from .values import NO_HISTORY, NO_OVERLOAD, OUT_OF_RANGE, OutOfSteps, Refusal, Scope, TypeName, Value, int_or_refusal, type_of

Implementation = Callable[[list[Value], Scope], "Value | Refusal"]
"""Called with the arguments; the receiver of a method comes first."""

_NO_HISTORY = Refusal(NO_HISTORY.message)
_NOT_A_NUMBER = Refusal("the text is not a number")
_NOT_A_BOOL = Refusal("the text is not true or false")
_NOT_A_TIME = Refusal("the text is not a time such as 2026-11-20T09:00:00Z")
_NOT_A_DURATION = Refusal("the text is not a duration such as 1h30m")

_INT = re.compile(r"[+-]?\d{1,19}\Z", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
_LETTERS_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_LETTERS_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# Unicode's White_Space; Python's own definition also has U+001C to U+001F.
_SPACES = "".join(map(chr, [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F]))
_SPACES += "\u205f\u3000"


def _size(values: list[Value], scope: Scope) -> Value | Refusal:
    """The size of a text in code points, of a list or map in elements."""
    value = values[0]
    if isinstance(value, str):
        scope.spend(units(value) >> 2)
        return len(value)
    return len(value) if isinstance(value, (list, dict)) else NO_OVERLOAD


def _origin(values: list[Value], scope: Scope) -> Value | Refusal:
    """Finds a value in earlier outputs of the run. The first look takes up to 0.3 ms; further ones are cached."""
    value = values[0]
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return NO_OVERLOAD
    return _NO_HISTORY if scope.history is None else origin_of_text(value, scope)


def origin_of_text(value: str | float, scope: Scope) -> list[str]:
    """Origin of a text or a number. The scope must have a history."""
    scope.left -= 60
    if scope.left < 0:
        raise OutOfSteps
    return scope.history.origin(value)  # type: ignore[union-attr]


def _converting(convert: Callable[[Value], Value | Refusal], steps_per_character: int) -> Implementation:
    def apply(values: list[Value], scope: Scope) -> Value | Refusal:
        value = values[0]
        if isinstance(value, str):
            scope.spend(40 + steps_per_character * min(units(value), LONGEST_NUMBER))
        else:
            scope.spend(60 if isinstance(value, (Timestamp, Duration)) else 10)
        return convert(value)

    return apply


def _to_text(value: Value) -> Value | Refusal:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Timestamp):
        return show_timestamp(value)
    return show_duration(value) if isinstance(value, Duration) else NO_OVERLOAD


def _to_int(value: Value) -> Value | Refusal:
    if type(value) is int:
        return value
    if type(value) is float:
        return math.trunc(value) if abs(value) < 2**63 else OUT_OF_RANGE
    if isinstance(value, Timestamp):
        return value.seconds
    if not isinstance(value, str):
        return NO_OVERLOAD
    return int_or_refusal(int(value)) if _INT.match(value) else _NOT_A_NUMBER


def _to_double(value: Value) -> Value | Refusal:
    """Decimal texts only: "NaN", "Infinity" and "0x10" are rejected, because comparisons with NaN are always false."""
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    if not isinstance(value, str):
        return NO_OVERLOAD
    if len(value) > LONGEST_NUMBER or not _DECIMAL.match(value):
        return _NOT_A_NUMBER
    number = float(value)
    return number if math.isfinite(number) else _NOT_A_NUMBER


def _to_bool(value: Value) -> Value | Refusal:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return NO_OVERLOAD
    if value in ("1", "t", "true", "TRUE", "True"):
        return True
    return False if value in ("0", "f", "false", "FALSE", "False") else _NOT_A_BOOL


def _to_timestamp(value: Value) -> Value | Refusal:
    if isinstance(value, Timestamp):
        return value
    if type(value) is int:
        time = timestamp_of(value * SECOND)
    elif isinstance(value, str):
        time = parse_timestamp(value)
    else:
        return NO_OVERLOAD
    return _NOT_A_TIME if time is None else time


def _to_duration(value: Value) -> Value | Refusal:
    if isinstance(value, Duration):
        return value
    if not isinstance(value, str):
        return NO_OVERLOAD
    duration = parse_duration(value)
    return _NOT_A_DURATION if duration is None else duration


def _time_field(name: str) -> Implementation:
    of_timestamp = TIMESTAMP_FIELDS.get(name)
    of_duration = DURATION_FIELDS.get(name)

    def field(values: list[Value], _scope: Scope) -> Value | Refusal:
        value = values[0]
        if of_timestamp and isinstance(value, Timestamp):
            return of_timestamp(shown_in(UTC, value))
        return of_duration(value) if of_duration and isinstance(value, Duration) else NO_OVERLOAD

    return field


def _on_text(apply: Callable[[str], str]) -> Implementation:
    def implementation(values: list[Value], scope: Scope) -> Value | Refusal:
        value = values[0]
        if not isinstance(value, str):
            return NO_OVERLOAD
        scope.spend(units(value) >> 2)
        return apply(value)

    return implementation


def _on_texts(apply: Callable[[str, str, Scope], Value]) -> Implementation:
    def implementation(values: list[Value], scope: Scope) -> Value | Refusal:
        value, other = values
        if not isinstance(value, str) or not isinstance(other, str):
            return NO_OVERLOAD
        scope.spend_text(other)
        return apply(value, other, scope)

    return implementation


def _contains(text: str, sought_text: str, scope: Scope) -> Value:
    _spend_search(text, sought_text, scope)
    return sought_text in text


def _split(text: str, separator: str, scope: Scope) -> Value:
    _spend_search(text, separator, scope)
    if separator == "":
        scope.spend(units(text))
        return list(text)
    parts = text.split(separator)
    scope.spend(len(parts))
    return parts


def _spend_search(text: str, sought_text: str, scope: Scope) -> None:
    scope.spend(math.ceil(units(text) * (16 + units(sought_text)) / 512))


FUNCTIONS: dict[str, Implementation] = {
    "size/1": _size,
    "string/1": _converting(_to_text, 0),
    "int/1": _converting(_to_int, 2),
    "double/1": _converting(_to_double, 2),
    "bool/1": _converting(_to_bool, 0),
    "type/1": lambda values, _scope: TypeName(type_of(values[0])),
    "timestamp/1": _converting(_to_timestamp, 3),
    "duration/1": _converting(_to_duration, 8),
    "origin/1": _origin,
}

METHODS: dict[str, Implementation] = {
    "size/0": _size,
    "startsWith/1": _on_texts(lambda text, start, _scope: text.startswith(start)),
    "endsWith/1": _on_texts(lambda text, end, _scope: text.endswith(end)),
    "contains/1": _on_texts(_contains),
    "lowerAscii/0": _on_text(lambda text: text.translate(_LETTERS_LOWER)),
    "upperAscii/0": _on_text(lambda text: text.translate(_LETTERS_UPPER)),
    "trim/0": _on_text(lambda text: text.strip(_SPACES)),
    "split/1": _on_texts(_split),
    **{f"{name}/0": _time_field(name) for name in {*TIMESTAMP_FIELDS, *DURATION_FIELDS}},
}
