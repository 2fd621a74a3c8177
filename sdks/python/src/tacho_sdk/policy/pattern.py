"""Regular expressions of conditions: RE2 syntax (pattern_syntax.py), matched in linear time (automaton.py)."""

from __future__ import annotations

import re
from functools import lru_cache

from .automaton import Automaton
from .limits import PATTERN_CHARS, PATTERN_INSTRUCTIONS, PATTERN_REPEATS
from .pattern_program import compile_program
from .pattern_syntax import BadSyntax, parse_pattern
from .position import units
from .values import Scope


class BadPattern(Exception):
    """The message describes the fault."""


class Pattern:
    """Stateless: any number of evaluations can share it."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton

    def matches(self, text: str, scope: Scope) -> bool:
        """True if the pattern matches anywhere in the text."""
        scope.spend((units(text) >> 1) * (1 + (self._automaton.size >> 5)))
        return self._automaton.test(text)


@lru_cache(maxsize=1_000)
def compile_pattern(source: str) -> Pattern:
    """Raises BadPattern. Rejects patterns that this SDK cannot match exactly as the service does."""
    if units(source) > PATTERN_CHARS:
        raise BadPattern(f"a pattern must have at most {PATTERN_CHARS} characters")
    if repeats_of(source) > PATTERN_REPEATS:
        raise BadPattern(f"the sum of all counts in {{…}} of all patterns must be at most {PATTERN_REPEATS}")
    try:
        program = compile_program(parse_pattern(source))
    except BadSyntax as error:
        raise BadPattern(f"not an RE2 pattern: {error}") from None
    if len(program) > PATTERN_INSTRUCTIONS:
        raise BadPattern(f"the pattern compiles to more than {PATTERN_INSTRUCTIONS} instructions")
    return Pattern(Automaton(program))


_COUNTS = re.compile(r"\{(\d+)(?:,(\d*))?\}", re.ASCII)


def repeats_of(source: str) -> int:
    """Sum of the counts in `{n}` and `{n,m}`. Counts in classes and quotes are included; none is missed."""
    return sum(int((most or least)[:9]) for least, most in _COUNTS.findall(source))


# The first and last characters that have another case.
_FOLDED_FIRST = 0x41
_FOLDED_LAST = 0x1E943
_IGNORES_CASE = re.compile(r"\(\?[a-z-]*i", re.ASCII | re.IGNORECASE)
# The last character of a range, after its `-`: `\x{…}`, `\x…`, octal, another escape, or the character itself.
_RANGE_END = re.compile(r"-(?=\\x\{([\da-f]+)\}|\\x([\da-f]{2})|\\([0-7]{1,3})|\\?([\s\S]))", re.ASCII | re.IGNORECASE)


def folded_chars_of(source: str) -> int:
    """Maximum characters that are folded for the ranges of a pattern with `(?i)`. Counts every range."""
    if not _IGNORES_CASE.search(source):
        return 0
    total = 0
    for hexadecimal, byte, octal, itself in _RANGE_END.findall(source):
        digits = hexadecimal or byte
        last = int(digits[:12], 16) if digits else int(octal, 8) if octal else ord(itself)
        total += max(0, min(last, _FOLDED_LAST) - _FOLDED_FIRST + 1)
    return total
