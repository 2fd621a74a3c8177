"""
Which values occur in texts, by source: a hash table of words, pairs of neighbouring words, and numbers. A value of several
words occurs if each pair of its neighbours does, so it can be found although no text has it whole. At most 725 kB; values of
texts that came after it was full are not found, and `is_full` says so. The same as value-index.ts of the TypeScript engine.
"""

from __future__ import annotations

from array import array

from .words import TEXT_CHARS, numbers_of, readings, spellings, text_of_number, words_of

SOURCES_MAX = 16
"""Sources are bits."""

_SETS_MAX = 255
_SLOTS_MIN = 1 << 11
_SLOTS_MAX = 1 << 17
_FILL_MAX = 0.85
"""Of all slots."""
_ALL = (1 << SOURCES_MAX) - 1
_HASH = (1 << 32) - 1
# Numbers that people write in groups: of accounts, cards and phones. At least half of the characters are digits.
_GROUPED_CHARS_MIN, _GROUPED_CHARS_MAX = 7, 34
_GROUPED_DIGITS_MIN = 5
_DIGITS = b"0123456789"
_GROUP_MAX = 7
_AT_START = {0: _ALL}
# By bits.
_SIZES = [tuple(size for size in range(1, _GROUP_MAX + 1) if sizes >> size & 1) for sizes in range(256)]
# Longest value that is looked up: a longer one is no name, number or address.
_VALUE_WORDS_MAX = 64


