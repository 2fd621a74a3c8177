"""Texts in the contract's form: well-formed Unicode without NUL, lengths in code points."""

import re

_HALF_PAIR = re.compile("[\ud800-\udfff\0]")


def cut_text(text: str, max_chars: int) -> str:
    """At most `max_chars` code points; a cut text ends with an ellipsis."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def well_formed(text: str) -> str:
    """Replaces half surrogate pairs and NUL by the replacement character."""
    return _HALF_PAIR.sub("\ufffd", text) if not text.isascii() or "\0" in text else text


def utf8_length(text: str) -> int:
    """UTF-8 bytes of a well-formed text."""
    return len(text) if text.isascii() else len(text.encode())
