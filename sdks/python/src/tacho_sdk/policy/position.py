"""Places in the source of a condition, in UTF-16 units, so that they are the same in every SDK and editor."""

from __future__ import annotations

import re

from ..inner_class import inner_class

_LINE_END = re.compile(r"\r\n|\r|\n")


def units(text: str) -> int:
    """UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text) + sum(char > "\uffff" for char in text)


@inner_class
class Position:
    """`offset` and `end_offset` count from 0, `line` and `column` from 1."""

    offset: int
    line: int
    column: int
    end_offset: int | None = None


@inner_class
class Fault:
    message: str
    position: Position


def position_at(source: str, offset: int, end: int | None = None) -> Position:
    """`offset` and `end` count characters of `source`."""
    start = max(0, min(offset, len(source)))
    line, line_start = 1, 0
    for match in _LINE_END.finditer(source):
        if match.end() > start:
            break
        line += 1
        line_start = match.end()
    at = units(source[:start])
    column = units(source[line_start:start]) + 1
    if end is None or end <= start:
        return Position(at, line, column)
    return Position(at, line, column, units(source[:end]))


def in_order(faults: list[Fault]) -> list[Fault]:
    return sorted(faults, key=lambda fault: fault.position.offset)