class ValueIndex:
    def __init__(self) -> None:
        self._allocate(_SLOTS_MIN)
        self._used = 0
        # Each set of sources that a value has; slots have its place.
        self._sets = [0]
        self._place_of_set = {0: 0}
        # Sizes of the short words with a digit, as bits, by their first two characters.
        self._starts = bytearray(64 * 64)
        self.is_full = False
        """Whether a text, or a part of one, is missing."""

    def add(self, text: str, source: int) -> None:
        """`source`: one bit."""
        if len(text) > TEXT_CHARS:
            self.is_full = True
        for reading in readings(text[:TEXT_CHARS]):
            words = words_of(reading)
            hashes = [_hash_of(word) for word in words]
            known_hashes = set(hashes)
            for word in set(words):
                if len(word) <= _GROUP_MAX and not word.isalpha():
                    self._add_start(word)
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
        if "%" not in value and "&" not in value and "\\" not in value:
            return self._find_text(value[:TEXT_CHARS])
        sources = 0
        for reading in spellings(value[:TEXT_CHARS]):
            sources |= self._find_text(reading)
        return sources

    def _find_text(self, text: str) -> int:
        words = words_of(text)
        if len(words) > _VALUE_WORDS_MAX or not words:
            return 0
        previous = hash(words[0]) & _HASH or 1
        if len(words) == 1:
            sources = self._get(previous)
            joined = words[0]
        else:
            sources = _ALL
            for word in words[1:]:
                hash_ = hash(word) & _HASH or 1
                sources &= self._get(hash((previous, hash_)) & _HASH or 1)
                if sources == 0:
                    break
                previous = hash_
            joined = "".join(words)
        length = len(joined)
        if length > _GROUPED_CHARS_MAX and not joined.isdecimal():
            # Most texts: no number, and not to be grouped.
            return sources
        coded = joined.encode()
        digits = len(coded) - len(coded.translate(None, _DIGITS))
        if digits == length:
            numbers = numbers_of(text)
            if len(numbers) == 1:
                sources |= self._get(_hash_of_number(numbers[0]))
        if digits >= _GROUPED_DIGITS_MIN and digits * 2 >= length and _GROUPED_CHARS_MIN <= length <= _GROUPED_CHARS_MAX:
            sources |= self._find_grouped(joined) | (self._get(_hash_of(joined)) if len(words) > 1 else 0)
        return sources

    def _find_grouped(self, joined: str) -> int:
        """The same characters in other groups: `GB33BUKB2020` is `GB33 BUKB 2020`."""
        bits, last_byte, length = self._bits, self._last_byte, len(joined)
        # By place: the sources that have everything before it, by the hash of the last word.
        reached: dict[int, dict[int, int]] = {}
        before, at = _AT_START, 0
        while at < length:
            for size in self._sizes_at(joined, at):
                end = at + size
                hash_ = hash(joined[at:end]) & _HASH or 1
                # As `_get`, without the call: most words are not there.
                if end > length or not bits[hash_ >> 3 & last_byte] >> (hash_ & 7) & 1:
                    continue
                word = self._get(hash_)
                sources = 0
                for previous, earlier in before.items():
                    pair = earlier & word
                    sources |= pair & self._get(_pair_of(previous, hash_)) if pair and at else pair
                if sources:
                    words = reached.setdefault(end, {})
                    words[hash_] = words.get(hash_, 0) | sources
            if not reached:
                return 0
            at = min(reached)
            before = reached.pop(at)
        whole = 0
        for sources in before.values():
            whole |= sources
        return whole

    def _sizes_at(self, joined: str, at: int) -> tuple[int, ...]:
        """Sizes of the words that can begin there: all of letters, and those of words with a digit."""
        code = ord(joined[at])
        letters = 0
        if not 48 <= code <= 57:
            while letters < _GROUP_MAX and joined[at + letters : at + letters + 1].isalpha():
                letters += 1
        following = ord(joined[at + 1]) if at + 1 < len(joined) else 0
        return _SIZES[self._starts[(code & 63) << 6 | following & 63] | (2 << letters) - 2]

    def _add_start(self, word: str) -> None:
        """Of a short word with a digit."""
        row = (ord(word[0]) & 63) << 6
        if len(word) > 1:
            self._starts[row | ord(word[1]) & 63] |= 1 << len(word)
        elif not self._starts[row] & 2:
            for at in range(row, row + 64):
                self._starts[at] |= 2

    def _put(self, hash_: int, source: int) -> None:
        slot = self._slot_of(hash_)
        if self._hashes[slot] == 0:
            if self._used >= len(self._hashes) * _FILL_MAX:
                if len(self._hashes) == _SLOTS_MAX:
                    self.is_full = True
                    return
                self._grow()
                slot = self._slot_of(hash_)
            self._insert(slot, hash_)
            self._used += 1
        sources = self._sets[self._sources[slot]] | source
        place = self._place_of_set.get(sources)
        if place is None:
            # Far more than labels make, unless somebody makes them for that.
            if len(self._sets) > _SETS_MAX:
                self.is_full = True
                return
            place = self._place_of_set[sources] = len(self._sets)
            self._sets.append(sources)
        self._sources[slot] = place

    def _get(self, hash_: int) -> int:
        # Most values are not there, and a walk over slots takes ten times as long.
        if not self._bits[hash_ >> 3 & self._last_byte] >> (hash_ & 7) & 1:
            return 0
        return self._sets[self._sources[self._slot_of(hash_)]]

    def _slot_of(self, hash_: int) -> int:
        """The slot of a hash, or the free slot for it."""
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

    def _insert(self, slot: int, hash_: int) -> None:
        self._hashes[slot] = hash_
        self._bits[hash_ >> 3 & self._last_byte] |= 1 << (hash_ & 7)

    def _grow(self) -> None:
        """Four times as large: a table of 28,000 words takes 10 ms."""
        before = list(zip(self._hashes, self._sources, strict=True))
        self._allocate(min(len(self._hashes) * 4, _SLOTS_MAX))
        for hash_, sources in before:
            if hash_:
                slot = self._slot_of(hash_)
                self._insert(slot, hash_)
                self._sources[slot] = sources

    def _allocate(self, slots: int) -> None:
        self._hashes = array("I", bytes(4 * slots))
        self._sources = bytearray(slots)
        # Four bits for each slot, by the low bits of a hash: 0 if no hash has them.
        self._bits = bytearray(slots // 2)
        self._last_byte = slots // 2 - 1


# Keyed in each process: nobody can make two values with one hash. Never 0.
def _hash_of(word: str) -> int:
    return hash(word) & _HASH or 1


def _pair_of(first: int, second: int) -> int:
    return hash((first, second)) & _HASH or 1


def _hash_of_number(number: str) -> int:
    return hash(("number", number)) & _HASH or 1
