"""
Which values occur in texts, by source: a hash table of words, pairs of neighbouring words, and numbers. A value of several
words occurs if each pair of its neighbours does, so it can be found although no text has it whole. At most 786 kB; values of
texts that came after it was full are not found, and `is_full` says so. The same as value-index.ts of the TypeScript engine.
"""

from __future__ import annotations

import re
from array import array
from itertools import pairwise

from .words import TEXT_CHARS, numbers_of, readings, spellings, text_of_number, words_of

SOURCES_MAX = 16
"""Sources are bits."""

_SLOTS_MIN = 1 << 11
_SLOTS_MAX = 1 << 17
_FILL_MAX = 0.85
"""Of all slots."""
_ALL = (1 << SOURCES_MAX) - 1
_HASH = (1 << 32) - 1
# Numbers that people write in groups: of accounts, cards and phones.
_GROUPED_CHARS = range(7, 35)
_DIGITS_OF_GROUPS = re.compile(r"(?:[^0-9]*[0-9]){5}")
_GROUP_MAX = 7
# Longest value that is looked up: a longer one is no name, number or address.
_VALUE_WORDS_MAX = 64
_DIGITS = re.compile(r"[0-9]+")


class ValueIndex:
    def __init__(self) -> None:
        self._hashes = array("I", bytes(4 * _SLOTS_MIN))
        self._sources = array("H", bytes(2 * _SLOTS_MIN))
        self._used = 0
        self.is_full = False
        """Whether a text, or a part of one, is missing."""

    def add(self, text: str, source: int) -> None:
        """`source`: one bit."""
        if len(text) > TEXT_CHARS:
            self.is_full = True
        for reading in readings(text[:TEXT_CHARS]):
            hashes = [_hash_of(word) for word in words_of(reading)]
            known_hashes = set(hashes)
            known_hashes.update(map(_pair_of, hashes, hashes[1:]))
            known_hashes.update(_hash_of_number(number) for number in numbers_of(reading))
            for hash_ in known_hashes:
                self._put(hash_, source)

    def add_number(self, value: float, source: int) -> None:
        self._put(_hash_of_number(text_of_number(value)), source)

    def find(self, value: str | float) -> int:
        """The sources in which it occurs, as bits. 0 for a text without words."""
        if not isinstance(value, str):
            return self._get(_hash_of_number(text_of_number(value)))
        sources = 0
        for reading in spellings(value[:TEXT_CHARS]):
            sources |= self._find_text(reading)
        return sources

    def _find_text(self, text: str) -> int:
        words = words_of(text)
        if len(words) > _VALUE_WORDS_MAX:
            return 0
        numbers = numbers_of(text) if all(map(_DIGITS.fullmatch, words)) else ()
        as_number = self._get(_hash_of_number(numbers[0])) if len(numbers) == 1 else 0
        return as_number | self._find_words(words) | self._find_grouped("".join(words))

    def _find_words(self, words: list[str]) -> int:
        hashes = [_hash_of(word) for word in words]
        if len(hashes) < 2:
            return self._get(hashes[0]) if hashes else 0
        sources = _ALL
        for first, second in pairwise(hashes):
            sources &= self._get(_pair_of(first, second))
            if sources == 0:
                break
        return sources

    def _find_grouped(self, joined: str) -> int:
        """The same characters in other groups: `GB33BUKB2020` is `GB33 BUKB 2020`."""
        if len(joined) not in _GROUPED_CHARS or not _DIGITS_OF_GROUPS.match(joined):
            return 0
        # From each place with the word before it: the sources that have the rest of the value.
        known: dict[tuple[int, int], int] = {}

        def sources_after(at: int, length: int, previous: int) -> int:
            if at == len(joined):
                return _ALL
            if (at, length) in known:
                return known[at, length]
            sources = 0
            for size in range(1, min(_GROUP_MAX, len(joined) - at) + 1):
                hash_ = _hash_of(joined[at : at + size])
                pair = self._get(hash_)
                if pair and length:
                    pair &= self._get(_pair_of(previous, hash_))
                if pair:
                    sources |= pair & sources_after(at + size, size, hash_)
            known[at, length] = sources
            return sources

        return self._get(_hash_of(joined)) | sources_after(0, 0, 0)

    def _put(self, hash_: int, source: int) -> None:
        slot = self._slot_of(hash_)
        if self._hashes[slot] == 0:
            if self._used >= len(self._hashes) * _FILL_MAX:
                if len(self._hashes) == _SLOTS_MAX:
                    self.is_full = True
                    return
                self._grow()
                slot = self._slot_of(hash_)
            self._hashes[slot] = hash_
            self._used += 1
        self._sources[slot] |= source

    def _get(self, hash_: int) -> int:
        return self._sources[self._slot_of(hash_)]

    def _slot_of(self, hash_: int) -> int:
        """The slot of a hash, or the free one where it belongs."""
        hashes = self._hashes
        last = len(hashes) - 1
        slot = hash_ & last
        content = hashes[slot]
        # An odd step reaches each slot. In a table that is nearly full, the next slot would be the end of a long row.
        step = hash_ >> 16 | 1
        while content != 0 and content != hash_:
            slot = (slot + step) & last
            content = hashes[slot]
        return slot

    def _grow(self) -> None:
        """Four times as large: a table of 28,000 words takes 10 ms."""
        before = list(zip(self._hashes, self._sources, strict=True))
        slots = min(len(self._hashes) * 4, _SLOTS_MAX)
        self._hashes = array("I", bytes(4 * slots))
        self._sources = array("H", bytes(2 * slots))
        for hash_, sources in before:
            if hash_:
                slot = self._slot_of(hash_)
                self._hashes[slot] = hash_
                self._sources[slot] = sources


# Keyed in each process: nobody can make two values with one hash. Never 0.
def _hash_of(word: str) -> int:
    return hash(word) & _HASH or 1


def _pair_of(first: int, second: int) -> int:
    return hash((first, second)) & _HASH or 1


def _hash_of_number(number: str) -> int:
    return hash(("number", number)) & _HASH or 1
