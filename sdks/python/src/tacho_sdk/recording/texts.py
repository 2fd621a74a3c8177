"""
Encodes and searches each long text of payloads only once, because a conversation repeats its messages with every call. A
payload becomes a short JSON text with a mark in place of each long text. Only this short text is searched each time.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from .plain import MARK, Json, Plain, TextMark, dump

faster: Any = None
try:
    import orjson

    faster = orjson
except ImportError:
    pass

# Characters of all texts that this client caches.
_KNOWN_CHARS = 1_048_576
_KNOWN_TEXT_CHARS = 131_072
# For a shorter text, the encoder is faster.
_REPLACED_CHARS = 2_048
_CONTROLS = [chr(code) for code in range(32) if chr(code) != "\n"]
_MARK_JSON = dump(MARK)
_encode_text: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode


class Touching(Protocol):
    def touches(self, text: str, /) -> bool: ...


class Texts:
    """Thread-safe."""

    def __init__(self, mask: Touching) -> None:
        self._mask = mask
        # JSON texts of texts in which there is nothing to mask. Another client's mask may differ, so each has its own.
        self._known: OrderedDict[str, str] = OrderedDict()
        self._known_chars = 0
        self.reset()

    def reset(self) -> None:
        """Forgets the lock: for a forked process."""
        self._remembering = threading.Lock()

    def json_of(self, plain: Plain) -> str | None:
        """The JSON text of a payload, if it is well-formed and nothing in it can be masked; else None."""
        skeleton = dump(plain.value)
        if not is_well_formed(skeleton) or self._mask.touches(skeleton):
            return None
        parts = skeleton.split(_MARK_JSON) if plain.texts else [skeleton]
        if len(parts) != len(plain.texts) + 1:
            return None
        whole = [parts[0]]
        for text, part in zip(plain.texts, parts[1:], strict=True):
            encoded = self._encoded(text)
            if encoded is None:
                return None
            whole += (encoded, part)
        return "".join(whole)

    def _encoded(self, text: str) -> str | None:
        known = self._known.get(text)
        if known is not None:
            return known
        if not is_well_formed(text):
            return None
        encoded = quoted(text)
        # Check the text as in a list or an object: a name may be the whole text.
        if self._mask.touches(f"{encoded},"):
            return None
        if len(text) <= _KNOWN_TEXT_CHARS:
            self._remember(text, encoded)
        return encoded

    def _remember(self, text: str, encoded: str) -> None:
        """Caches a text and forgets the oldest ones, because a conversation drops its oldest messages."""
        # If another thread is in here, the text is cached the next time.
        if not self._remembering.acquire(blocking=False):
            return
        try:
            if text not in self._known:
                self._known[text] = encoded
                self._known_chars += len(text)
            while self._known_chars > _KNOWN_CHARS:
                self._known_chars -= len(self._known.popitem(last=False)[0])
        finally:
            self._remembering.release()

    def quoted_of(self, text: str) -> str:
        """The JSON text of a well-formed text."""
        return self._known.get(text) or quoted(text)


def quoted(text: str) -> str:
    """The JSON text of a well-formed text, as `json` writes it."""
    if faster is not None:
        encoded: str = faster.dumps(text).decode()
        return encoded
    # Most texts have no control characters but line feeds. Searching for all others takes a fifth of the encoder's time.
    if len(text) < _REPLACED_CHARS or any(control in text for control in _CONTROLS):
        return _encode_text(text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def is_well_formed(text: str) -> bool:
    try:
        return text.isascii() or text.encode() is not None
    except UnicodeEncodeError:
        return False


def restored_fields(plain: Plain) -> dict[str, Json]:
    """Fields of a plain value, with the long texts that the copy only refers to."""
    return {key: _restored(item) for key, item in plain.value.items()}


def _restored(value: Any) -> Json:
    if type(value) is TextMark:
        return value.text
    if type(value) is dict:
        return {key: _restored(item) for key, item in value.items()}
    return [_restored(item) for item in value] if type(value) is list else value
