"""Reads the tokens of a condition."""

from __future__ import annotations

import math
import re
from typing import Literal as Kind

from ..inner_class import inner_class
from .syntax import Literal


class SyntaxFault(Exception):
    """A syntax error. `start` and `end` count characters. Raised only within the parser."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


@inner_class
class Token:
    kind: Kind["literal", "int", "name", "quoted name", "symbol", "end"]
    start: int
    end: int
    text: str = ""
    value: Literal = None
    """The value of a literal or an int. An int can be too large by one until its sign is known."""


_SPACE = re.compile(r"(?:[\t\n\f\r ]|//[^\n\r]*)*")
_NAME = re.compile(r"[A-Z_a-z]\w*", re.ASCII)
_QUOTED_NAME = re.compile(r"`([\w./ -]+)`", re.ASCII)
_DOUBLE = re.compile(r"\d*\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+", re.ASCII)
_INT = re.compile(r"0x[\dA-Fa-f]+|\d+", re.ASCII)
_TEXT = re.compile(r"([bB]?)([rR]?)(\"\"\"|'''|\"|')")
_SYMBOL = re.compile(r"&&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]{}]")

_KEYWORDS: dict[str, Literal] = {"true": True, "false": False, "null": None}
_HINTS = {
    "=": "; write == to compare",
    "&": "; write && for and",
    "|": "; write || for or",
    "“": '; write "',
    "”": '; write "',
    "`": '; a name in backticks can have letters, digits, "_", ".", "-", "/" and spaces',
}


def read_token(source: str, offset: int) -> Token:
    """Reads the token after `offset`; skips white space and comments."""
    space = _SPACE.match(source, offset)
    start = space.end() if space else offset
    if start >= len(source):
        return Token("end", len(source), len(source))
    if text := _TEXT.match(source, start):
        return _read_text(source, start, text)
    if name := _NAME.match(source, start):
        return _read_name(name)
    if double := _DOUBLE.match(source, start):
        value = float(double.group())
        if math.isinf(value):
            raise SyntaxFault("the number is too large", start, double.end())
        return Token("literal", start, double.end(), value=value)
    if digits := _INT.match(source, start):
        if source[digits.end() : digits.end() + 1] in ("u", "U"):
            raise SyntaxFault("write the number without u", start, digits.end() + 1)
        return Token("int", start, digits.end(), value=_int_of(digits.group()))
    if quoted := _QUOTED_NAME.match(source, start):
        return Token("quoted name", start, quoted.end(), text=quoted[1])
    if symbol := _SYMBOL.match(source, start):
        return Token("symbol", start, symbol.end(), text=symbol.group())
    character = source[start]
    hint = _HINTS.get(character, "")
    raise SyntaxFault(f"unexpected character {character}{hint}", start, start + 1)


def _int_of(digits: str) -> int:
    if digits.startswith("0x"):
        return int(digits, 16)
    # Python refuses to convert very long texts; any such number is too large anyway.
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) < 100 else 10**100


def _read_name(match: re.Match[str]) -> Token:
    text = match.group()
    if text in _KEYWORDS:
        return Token("literal", match.start(), match.end(), text=text, value=_KEYWORDS[text])
    return Token("symbol" if text == "in" else "name", match.start(), match.end(), text=text)


_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPES |= {character: character for character in "\\?\"'`"}
_CODE = re.compile(r"\\(?:[xX]([\dA-Fa-f]{2})|u([\dA-Fa-f]{4})|U([\dA-Fa-f]{8})|([0-3][0-7]{2}))")


def _read_text(source: str, start: int, opening: re.Match[str]) -> Token:
    is_bytes, is_raw, quote = opening.groups()
    if is_bytes:
        raise SyntaxFault("bytes are not part of the policy language", start, opening.end())
    parts: list[str] = []
    at = opening.end()
    while at < len(source):
        if source.startswith(quote, at):
            return Token("literal", start, at + len(quote), value="".join(parts))
        character = source[at]
        if character == "\\" and not is_raw:
            value, at = _read_escape(source, at)
            parts.append(value)
        elif character in "\n\r":
            if len(quote) == 1:
                break
            # Normalize line ends.
            parts.append("\n")
            at += 2 if source.startswith("\r\n", at) else 1
        else:
            parts.append(character)
            at += 1
    raise SyntaxFault(f"the text is not closed with {quote}", start, opening.end())


def _read_escape(source: str, start: int) -> tuple[str, int]:
    value = _ESCAPES.get(source[start + 1 : start + 2])
    if value is not None:
        return value, start + 2
    code = _CODE.match(source, start)
    if not code:
        sequence = source[start : start + 2]
        message = f"unknown escape {sequence}; write \\\\ for a backslash"
        raise SyntaxFault(message, start, start + len(sequence))
    octal = code[4]
    point = int(octal, 8) if octal else int(code[1] or code[2] or code[3], 16)
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise SyntaxFault("this is not a Unicode character", start, code.end())
    return chr(point), code.end()
