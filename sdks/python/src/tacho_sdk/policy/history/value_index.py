"""
An index of the values in texts, by source: a hash table of words, pairs of neighbouring words, and numbers. A value of several
words counts as found if each pair of neighbours occurs, even if no text contains the whole value. The index takes at most 725
kB. Once it is full, values of later texts are not found, and `is_full` is True. The same as value-index.ts of the TypeScript
engine.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

from .words import TEXT_CHARS, numbers_of, parts_of_words, readings, spellings, text_of_number, words_of

SOURCES_MAX = 16
"""Each source is a bit."""

_SETS_MAX = 255
_SLOTS_MIN = 1 << 11
# Hashes and slots that are added or moved in one part.
_PART_HASHES = 1_024
_PART_SLOTS = 8_192
_SLOTS_MAX = 1 << 17
_FILL_MAX = 0.85
"""Maximum share of used slots."""
_ALL = (1 << SOURCES_MAX) - 1
_HASH = (1 << 32) - 1
# Numbers that people write in groups: of accounts, cards and phones. At least half of the characters are digits.
_GROUPED_CHARS_MIN, _GROUPED_CHARS_MAX = 7, 34
_GROUPED_DIGITS_MIN = 5
_DIGITS = b"0123456789"
_GROUP_MAX = 7
_AT_START = {"": _ALL}
# Sizes by their bits in one byte.
_SIZES = [tuple(size for size in range(1, _GROUP_MAX + 1) if sizes >> size & 1) for sizes in range(256)]
# Longest value that is looked up: a longer one is no name, number or address.
_VALUE_WORDS_MAX = 64


class ValueIndex:
    def __init__(self, slots: int = _SLOTS_MIN) -> None:
        # Hashes are keyed in each process: an attacker cannot construct two values with one hash.
        self._hashes = array("I", bytes(4 * slots))
        self._sources = bytearray(slots)
        # Four bits for each slot, indexed by the low bits of a hash. A bit is 0 if no hash in the table has these low bits.
        self._bits = bytearray(slots // 2)
        self._last_byte = slots // 2 - 1
        self._used = 0
        # All sets of sources that occur. `_sources` has the place of the set of each slot.
        self._sets = [0]
        self._place_of_set = {0: 0}
        # Sizes of the short words with a digit, as bits, by their first two characters.
        self._starts = bytearray(64 * 64)
        self.is_full = False
        """Whether a text, or a part of one, is missing."""

    def add(self, values: Iterable[str | float], source: int) -> Iterator[None]:
        """Adds values in parts of a few milliseconds, between which a host can do other work. `source`: one bit."""
        hashes: set[int] = set()
        for value in values:
            if len(hashes) > _PART_HASHES:
                yield from self._put_all(hashes, source)
                yield
                hashes = set()
            if not isinstance(value, str):
                hashes.add(hash((text_of_number(value),)))
                continue
            if len(value) > TEXT_CHARS:
                self.is_full = True
            for reading in readings(value[:TEXT_CHARS]):
                last_words: list[str] = []
                for words in parts_of_words(reading):
                    if last_words:
                        yield from self._put_all(hashes, source)
                        yield
                        hashes = set()
                    for word in {word for word in words if len(word) <= _GROUP_MAX and not word.isalpha()}:
                        self._add_start(word)
                    hashes.update(map(hash, words))
                    hashes.update(map(hash, pairwise(last_words + words)))
                    last_words = words[-1:] or last_words
                if not reading.isalpha():
                    hashes.update(hash((number,)) for number in numbers_of(reading))
        yield from self._put_all(hashes, source)

    def find(self, value: str | float) -> int:
        """The sources in which it occurs, as bits. 0 for a text without words."""
        if not isinstance(value, str):
            return self._get(hash((text_of_number(value),)))
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
        if len(words) == 1:
            joined = words[0]
            sources = self._get(hash(joined))
        else:
            sources = _ALL
            for pair in pairwise(words):
                sources &= self._get(hash(pair))
                if sources == 0:
                    break
            joined = "".join(words)
        length = len(joined)
        if length > _GROUPED_CHARS_MAX and not joined.isdecimal():
            # Most texts end here: they are no number, and cannot be grouped.
            return sources
        coded = joined.encode()
        digits = len(coded) - len(coded.translate(None, _DIGITS))
        if digits == length:
            numbers = numbers_of(text)
            if len(numbers) == 1:
                sources |= self._get(hash((numbers[0],)))
        if digits >= _GROUPED_DIGITS_MIN and digits * 2 >= length and _GROUPED_CHARS_MIN <= length <= _GROUPED_CHARS_MAX:
            sources |= self._find_grouped(joined) | (self._get(hash(joined)) if len(words) > 1 else 0)
        return sources

    def _find_grouped(self, joined: str) -> int:
        """The same characters in other groups: `GB33BUKB2020` is `GB33 BUKB 2020`."""
        bits, last_byte, length = self._bits, self._last_byte, len(joined)
        # The sources that have all text up to a place, by place and then by the last word before it.
        reached: dict[int, dict[str, int]] = {}
        before, at = _AT_START, 0
        while at < length:
            for size in self._sizes_at(joined, at):
                end = at + size
                word = joined[at:end]
                hash_ = hash(word) & _HASH or 1
                # Inlines `_get` to save the call: most words are not in the index.
                if end > length or not bits[hash_ >> 3 & last_byte] >> (hash_ & 7) & 1:
                    continue
                of_word = self._get(hash_)
                sources = 0
                for previous, earlier in before.items():
                    both = earlier & of_word
                    sources |= both & self._get(hash((previous, word))) if both and at else both
                if sources:
                    words = reached.setdefault(end, {})
                    words[word] = words.get(word, 0) | sources
            if not reached:
                return 0
            at = min(reached)
            before = reached.pop(at)
        whole = 0
        for sources in before.values():
            whole |= sources
        return whole

    def _sizes_at(self, joined: str, at: int) -> tuple[int, ...]:
        """Sizes that a word at this place can have: any within a run of letters, and the stored ones of words with a digit."""
        code = ord(joined[at])
        letters = 0
        if not 48 <= code <= 57:
            while letters < _GROUP_MAX and joined[at + letters : at + letters + 1].isalpha():
                letters += 1
        following = ord(joined[at + 1]) if at + 1 < len(joined) else 0
        return _SIZES[self._starts[(code & 63) << 6 | following & 63] | (2 << letters) - 2]

    def _add_start(self, word: str) -> None:
        """Adds the start of a short word with a digit."""
        row = (ord(word[0]) & 63) << 6
        if len(word) > 1:
            self._starts[row | ord(word[1]) & 63] |= 1 << len(word)
        elif not self._starts[row] & 2:
            for at in range(row, row + 64):
                self._starts[at] |= 2

    def _put_all(self, hashes: Collection[int], source: int) -> Iterator[None]:
        """Adds hashes in one loop without calls, because outputs have thousands of words."""
        while self._used + len(hashes) > len(self._hashes) * _FILL_MAX and len(self._hashes) < _SLOTS_MAX:
            yield from self._grow()
        table, sources, bits, last, last_byte = self._hashes, self._sources, self._bits, len(self._hashes) - 1, self._last_byte
        all_bits = _HASH
        room = before_room = math.ceil(len(table) * _FILL_MAX) - self._used
        places = _PlacesWith(self, source)
        for whole_hash in hashes:
            hash_ = whole_hash & all_bits or 1
            slot = hash_ & last
            content = table[slot]
            if content != 0 and content != hash_:
                if room == 0 and not bits[hash_ >> 3 & last_byte] >> (hash_ & 7) & 1:
                    self.is_full = True
                    continue
                # Inlines `_slot_of`.
                step = hash_ >> 16 | 1
                while content != 0 and content != hash_:
                    slot = (slot + step) & last
                    content = table[slot]
            if content != 0:
                before = sources[slot]
                after = places[before]
                if after != before:
                    sources[slot] = after
            elif room == 0:
                self.is_full = True
            else:
                room -= 1
                table[slot] = hash_
                sources[slot] = places[0]
                bits[hash_ >> 3 & last_byte] |= 1 << (hash_ & 7)
        self._used += before_room - room

    def place_with(self, place: int, source: int) -> int:
        """Place of the set of sources that also has `source`. The same place if there are too many sets."""
        sources = self._sets[place] | source
        known = self._place_of_set.get(sources)
        if known is not None:
            return known
        # Labels need far fewer sets, unless an attacker constructs them.
        if len(self._sets) > _SETS_MAX:
            self.is_full = True
            return place
        self._place_of_set[sources] = len(self._sets)
        self._sets.append(sources)
        return len(self._sets) - 1

    def _get(self, whole_hash: int) -> int:
        hash_ = whole_hash & _HASH or 1
        # Most values are not in the index, and a walk over slots takes ten times as long.
        if not self._bits[hash_ >> 3 & self._last_byte] >> (hash_ & 7) & 1:
            return 0
        return self._sets[self._sources[self._slot_of(hash_)]]

    def _slot_of(self, hash_: int) -> int:
        """The slot of a hash, or the free slot for it."""
        hashes = self._hashes
        last = len(hashes) - 1
        slot = hash_ & last
        content = hashes[slot]
        # An odd step reaches each slot. A step of one would need many steps in a table that is nearly full.
        step = hash_ >> 16 | 1
        while content != 0 and content != hash_:
            slot = (slot + step) & last
            content = hashes[slot]
        return slot

    def _grow(self) -> Iterator[None]:
        """Moves all values into an index with four times as many slots."""
        hashes, sources = self._hashes, self._sources
        grown = ValueIndex(min(len(hashes) * 4, _SLOTS_MAX))
        table, bits, last, last_byte = grown._hashes, grown._bits, len(grown._hashes) - 1, grown._last_byte
        for at in range(0, len(hashes), _PART_SLOTS):
            yield
            for hash_, place in zip(hashes[at : at + _PART_SLOTS], sources[at : at + _PART_SLOTS], strict=True):
                if hash_:
                    slot = hash_ & last
                    # Inlines `_slot_of` for hashes that are not in the table yet.
                    step = hash_ >> 16 | 1
                    while table[slot]:
                        slot = (slot + step) & last
                    table[slot] = hash_
                    grown._sources[slot] = place
                    bits[hash_ >> 3 & last_byte] |= 1 << (hash_ & 7)
        self._hashes, self._sources, self._bits, self._last_byte = table, grown._sources, bits, last_byte


class _PlacesWith(dict[int, int]):
    """A cache of `place_with` for one source."""

    def __init__(self, index: ValueIndex, source: int) -> None:
        self._index, self._source = index, source

    def __missing__(self, place: int) -> int:
        self[place] = self._index.place_with(place, self._source)
        return self[place]
