"""The operators, functions and methods of the profile, with their types."""

from __future__ import annotations

from .clock import DURATION_FIELDS, TIMESTAMP_FIELDS
from .types import BOOL, DOUBLE, DURATION, DYN, INT, LIST, MAP, STRING, TIMESTAMP, TYPE, Type, list_of

Signature = tuple[tuple[Type, ...], Type]
"""Argument types, with the receiver of a method first, and the result type."""
Signatures = dict[str, list[Signature]]


def _same(*types: Type) -> list[Signature]:
    return [((type_, type_), type_) for type_ in types]


def _from(result: Type, *types: Type) -> list[Signature]:
    return [((type_,), result) for type_ in types]


_ORDERED: list[Signature] = [
    *(((type_, type_), BOOL) for type_ in (BOOL, INT, DOUBLE, STRING, TIMESTAMP, DURATION)),
    ((INT, DOUBLE), BOOL),
    ((DOUBLE, INT), BOOL),
]

# By number of operands. `==`, `!=`, `in` and `? :` follow the rules of `comparable` instead.
OPERATOR_SIGNATURES: Signatures = {
    "!/1": _from(BOOL, BOOL),
    "-/1": [((INT,), INT), ((DOUBLE,), DOUBLE)],
    "&&/2": _same(BOOL),
    "||/2": _same(BOOL),
    **{f"{operator}/2": _ORDERED for operator in ("<", "<=", ">", ">=")},
    "+/2": [
        *_same(INT, DOUBLE, STRING, DURATION, LIST),
        ((TIMESTAMP, DURATION), TIMESTAMP),
        ((DURATION, TIMESTAMP), TIMESTAMP),
    ],
    "-/2": [
        *_same(INT, DOUBLE, DURATION),
        ((TIMESTAMP, DURATION), TIMESTAMP),
        ((TIMESTAMP, TIMESTAMP), DURATION),
    ],
    "*/2": _same(INT, DOUBLE),
    "//2": _same(INT, DOUBLE),
    "%/2": _same(INT),
}

# By name and number of arguments. The argument of `has` is a field, not a value.
FUNCTION_SIGNATURES: Signatures = {
    "size/1": _from(INT, STRING, LIST, MAP),
    "string/1": _from(STRING, STRING, INT, DOUBLE, BOOL, TIMESTAMP, DURATION),
    "int/1": _from(INT, INT, DOUBLE, STRING, TIMESTAMP),
    "double/1": _from(DOUBLE, DOUBLE, INT, STRING),
    "bool/1": _from(BOOL, BOOL, STRING),
    "type/1": _from(TYPE, DYN),
    "timestamp/1": _from(TIMESTAMP, TIMESTAMP, STRING, INT),
    "duration/1": _from(DURATION, DURATION, STRING),
    "origin/1": _from(list_of(STRING), STRING, DOUBLE, INT),
}

# Signatures by name and number of arguments, receiver first. Loops are not included, because they bind a variable.
METHOD_SIGNATURES: Signatures = {
    "size/0": _from(INT, STRING, LIST, MAP),
    **{f"{name}/1": [((STRING, STRING), BOOL)] for name in ("startsWith", "endsWith", "contains", "matches")},
    **{f"{name}/0": _from(STRING, STRING) for name in ("lowerAscii", "upperAscii", "trim")},
    "split/1": [((STRING, STRING), list_of(STRING))],
    **{f"{name}/0": _from(INT, TIMESTAMP, *((DURATION,) if name in DURATION_FIELDS else ())) for name in TIMESTAMP_FIELDS},
    **{f"{name}/1": [((TIMESTAMP, STRING), INT)] for name in TIMESTAMP_FIELDS},
}
