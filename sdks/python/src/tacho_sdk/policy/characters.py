"""Sets of characters in patterns: ranges and Unicode categories, perhaps ignoring case."""

from __future__ import annotations

import sys
import unicodedata
from bisect import bisect_right
from functools import cache

from ..inner_class import inner_class

Ranges = tuple[tuple[int, int], ...]
"""First and last code points, in order, without overlap."""

DIGIT: Ranges = ((0x30, 0x39),)
SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ALL: Ranges = ((0, 0x10FFFF),)

POSIX: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0, 0x7F),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((9, 13), (32, 32)),
    "upper": ((0x41, 0x5A),),
    "word": WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}

# Unicode's general categories. Python has no tables of scripts.
CATEGORIES = frozenset(
    [
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
    ]
)


@inner_class
class Item:
    """A part of a character class. `category`: all characters of a general category."""

    ranges: Ranges = ()
    category: str | None = None
    is_negated: bool = False


@inner_class
class CharacterSet:
    items: tuple[Item, ...]
    is_negated: bool = False
    ignores_case: bool = False

    def has(self, point: int) -> bool:
        points = orbit_of(point) if self.ignores_case else (point,)
        return any(_has(item, points) for item in self.items) != self.is_negated


def _has(item: Item, points: tuple[int, ...]) -> bool:
    return any(_in_ranges(item, point) for point in points) != item.is_negated


def _in_ranges(item: Item, point: int) -> bool:
    if item.category is not None:
        return unicodedata.category(chr(point)).startswith(item.category)
    at = bisect_right(item.ranges, (point, sys.maxunicode)) - 1
    return at >= 0 and item.ranges[at][0] <= point <= item.ranges[at][1]


def orbit_of(point: int) -> tuple[int, ...]:
    """The characters that are equal to this one if case is ignored, including itself."""
    if point < 0x80:
        return _ASCII_ORBITS.get(point, (point,))
    return _orbits().get(_folded(point), (point,))


_ASCII_ORBITS: dict[int, tuple[int, ...]] = {
    **{point: (point, point ^ 0x20) for first in (0x41, 0x61) for point in range(first, first + 26)},
    # The Kelvin sign and the long s.
    **dict.fromkeys((0x4B, 0x6B), (0x4B, 0x6B, 0x212A)),
    **dict.fromkeys((0x53, 0x73), (0x53, 0x73, 0x17F)),
}


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """Built at the first use with a character beyond ASCII, in about 100 ms."""
    orbits: dict[int, tuple[int, ...]] = {}
    for point in range(0x41, 0x1E944):
        folded = _folded(point)
        orbits[folded] = (*orbits.get(folded, ()), point)
    return {folded: points for folded, points in orbits.items() if len(points) > 1}


def _folded(point: int) -> int:
    """Simple case folding."""
    character = chr(point)
    for form in (character.casefold(), character.lower()):
        if len(form) == 1:
            return ord(form)
    return point
