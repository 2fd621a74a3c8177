"""
Parses RE2's syntax (https://github.com/google/re2/wiki/Syntax) into a tree. Greedy or not makes no difference, because the
result is only whether the pattern matches.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal, NoReturn

from ..inner_class import inner_class
from .characters import ALL, CATEGORIES, DIGIT, POSIX, SPACE, WORD, CharacterSet, Item, Ranges

_REPEAT_MAX = 1_000
_NESTING_MAX = 200


class BadSyntax(Exception):
    """The message describes the fault."""


Assertion = Literal["begin line", "end line", "begin text", "end text", "boundary", "no boundary"]


@inner_class
class Assert:
    kind: Assertion


@inner_class
class Sequence:
    parts: tuple[Tree, ...]


@inner_class
class Alternatives:
    options: tuple[Tree, ...]


@inner_class
class Capture:
    body: Tree


@inner_class
class Repeat:
    body: Tree
    least: int
    most: int | None


Tree = CharacterSet | Assert | Sequence | Alternatives | Capture | Repeat


@inner_class
class _Flags:
    ignores_case: bool = False
    is_multiline: bool = False
    dot_is_all: bool = False


_ANY = CharacterSet((Item(ALL),))
_NOT_NEWLINE = CharacterSet((Item(((10, 10),)),), is_negated=True)
_PERL: dict[str, Ranges] = {"d": DIGIT, "s": SPACE, "w": WORD}
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_COUNT = re.compile(r"\{(\d{1,5})(,(\d{0,5}))?\}", re.ASCII)
_GROUP_NAME = re.compile(r"\?P?<(\w+)>", re.ASCII)
_GROUP_FLAGS = re.compile(r"\?([imsU]*)(-[imsU]+)?([:)])", re.ASCII)
_UNICODE = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|([^{]))")


def parse_pattern(source: str) -> Tree:
    """Raises BadSyntax."""
    parser = _Parser(source)
    tree = parser.alternatives(_Flags())
    if parser.at < len(source):
        parser.refuse("unexpected )")
    return tree


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self.at = 0
        self._level = 0
        self._names: set[str] = set()

    def refuse(self, message: str) -> NoReturn:
        raise BadSyntax(message)

    def _peek(self) -> str:
        return self._source[self.at : self.at + 1]

    def _take_if(self, text: str) -> bool:
        if not self._source.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def alternatives(self, flags: _Flags) -> Tree:
        self._level += 1
        if self._level > _NESTING_MAX:
            self.refuse("expression nests too deeply")
        options: list[Tree] = []
        parts: list[Tree] = []
        while self._peek() not in ("", ")"):
            if self._take_if("|"):
                options.append(Sequence(tuple(parts)))
                parts = []
            elif flagged := self._flag_group(flags):
                flags = flagged
            else:
                self._part(parts, flags)
        self._level -= 1
        options.append(Sequence(tuple(parts)))
        return options[0] if len(options) == 1 else Alternatives(tuple(options))

    def _flag_group(self, flags: _Flags) -> _Flags | None:
        """`(?i)`: flags for the rest of the group."""
        match = _GROUP_FLAGS.match(self._source, self.at + 1) if self._peek() == "(" else None
        if not match or match[3] != ")":
            return None
        if not match[1] and not match[2]:
            self.refuse("missing argument to repetition operator: ?" if match[0] != "?)" else "invalid group syntax")
        self.at = match.end()
        return self._with_flags(flags, match)

    def _with_flags(self, flags: _Flags, match: re.Match[str]) -> _Flags:
        for letters, value in ((match[1], True), (match[2] or "", False)):
            changes = {"i": "ignores_case", "m": "is_multiline", "s": "dot_is_all"}
            flags = replace(flags, **{changes[letter]: value for letter in letters if letter in changes})
        return flags

    def _part(self, parts: list[Tree], flags: _Flags) -> None:
        character = self._peek()
        if character in "*+?":
            self.refuse(f"missing argument to repetition operator: {character}")
        if self._take_if(r"\Q"):
            end = self._source.find(r"\E", self.at)
            quoted = self._source[self.at : end if end >= 0 else len(self._source)]
            self.at += len(quoted) + (2 if end >= 0 else 0)
            parts.extend(_literal(one, flags) for one in quoted)
            if quoted:
                parts.append(self._repeated(parts.pop()))
            return
        if self._take_if(r"\E"):
            return
        if character == "{" and _COUNT.match(self._source, self.at):
            self.refuse("missing argument to repetition operator")
        parts.append(self._repeated(self._atom(flags)))

    def _repeated(self, body: Tree) -> Tree:
        is_repeated = False
        while True:
            counts = self._counts()
            if counts is None:
                return body
            if is_repeated:
                self.refuse("invalid nested repetition operator")
            is_repeated = True
            self._take_if("?")
            body = Repeat(body, *counts)

    def _counts(self) -> tuple[int, int | None] | None:
        for operator, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take_if(operator):
                return counts
        match = _COUNT.match(self._source, self.at)
        if not match:
            return None
        self.at = match.end()
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if max(least, most or 0) > _REPEAT_MAX or (most is not None and most < least):
            self.refuse(f"invalid repeat count: {match.group()}")
        return least, most

    def _atom(self, flags: _Flags) -> Tree:
        character = self._peek()
        if character == "(":
            return self._group(flags)
        if character == "[":
            return self._class(flags)
        if character == "\\":
            return self._escape(flags)
        self.at += 1
        if character == ".":
            return _ANY if flags.dot_is_all else _NOT_NEWLINE
        if character == "^":
            return Assert("begin line" if flags.is_multiline else "begin text")
        if character == "$":
            return Assert("end line" if flags.is_multiline else "end text")
        return _literal(character, flags)

    def _group(self, flags: _Flags) -> Tree:
        self.at += 1
        is_capture = True
        if self._peek() == "?":
            name = _GROUP_NAME.match(self._source, self.at)
            inner = _GROUP_FLAGS.match(self._source, self.at)
            if name:
                if name[1] in self._names:
                    self.refuse(f"duplicate capture group name: {name[1]}")
                self._names.add(name[1])
                self.at = name.end()
            elif inner:
                is_capture = False
                flags = self._with_flags(flags, inner)
                self.at = inner.end()
            else:
                self.refuse("invalid or unsupported Perl syntax")
        body = self.alternatives(flags)
        if not self._take_if(")"):
            self.refuse("missing closing )")
        return Capture(body) if is_capture else body

    def _escape(self, flags: _Flags) -> Tree:
        assertions: dict[str, Assertion] = {
            "A": "begin text",
            "b": "boundary",
            "B": "no boundary",
            "z": "end text",
        }
        letter = self._source[self.at + 1 : self.at + 2]
        if letter in assertions:
            self.at += 2
            return Assert(assertions[letter])
        item = self._class_escape()
        if item is None:
            point = self._code()
            return CharacterSet((Item(((point, point),)),), ignores_case=flags.ignores_case)
        return CharacterSet((item,), ignores_case=flags.ignores_case)

    def _class_escape(self) -> Item | None:
        r"""`\d`, `\PL` and their like."""
        letter = self._source[self.at + 1 : self.at + 2]
        if letter and letter in "dswDSW":
            self.at += 2
            return Item(_PERL[letter.lower()], is_negated=letter.isupper())
        match = _UNICODE.match(self._source, self.at) if letter in ("p", "P") else None
        if not match:
            return None
        self.at = match.end()
        name = match[4] or match[3]
        is_negated = (match[1] == "P") != (match[2] == "^")
        if name == "Any":
            return Item(ALL, is_negated=is_negated)
        if name not in CATEGORIES:
            self.refuse(f"the Python SDK knows general categories such as \\p{{Lu}}, and not {match.group()}")
        return Item(category=name, is_negated=is_negated)

    def _code(self) -> int:
        """A character after a backslash."""
        self.at += 1
        letter = self._peek()
        if letter == "":
            self.refuse("trailing backslash at end of expression")
        self.at += 1
        following = self._peek()
        if letter in "1234567" and following not in tuple("01234567"):
            self.refuse(f"invalid escape sequence: \\{letter}")
        if letter in "01234567":
            digits = letter
            while len(digits) < 3 and self._peek() in tuple("01234567"):
                digits += self._peek()
                self.at += 1
            return int(digits, 8)
        if letter == "x":
            match = re.compile(r"\{([\da-fA-F]+)\}|([\da-fA-F]{2})").match(self._source, self.at)
            if not match:
                self.refuse("invalid escape sequence: \\x")
            self.at = match.end()
            point = int((match[1] or match[2])[:12], 16)
            if point > 0x10FFFF:
                self.refuse("invalid escape sequence: \\x")
            return point
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isascii() and not letter.isalnum():
            return ord(letter)
        self.refuse(f"invalid escape sequence: \\{letter}")

    def _class(self, flags: _Flags) -> Tree:
        self.at += 1
        is_negated = self._take_if("^")
        items: list[Item] = []
        is_first = True
        while self._peek() != "]" or is_first:
            if self._peek() == "":
                self.refuse("missing closing ]")
            # A hyphen stands for itself only at the beginning or the end.
            if self._peek() == "-" and not is_first and self._source[self.at + 1 : self.at + 2] not in ("]", ""):
                self.refuse("invalid character class range")
            is_first = False
            items.append(self._posix() or self._class_item())
        self.at += 1
        return CharacterSet(tuple(items), is_negated, flags.ignores_case)

    def _posix(self) -> Item | None:
        if not self._source.startswith("[:", self.at):
            return None
        end = self._source.find(":]", self.at + 2)
        if end < 0:
            return None
        name = self._source[self.at + 2 : end]
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            self.refuse(f"invalid character class range: [:{name}:]")
        self.at = end + 2
        return Item(ranges, is_negated=name.startswith("^"))

    def _class_item(self) -> Item:
        if self._peek() == "\\":
            item = self._class_escape()
            if item is not None:
                return item
        first = self._class_character()
        last = first
        is_range = self._peek() == "-" and self._source[self.at + 1 : self.at + 2] not in ("]", "")
        if is_range:
            self.at += 1
            last = self._class_character()
            if last < first:
                self.refuse("invalid character class range")
        return Item(((first, last),))

    def _class_character(self) -> int:
        if self._peek() == "":
            self.refuse("missing closing ]")
        if self._peek() == "\\":
            return self._code()
        self.at += 1
        return ord(self._source[self.at - 1])


def _literal(character: str, flags: _Flags) -> CharacterSet:
    point = ord(character)
    return CharacterSet((Item(((point, point),)),), ignores_case=flags.ignores_case)
