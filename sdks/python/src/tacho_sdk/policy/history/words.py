"""
The words of a text, in the form in which values are compared. The form removes changes that a model makes when it copies a
value: NFKC, lower case, no invisible characters; white space and punctuation only divide words. It also has the decoded text
of encodings that a model can decode: percent-encoding, HTML entities, escapes of JSON, base64 and hexadecimal. The same as
words.ts of the TypeScript engine.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
import unicodedata
from collections.abc import Iterator

from ..text import number_text

TEXT_CHARS = 262_144
"""Characters that are read of one text; the rest of a longer one is unknown."""

_PART_CHARS = 8_192

_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_WORD = re.compile(r"[^\W_]+")
# For ASCII texts only: takes a fifth of the time.
_IN_WORDS = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
# "name [at] example (dot) com". With the white space around it, the pattern could take minutes: it would try each space.
_SPELLED = re.compile(r"[\[({<]\s*(?:at|dot)\s*[\])}>]")


def words_of(text: str) -> list[str]:
    if text.isascii() and text.isalnum():
        return [text.lower()]
    return [word for words in parts_of_words(text) for word in words]


def parts_of_words(text: str) -> Iterator[list[str]]:
    """The words of a long text in parts, between which a host can do other things."""
    is_ascii = text.isascii()
    plain = text if is_ascii else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    if "(" in plain or "[" in plain or "<" in plain or "{" in plain:
        plain = plain.lower()
        plain = _SPELLED.sub(" ", plain)
    plain = plain.translate(_IN_WORDS) if is_ascii else plain.lower()
    at = 0
    while at < len(plain):
        # Read up to the end of a word.
        cut_word = _WORD.match(plain, at + _PART_CHARS)
        end = at + _PART_CHARS if cut_word is None else cut_word.end()
        yield plain[at:end].split() if is_ascii else _WORD.findall(plain, at, end)
        at = end


def readings(text: str) -> list[str]:
    """The text, and the decoded texts in it. At most twice as long."""
    read = spellings(text)
    for encoded in _encoded_in(text) if len(text) >= _ENCODED_MIN else ():
        content = _bytes_of(encoded)
        inner = None if content is None else _text_of(content)
        if inner is not None:
            read.append(inner)
    return read


def spellings(text: str) -> list[str]:
    """
    The text, and its decoded escapes. Used for a value that is looked up: its base64 is not decoded, because that may contain
    words of the user beside an address that a stranger wrote.
    """
    decoded = _ESCAPES.sub(_unescaped, text) if "%" in text or "&" in text or "\\" in text else text
    return [text] if decoded == text else [text, decoded]


_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+|&#[0-9]{1,7};|&#[xX][0-9A-Fa-f]{1,6};|&[a-z]{2,8};|\\u[0-9A-Fa-f]{4}|\\n")


def _unescaped(escape_match: re.Match[str]) -> str:
    escape = escape_match[0]
    # Named entities separate words: `&commat;`, `&nbsp;`.
    if escape == "\\n" or (escape[0] == "&" and escape[1] != "#"):
        return " "
    if escape.startswith("\\u"):
        return chr(int(escape[2:], 16))
    if escape.startswith("%"):
        text = _text_of(bytes.fromhex(escape.replace("%", "")))
        return escape if text is None else text
    digits = escape[2:-1]
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else escape


# A shorter match can be an ordinary word.
_ENCODED_MIN = 16
_ENCODED_CHARS = string.ascii_letters + string.digits + "_+/-"
_IS_ENCODED = bytes(ord("x" if chr(code) in _ENCODED_CHARS else " ") for code in range(256))


def _encoded_in(text: str) -> list[str]:
    """Finds `(?<![\\w+/-])[\\w+/-]{16,}={0,2}` in ASCII. A regular expression is slower."""
    masked = text.encode("ascii", "replace").translate(_IS_ENCODED)
    encoded: list[str] = []
    at = masked.find(b"x" * _ENCODED_MIN)
    while at >= 0:
        end = masked.find(b" ", at)
        end = len(text) if end < 0 else end
        encoded.append(text[at:end] + "=" * (text.startswith("=", end) + text.startswith("==", end)))
        at = masked.find(b"x" * _ENCODED_MIN, end)
    return encoded


_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})+")


def _bytes_of(encoded: str) -> bytes | None:
    if _HEX.fullmatch(encoded):
        return bytes.fromhex(encoded)
    digits = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    if len(digits) % 4 == 1:
        return None
    try:
        return base64.b64decode(digits + "=" * (-len(digits) % 4))
    except binascii.Error:
        return None


_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f]")


def _text_of(content: bytes) -> str | None:
    """Returns None if the bytes are not a text that a model would read."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


_NUMBER = re.compile(rb"(?<![0-9.,])(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})(?:\.[0-9]{1,9})?(?![0-9.,]*[0-9])")
_OF_NUMBERS = bytes(code if chr(code) in "0123456789.," else 32 for code in range(256))


def numbers_of(text: str) -> list[str]:
    """The numbers among the words of a text, in one spelling: `$1,200.50` and `1200.5` are `1200.5`."""
    # Other characters only divide numbers.
    digits_only = b" ".join(text.encode("ascii", "replace").translate(_OF_NUMBERS).split())
    return [_number_of(digits) for digits in _NUMBER.findall(digits_only)]


def _number_of(digits: bytes) -> str:
    if digits.isdigit() and digits[0] != 48:
        # Most numbers are spelled like this already.
        return digits.decode()
    return text_of_number(float(digits.replace(b",", b"")))


def text_of_number(value: float) -> str:
    return number_text(abs(float(value)))
