"""Makes plain JSON from any value a host passes."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeGuard, TypeVar, Union

from ..exact import are_doubles, class_name, exact_number, exact_text, is_flat

Json = Union[None, bool, int, float, str, "list[Json]", "dict[str, Json]"]
T = TypeVar("T")

_COPIED_VALUES = 131_072
# Characters of a payload that are read: eight times what the interface accepts.
_READ_CHARS = 2_097_152
# Characters of one text that are masked: a quarter more than the interface accepts. A file in base64 is recorded whole,
# or as its type and size.
_MASKED_CHARS = 327_680
# Characters of all texts that are masked completely. Of later texts, only the beginnings are. The newest messages come last.
_MASKED_FULLY = 524_288
# Characters of names, short texts and beginnings that stay beyond these limits: in all, and of each.
_SPARE_CHARS = 262_144
_SHORT_CHARS = 200
# Most fields that can fit in a payload: each takes six bytes, such as `"a":1,`.
FIELDS_MAX = 43_690
# Longer words are cut.
_WORD_CHARS = 256
# A longer int is slow to write, and JSON readers cannot represent it.
_INT_BITS = 4_096
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ABSENT = object()
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
# Made once: `json` makes one for each call. None: this interpreter has no encoder in C.
_make_parts: Any = getattr(json.encoder, "c_make_encoder", None)
_parts_of: Any = _make_parts and _make_parts(None, None, json.encoder.encode_basestring, None, ":", ",", False, False, True)


# A shorter text is copied, encoded and searched with the payload.
_LONG_CHARS = 256


class TextMark(str):
    """In place of a long text, which is encoded on its own (texts.py). No text of a host is equal to it."""

    __slots__ = ("text",)
    text: str


# Replaces the ellipsis of a cut until the payload is shortened. With an ellipsis, Python would store each character of the text
# in two bytes, and Hyperscan could not read it.
CUT_MARK = "\x7f"
# Stands for a long text. Random in each process, so that no text of a host is equal to it.
MARK = f"[text {secrets.token_hex(8)}]"


@dataclasses.dataclass(slots=True)
class Plain:
    """A copy of a value as a JSON object. Its texts may hold half surrogate pairs, which `well_formed_json` replaces."""

    value: dict[str, Json]
    is_cut: bool
    """Only the beginning of the value was read."""
    bytes: int
    """About the size of its JSON text."""
    texts: list[str] = dataclasses.field(default_factory=list)
    """The long texts, in order. The value has a mark in place of each."""


def to_plain(value: object, max_levels: int, has_marks: bool = False) -> Plain:
    """Never raises. Limits depth, values and characters, and marks each lost value. Copies no text: texts never change."""
    copy = _Copy(max_levels, has_marks)
    plain = copy.value(value)
    if plain is _ABSENT:
        return Plain({}, False, 2)
    is_cut = copy.values >= _COPIED_VALUES or copy.chars - copy.file_chars > _MASKED_CHARS or copy.chars > _READ_CHARS
    fields: dict[str, Json] = plain if isinstance(plain, dict) else {"value": plain}  # type: ignore[dict-item]
    return Plain(fields, is_cut, copy.bytes + 4 * copy.values, copy.texts)


def cut_at_words(text: str, head: int, tail: int = 0, mark: str = "…") -> str:
    """Cuts between words, because the mask, which comes later, does not recognise half a credential."""
    if len(text) <= head + tail:
        return text
    sure, last = max(0, head - _WORD_CHARS), len(text) - tail
    begin = text[:sure] + re.sub(r"\S+\Z", "", text[sure:head])
    end = re.sub(r"\A\S+", "", text[last : last + _WORD_CHARS]) + text[last + _WORD_CHARS :]
    return f"{begin}{mark} [cut: {len(text) - len(begin) - len(end)} characters]{end}"


def well_formed_json(plain: dict[str, Json]) -> tuple[dict[str, Json], str]:
    """A copy and its JSON text, without half surrogate pairs."""
    text = dump(plain)
    if text.isascii():
        return plain, text
    try:
        text.encode()
    except UnicodeEncodeError:
        plain = {_HALF_PAIR.sub("\ufffd", key): whole(item) for key, item in plain.items()}
        text = dump(plain)
    return plain, text


def whole(value: Json) -> Json:
    """A copy without half surrogate pairs."""
    if isinstance(value, str):
        return _HALF_PAIR.sub("\ufffd", value)
    if isinstance(value, list):
        if is_flat(value):
            return [_HALF_PAIR.sub("\ufffd", item) if type(item) is str else item for item in value]
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {_HALF_PAIR.sub("\ufffd", key): whole(item) for key, item in value.items()}
    return value


def dump(value: Json) -> str:
    """The JSON text without spaces. Texts must be well-formed."""
    return _encode(value) if type(value) is str or _parts_of is None else "".join(_parts_of(value, 0))


def error_text(error: object) -> str:
    """Any error as one text."""
    name = class_name(error) if is_error(error) else ""
    return read_of_error(lambda: ": ".join(filter(None, (name, str.__str__(str(error))))), "unreadable error")


def is_error(value: object) -> TypeGuard[BaseException]:
    """Calls no code of the host, unlike isinstance."""
    return issubclass(type(value), BaseException)


def binary_mark(source: bytes | bytearray | memoryview) -> str:
    # The items of a memoryview may have several bytes.
    return f"[binary: {source.nbytes if isinstance(source, memoryview) else len(source)} bytes]"


def read_safely(read: Callable[[], T], otherwise: T) -> T:
    """Returns the result of `read`, or `otherwise` if it raises: a property of the host can."""
    try:
        return read()
    except Exception:
        return otherwise


def read_of_error(read: Callable[[], T], otherwise: T) -> T:
    """`read_safely` for an exception of a tool or a run: no exception, of any class, may replace it."""
    try:
        return read()
    except BaseException:
        return otherwise


class _Copy:
    __slots__ = ("_ancestors", "_has_marks", "_max_levels", "_spare_chars", "bytes", "chars", "file_chars", "texts", "values")

    def __init__(self, max_levels: int, has_marks: bool) -> None:
        self._max_levels = max_levels
        self._has_marks = has_marks
        self.texts: list[str] = []
        self._ancestors: set[int] = set()
        self.values = 0
        self.chars = 0
        self.file_chars = 0
        self._spare_chars = _SPARE_CHARS
        self.bytes = 0

    def value(self, source: object) -> object:
        self.values += 1
        kind = type(source)
        if kind is str:
            return self._exact_text(source)  # type: ignore[arg-type]
        if source is None or kind is bool:
            return source
        # Most values end here. The checks below also accept classes of the host, and are slower.
        if kind is dict or kind is list:
            return self._container(source)
        if kind is int:
            return self._int(source)  # type: ignore[arg-type]
        text = exact_text(source)
        if text is not None:
            return self._text(text)
        number = exact_number(source)
        if number is not None:
            return self._int(number) if type(number) is int else number if math.isfinite(number) else _mark_of(number)
        return self._container(source)

    def _exact_text(self, text: str) -> object:
        size = len(text)
        chars = self.chars + size
        # Most texts, of which nothing is cut.
        if chars <= _MASKED_CHARS and text.isascii() and not (size > _LONG_CHARS and text.startswith("data:")):
            self.chars = chars
            self.bytes += size
        else:
            text = self._text(text)
        return self._marked(text) if self._has_marks and len(text) >= _LONG_CHARS else text

    def _text(self, raw_text: str) -> str:
        text = raw_text if type(raw_text) is str else str.__str__(raw_text)  # The `str` of a host's object may be a subclass.
        size = len(text)
        is_file = size > _LONG_CHARS and text.startswith("data:")
        if is_file:
            self.file_chars += size
        self.chars += size
        if self.chars > _MASKED_CHARS:
            room = _READ_CHARS - self.chars + size
            if not is_file:
                room = min(room, _MASKED_CHARS)
                if self.chars - self.file_chars - size > _MASKED_FULLY or room < _SHORT_CHARS:
                    room = min(size, _SHORT_CHARS, self._spare_chars)
                    self._spare_chars -= room
            if size > room:
                # Keep both ends. Shortening cuts more of the middle, so the ends of this cut are far from what is sent.
                tail = room // 3 if room > _MASKED_CHARS * 0.75 else 0
                text = cut_at_words(text, max(0, room - tail), tail, CUT_MARK if self._has_marks else "…")
        self.bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        return text

    def _marked(self, text: str) -> TextMark:
        self.texts.append(text)
        mark = TextMark(MARK)
        mark.text = text
        return mark

    def _int(self, value: int) -> Json:
        return value if value.bit_length() <= _INT_BITS else f"[integer: {value.bit_length()} bits]"

    def _container(self, source: object) -> object:
        ancestors, place = self._ancestors, id(source)
        if place in ancestors:
            return "[circular]"
        if len(ancestors) >= self._max_levels:
            return "[cut: nested too deeply]"
        ancestors.add(place)
        try:
            # Exact types first, because isinstance is slower.
            if type(source) is dict:
                return self._fields(len(source), source.items())
            return self._list(len(source), source) if type(source) is list else self._unguarded(source)
        except Exception:
            return "[unreadable]"
        finally:
            ancestors.discard(place)

    def _unguarded(self, source: object) -> object:
        if isinstance(source, Mapping):
            return self._fields(len(source), source.items())
        if isinstance(source, (tuple, list, set, frozenset)):
            return self._list(len(source), source)
        if isinstance(source, enum.Enum):
            return self.value(source.value)
        if isinstance(source, BaseException):
            return {"name": class_name(source), "message": self._text(str(source))}
        if isinstance(source, (bytes, bytearray, memoryview)):
            return binary_mark(source)
        if isinstance(source, (datetime.datetime, datetime.date, datetime.time)):
            return self._text(source.isoformat())
        if isinstance(source, type) or callable(source):
            return _ABSENT
        return self._object(source)

    def _object(self, source: object) -> object:
        dumped = getattr(source, "model_dump", None)
        if callable(dumped):
            return self.value(dumped())
        if dataclasses.is_dataclass(source):
            names = [field.name for field in dataclasses.fields(source)]
            return self._fields(len(names), ((name, getattr(source, name)) for name in names))
        kind = type(source)
        if kind.__str__ is object.__str__:
            fields = getattr(source, "__dict__", None)
            public = [(name, value) for name, value in fields.items() if not name.startswith("_")] if fields else []
            # The text of a class without public fields, such as a DataFrame, may show its content.
            if public or (kind.__repr__ is object.__repr__ and isinstance(fields, dict)):
                return self._fields(len(public), public)
            if kind.__repr__ is object.__repr__:
                return _named(source)
        return self._text(str(source))

    def _list(self, size: int, source: Iterable[object]) -> object:
        copies: list[object] = []
        # The last item is checked separately: in a list that was cut earlier, it is a text.
        numbers = source[: max(0, min(size, _COPIED_VALUES - self.values) - 1)] if type(source) is list else []
        if numbers and are_doubles(numbers):
            self.values += len(numbers)
            self.bytes += len(repr(numbers))
            copies = numbers
        for item in islice(source, len(copies), None):
            if self.values >= _COPIED_VALUES:
                copies.append(f"[cut: {size - len(copies)} more]")
                break
            copied = self.value(item)
            copies.append(None if copied is _ABSENT else copied)
        return copies

    def _fields(self, size: int, source: Iterable[tuple[object, object]]) -> object:
        copies: dict[str, object] = {}
        for index, (key, item) in enumerate(source):
            # A field counts as three values, so that at most FIELDS_MAX are read.
            self.values += 2
            if self.values >= _COPIED_VALUES:
                copies[f"[cut: {size - index} more]"] = True
                break
            if type(key) is str:
                chars = self.chars + len(key)
                if chars <= _MASKED_CHARS and len(key) <= _LONG_CHARS and key.isascii():
                    self.chars = chars
                    self.bytes += len(key)
                    name = key
                else:
                    name = self._text(key)
            else:
                text = exact_text(key)
                name = self._text(str(key) if text is None else text)
            if type(item) is str:
                self.values += 1
                copies[name] = self._exact_text(item)
                continue
            copied = self.value(item)
            if copied is not _ABSENT:
                copies[name] = copied
        return copies


def _mark_of(number: float) -> str:
    return "[NaN]" if math.isnan(number) else "[Infinity]" if number > 0 else "[-Infinity]"


def _named(source: object) -> str:
    return f"[object: {class_name(source)}]"
