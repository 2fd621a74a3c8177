"""Shortens a payload that is too large: first long texts, then the ends of long lists. Marks every cut."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from .plain import CUT_MARK, Json, dump
from .text import utf8_length
from .texts import quoted

# Texts are cut to no less than this many bytes before lists are cut.
_TEXT_BYTES_MIN = 256
# Room for "… [cut: 1234567 characters]" in each cut text.
_TEXT_MARK_BYTES = 48
# Room for the marker of a list or object that ends early.
_LIST_MARK_BYTES = 64
# Room for the key that marks the payload as shortened.
_SUMMARY_BYTES = 160


def shorten(payload: dict[str, Json], original_bytes: int, max_bytes: int, encode: Callable[[str], str] = quoted) -> str:
    """
    The JSON text of `payload` in at most `max_bytes`, with the key `tachoShortened`. Its `originalBytes` is the size
    before; `cutTexts` counts cut texts, and `cutLists` lists and objects that end early. `encode`: `quoted` with a cache.
    """
    room = max_bytes - _SUMMARY_BYTES
    sizes, levels = _measure(payload, encode)
    structure = original_bytes - sum(sizes)
    level = max(_TEXT_BYTES_MIN, _water_level(sizes, room - structure - levels * _LIST_MARK_BYTES))
    writer = _Writer(level, room, encode)
    writer.container(payload)
    text = "".join(writer.parts)
    summary: dict[str, Json] = {
        "originalBytes": original_bytes,
        "cutTexts": writer.cut_texts,
        "cutLists": writer.cut_lists,
    }
    return f'{text[:-1]}{"" if text == "{}" else ","}"tachoShortened":{dump(summary)}}}'


def _measure(payload: Json, encode: Callable[[str], str]) -> tuple[list[int], int]:
    """The JSON size of every text without quotes, and the depth of the payload."""
    sizes: list[int] = []
    levels = 0

    def visit(value: Json, level: int) -> None:
        nonlocal levels
        if isinstance(value, str):
            sizes.append(utf8_length(encode(value)) - 2)
        elif isinstance(value, (dict, list)):
            levels = max(levels, level)
            for item in value.values() if isinstance(value, dict) else value:
                visit(item, level + 1)

    visit(payload, 1)
    return sizes, levels


def _water_level(sizes: list[int], room: int) -> float:
    """The largest limit at which all texts, cut to it, fit together."""
    left = room
    for index, size in enumerate(sorted(sizes)):
        # Cut a text only if it is longer than its share.
        share = left // (len(sizes) - index)
        if size > share:
            return share - _TEXT_MARK_BYTES
        left -= size
    return math.inf


class _Writer:
    def __init__(self, level: float, room: int, encode: Callable[[str], str]) -> None:
        self._level = level
        self._encode = encode
        self._room = room
        self.parts: list[str] = []
        self.cut_texts = 0
        self.cut_lists = 0

    def _put(self, text: str, size: int | None = None) -> None:
        self.parts.append(text)
        self._room -= utf8_length(text) if size is None else size

    def _value(self, source: Json, before: str) -> bool:
        """Writes a value if all of it fits. Writes the beginning of a list or object that does not fit."""
        if isinstance(source, (dict, list)):
            if self._room < utf8_length(before) + _LIST_MARK_BYTES:
                return False
            self._put(before)
            self.container(source)
            return True
        is_cut = False
        if isinstance(source, str):
            # A character takes a byte at least.
            text = self._encode(source) if len(source) <= self._level else ""
            size = utf8_length(text)
            is_cut = text == "" or size - 2 > self._level
            if is_cut:
                text = _cut(source, int(self._level))
                size = utf8_length(text)
        else:
            text = dump(source)
            size = utf8_length(text)
        size += utf8_length(before)
        if self._room < size:
            return False
        self.cut_texts += is_cut
        self._put(before + text, size)
        return True

    def container(self, source: dict[str, Json] | list[Json]) -> None:
        is_list = isinstance(source, list)
        entries = list(source.items()) if isinstance(source, dict) else [("", item) for item in source]
        self._put("[" if is_list else "{")
        # Every open level reserves room for its end.
        self._room -= _LIST_MARK_BYTES
        for index, (key, item) in enumerate(entries):
            comma = "," if index > 0 else ""
            if self._value(item, comma if is_list else f"{comma}{dump(key)}:"):
                continue
            self.cut_lists += 1
            self._room += _LIST_MARK_BYTES
            left = f'"[cut: {len(entries) - index} more]"'
            self._put(f"{comma}{left}]" if is_list else f"{comma}{left}:true}}")
            return
        self._room += _LIST_MARK_BYTES
        self._put("]" if is_list else "}")


_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,([\w+/-]+={0,2})", re.ASCII)


def _cut(text: str, max_bytes: int) -> str:
    """
    The text as JSON of at most `max_bytes` plus a mark. Keeps the beginning and the end, where a log has its
    error. Leaves out a file, because half of it is useless.
    """
    file = _DATA_URL.fullmatch(text)
    if file:
        return dump(f"[cut: {file[1]}, {len(file[2].rstrip('=')) * 3 // 4} bytes]")
    tail_bytes = max_bytes // 3
    end = _chars_within(text[:max_bytes], max_bytes - tail_bytes)
    tail = _chars_within(text[end:][-max_bytes:], tail_bytes, is_tail=True)
    removed = text[end : len(text) - tail]
    if not removed:
        return quoted(text)
    # Searching for the mark's first character takes much longer.
    before = _CUT_BEFORE.search(removed) if " [cut: " in removed else None
    missing = len(removed) + (int(before[1]) - len(before[0]) if before else 0)
    return quoted(f"{text[:end]}… [cut: {missing} characters]{text[len(text) - tail :]}")


def without_rests(value: Json) -> Json:
    """
    Removes the text after each cut, in a payload that was cut before it was masked. The mask does not recognise the rest of a
    credential, and if most of a text is masked, nothing else removes this rest.
    """
    if isinstance(value, str):
        return _REST.sub(lambda cut: f"{CUT_MARK} [cut: {int(cut[1]) + len(cut[2])} characters]", value)
    if isinstance(value, list):
        return [without_rests(item) for item in value]
    return {key: without_rests(item) for key, item in value.items()} if isinstance(value, dict) else value


# The limit is longer than a private key, or any token in a header. The mark before the space may be masked, so it is optional.
_REST = re.compile(rf"[{CUT_MARK}…]? \[cut: ([0-9]{{1,9}}) characters\]([\s\S]{{0,16384}})")
# A very long text was cut before it was masked.
_CUT_BEFORE = re.compile(rf"[{CUT_MARK}…] \[cut: ([0-9]{{1,9}}) characters\]")
_STEPS = [1 << shift for shift in range(18, -1, -1)]


def _chars_within(text: str, max_bytes: int, is_tail: bool = False) -> int:
    """The most characters of its beginning, or of its end, that fit. Each step looks only at what it would add."""
    count, room = 0, max_bytes

    def bytes_of(more: int) -> int:
        added = text[len(text) - count - more : len(text) - count] if is_tail else text[count : count + more]
        return utf8_length(quoted(added)) - 2

    # Most texts have the same mix of characters throughout, so a little less than their share fits at once.
    sample = min(len(text), max_bytes)
    guess = sample * max_bytes // max(1, bytes_of(sample))
    for step in [min(sample, guess - guess // 32), *_STEPS]:
        # A character takes a byte at least.
        if step > room or count + step > len(text):
            continue
        size = bytes_of(step)
        if size <= room:
            count += step
            room -= size
    return count
