"""
Masks credentials and personal data before an event leaves the process.

Every pattern runs in linear time: it begins with fixed characters or a bounded class, and nothing that can fail follows an
unbounded one. The mask first searches the whole JSON text for anything it could mask. Most payloads contain nothing of the
kind and stay unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .checksum import CARD_NUMBER, IBAN, NumberForm, mask_numbers
from .credential_words import mask_credentials, may_hold_credentials
from .credentials import (
    CREDENTIAL_MARK,
    HEADER_NAME,
    NameKind,
    is_count,
    kind_of_name,
    mask_assignments,
)
from .plain import Json, dump, read_safely

_EMAIL = re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}@(?:(?:[^\W_]|-){1,63}\.){1,8}[^\W\d_]{2,24}")
_PHONE = re.compile(
    "(?<![\\w.])(?:(?:\\+|00)[1-9](?:[ \u00a0\u202f()./-]{0,2}\\d){6,14}|\\(?\\d{3}\\)?[ .-]\\d{3}[ .-]\\d{4})(?!\\d)",
    re.ASCII,
)
# Fields of an object that name its value, such as a header in a list, and fields that contain this value.
_NAMING = re.compile(r"(?:name|key|header|field|variable)\Z", re.IGNORECASE)
_NAMED_VALUE = re.compile(r"(?:val(?:ue)?s?|content|data)\Z", re.IGNORECASE)
# Maximum levels of nesting. JSON in a text counts as several levels: each encoding doubles the backslashes, so deep ones
# contain little.
_LEVELS_MAX = 400
_ENCODED_LEVELS = 50
# JSON text with letters in this form must be decoded before it is searched.
_ESCAPED = "\\u00"
_SEPARATORS = re.compile(r"[-_. ]")
# Maximum number of cached labels.
_LABELS = 1_000
_LABEL_CHARS = 255
# Short texts, such as names of members, in which nothing was masked. They repeat with each payload that has something to mask.
_SHORT_TEXTS = 2_000
_SHORT_CHARS = 64
# White space of JavaScript.
_SPACE_CHARS = "\t\n\v\f\r \u00a0\u1680"
_SPACE_CHARS += "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


@dataclass(frozen=True)
class Masking:
    """Rules for masking, applied before an event exists. Default: credentials."""

    credentials: bool = True
    """Values under names such as `password` or `api_key`, and well-known forms of secrets in texts."""
    email: bool = False
    """E-mail addresses."""
    card_number: bool = False
    """Payment card numbers with a valid checksum (Luhn)."""
    phone: bool = False
    """Phone numbers: international ones, and ten digits in groups."""
    iban: bool = False
    """International bank account numbers with a valid checksum."""
    keys: Sequence[str] = ()
    """More names whose values are masked. Case, `-`, `_`, `.` and spaces make no difference."""
    patterns: Sequence[re.Pattern[str]] = field(default=())
    """More patterns whose matches are masked. They run on whole texts, so keep them linear."""
    custom: Callable[[str], str] | None = None
    """Called with each remaining text; returns the text to record. If it raises, everything is masked."""


def _replacing(pattern: re.Pattern[str], mark: str) -> Callable[[str], str]:
    keeps = pattern.groups > 0
    return lambda text: pattern.sub(lambda match: (match.group(1) if keeps else "") + mark, text)


def _numbers(form: NumberForm) -> Callable[[str], str]:
    return lambda text: mask_numbers(text, form)


class Mask:
    """Masks texts and JSON. Raises what `custom` raises."""

    def __init__(self, options: Masking) -> None:
        self._credentials = options.credentials
        self._names = {_plain_name(key) for key in options.keys}
        self._custom = options.custom
        self._labels: dict[str, str] = {}
        self._unmasked: set[str] = set()
        self._rules: list[Callable[[str], str]] = []
        self._maybe: list[re.Pattern[str]] = []
        if options.credentials:
            self._rules.append(lambda text: mask_credentials(text, kind_of_name))
        if self._names:
            # The scanner does not know names that the host adds, so each text is searched for them.
            self._rules.append(lambda text: mask_assignments(text, self._kind_of))
        if options.card_number:
            self._add(CARD_NUMBER.run, _numbers(CARD_NUMBER))
        if options.iban:
            self._add(re.compile(r"[A-Z]{2}\d{2}", re.IGNORECASE), _numbers(IBAN))
        if options.phone:
            self._add(re.compile(r"\d{3}|\+\d|\d.{0,2}\d"), _replacing(_PHONE, "[masked:phone]"))
        if options.email:
            self._add(re.compile("@"), _replacing(_EMAIL, "[masked:email]"))
        for pattern in options.patterns:
            self._add(re.compile(""), lambda text, pattern=pattern: pattern.sub("[masked]", text))  # type: ignore[misc]
        if self._names or self._custom:
            self._maybe.append(re.compile(""))

    def _add(self, trigger: re.Pattern[str], rule: Callable[[str], str]) -> None:
        self._maybe.append(trigger)
        self._rules.append(rule)

    def touches(self, text: str) -> bool:
        """Whether this JSON text may contain something to mask. False is certain."""
        if _ESCAPED in text or (self._credentials and may_hold_credentials(text)):
            return True
        return any(trigger.search(text) for trigger in self._maybe)

    def label(self, text: str) -> str:
        """A short text that repeats, such as the name of a model or a tool."""
        known = self._labels.get(text)
        if known is None:
            known = self.text(text) if self.touches(dump(text)) else text
            # The host's own code may answer differently each time.
            if self._custom is None and len(text) <= _LABEL_CHARS:
                if len(self._labels) >= _LABELS:
                    self._labels.clear()
                self._labels[text] = known
        return known

    def text(self, text: str, level: int = 0) -> str:
        decoded = self._decode(text) if level < _LEVELS_MAX else None
        if decoded is not None:
            masked = dump(self.value(decoded, level + _ENCODED_LEVELS))
            return text if masked == dump(decoded) else masked
        masked = self._apply(text)
        return str(self._custom(masked)) if self._custom else masked

    def value(self, value: Json, level: int = 0, kind: NameKind = "plain") -> Json:
        """`kind`: of the name above the value."""
        if value is None or isinstance(value, bool):
            return value
        if kind == "secret" or level > _LEVELS_MAX:
            return CREDENTIAL_MARK
        if isinstance(value, str):
            return self.text(value, level) if kind == "plain" or is_count(value) else CREDENTIAL_MARK
        if isinstance(value, (int, float)):
            text = str(value)
            masked = self._apply(text)
            return value if masked == text else masked
        if isinstance(value, list):
            return self._list(value, level + 1, kind)
        return self._fields(value, level + 1, kind)

    def _apply(self, text: str) -> str:
        is_short = len(text) <= _SHORT_CHARS
        if is_short and text in self._unmasked:
            return text
        masked = text
        for rule in self._rules:
            masked = rule(masked)
        if is_short and masked == text:
            if len(self._unmasked) >= _SHORT_TEXTS:
                self._unmasked.clear()
            self._unmasked.add(text)
        return masked

    def _decode(self, text: str) -> Json:
        """The object, list or text that a text encodes, if it may contain something to mask."""
        whole = text.strip(_SPACE_CHARS)
        if whole[:1] + whole[-1:] not in ("{}", "[]", '""') or len(whole) < 2 or not self.touches(whole):
            return None
        # The rules read quotes with backslashes, and keep the spaces around them.
        if whole[0] == '"' and '\\"' in whole:
            return None
        return read_safely(lambda: _well_formed_json(whole), None)

    def _fields(self, fields: dict[str, Json], level: int, kind: NameKind) -> Json:
        is_pair = any(_NAMING.match(key) and self._is_secret_name(item) for key, item in fields.items())
        masked: dict[str, Json] = {}
        for key, item in fields.items():
            # The content of a chat message is not the value of its `name`.
            is_value = is_pair and _NAMED_VALUE.match(key) and not (key == "content" and "role" in fields)
            own_kind: NameKind = "secret" if is_value else self._kind_of(key)
            masked[self.text(key, level)] = self.value(item, level, kind if own_kind == "plain" else own_kind)
        return masked

    def _list(self, items: list[Json], level: int, kind: NameKind) -> Json:
        """Values may follow their names: in a pair, which stands in a list of pairs, and in a flat list of headers."""
        masked: list[Json] = []
        for index, item in enumerate(items):
            name = items[index - 1] if index > 0 else None
            if isinstance(item, str) and isinstance(name, str) and self._is_header(name):
                masked.append(CREDENTIAL_MARK)
            elif isinstance(item, list) and len(item) == 2 and self._is_secret_name(item[0]):
                masked.append([item[0], self.value(item[1], level, "secret")])
            else:
                masked.append(self.value(item, level, kind))
        return masked

    def _is_header(self, name: str) -> bool:
        return self._is_secret_name(name) and HEADER_NAME.match(name) is not None

    def _is_secret_name(self, name: Json) -> bool:
        return isinstance(name, str) and self._kind_of(name) == "secret"

    def _kind_of(self, key: str) -> NameKind:
        if self._names and _plain_name(key) in self._names:
            return "secret"
        return kind_of_name(key) if self._credentials else "plain"


def _well_formed_json(text: str) -> Json:
    value: Json = json.loads(text)
    # An escape may stand for half a surrogate pair, which has no UTF-8.
    dump(value).encode()
    return value


def _plain_name(key: str) -> str:
    return _SEPARATORS.sub("", key).lower()
