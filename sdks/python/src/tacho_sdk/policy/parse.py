"""
Parses CEL's grammar (https://github.com/cel-expr/cel-spec/blob/master/doc/langdef.md#syntax), except messages, bytes,
unsigned ints and names that start with a dot. Macros stay calls.
"""

from __future__ import annotations

import re
from typing import NoReturn

from .limits import NESTING_LEVELS, NODES
from .syntax import (
    BinaryNode,
    CallNode,
    ChoiceNode,
    FieldNode,
    IndexNode,
    ListNode,
    Literal,
    LiteralNode,
    MapNode,
    MethodNode,
    NameNode,
    Node,
    UnaryNode,
)
from .tokens import SyntaxFault, read_token

# Names that CEL reserves. They are allowed after a dot.
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
# Precedence, from lowest to highest. Operators of a row are left-associative; all relations share one row.
_PRECEDENCE = {
    operator: row
    for row, operators in enumerate(["||", "&&", "== != < <= > >= in", "+ -", "* / %"])
    for operator in operators.split()
}
# Operators of other languages.
_WORDS = {
    "and": "write && for and",
    "or": "write || for or",
    "not": "write ! for not",
    "is": "write == to compare",
}
_NEGATIVE = re.compile(r"-\.?\d", re.ASCII)
_INT_MAX = 2**63 - 1
_INT_MIN = -(2**63)

TOO_DEEP = f"the condition is nested more than {NESTING_LEVELS} levels deep"


def parse(source: str) -> Node:
    """Raises SyntaxFault at the first position that is not CEL, or exceeds the limit for nesting or nodes."""
    parser = _Parser(source)
    root = parser.expression()
    if parser.token.kind != "end":
        parser.refuse("expected an operator or the end")
    return root


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self.token = read_token(source, 0)
        # End of the previous token.
        self._end = 0
        self._nodes = 0
        self._level = 0

    def _advance(self) -> None:
        self._end = self.token.end
        self.token = read_token(self._source, self._end)

    def _is_next(self, symbol: str) -> bool:
        return self.token.kind == "symbol" and self.token.text == symbol

    def _take_if(self, symbol: str) -> bool:
        if not self._is_next(symbol):
            return False
        self._advance()
        return True

    def _expect(self, symbol: str) -> None:
        if not self._take_if(symbol):
            self.refuse(f"expected {symbol}")

    def refuse(self, expected: str) -> NoReturn:
        token = self.token
        text = self._source[token.start : token.end]
        token_text = "the end" if token.kind == "end" else f"{text[:40]}…" if len(text) > 40 else text
        hint = _WORDS.get(token.text.lower()) if token.kind == "name" else None
        raise SyntaxFault(f"{expected}, found {token_text}{f'; {hint}' if hint else ''}", token.start, token.end)

    def _count(self, start: int) -> tuple[int, int]:
        """Counts a new node. Returns its place."""
        self._nodes += 1
        if self._nodes > NODES:
            message = f"the condition has more than {NODES} names, literals, operators and calls"
            raise SyntaxFault(message, start, self._end)
        return start, self._end

    def expression(self) -> Node:
        start = self.token.start
        self._level += 1
        if self._level > NESTING_LEVELS:
            raise SyntaxFault(TOO_DEEP, start, self.token.end)
        node = self._binary(0)
        if self._take_if("?"):
            consequent = self._binary(0)
            self._expect(":")
            alternate = self.expression()
            node = ChoiceNode(*self._count(start), node, consequent, alternate)
        self._level -= 1
        return node

    def _binary(self, lowest: int) -> Node:
        start = self.token.start
        left = self._unary()
        while self.token.kind == "symbol":
            operator = self.token.text
            row = _PRECEDENCE.get(operator, -1)
            if row < lowest:
                break
            self._advance()
            right = self._binary(row + 1)
            left = BinaryNode(*self._count(start), operator, left, right)
        return left

    def _unary(self) -> Node:
        """Repeats of one sign only: `!-x` and `-!x` are not CEL."""
        operator = "!" if self._is_next("!") else "-"
        signs: list[int] = []
        while self._is_next(operator) and not self._is_negative_number():
            signs.append(self.token.start)
            self._advance()
        start = self.token.start
        node = self._member(start, self._primary())
        for sign in reversed(signs):
            node = UnaryNode(*self._count(sign), operator, node)
        return node

    def _is_negative_number(self) -> bool:
        """A sign before a number belongs to it: -9223372036854775808 is valid, 9223372036854775808 is not."""
        return self._is_next("-") and _NEGATIVE.match(self._source, self.token.start) is not None

    def _number(self, start: int, sign: int) -> Node:
        token = self.token
        value = token.value
        assert isinstance(value, (int, float))
        value = sign * value
        if token.kind == "int" and not _INT_MIN <= value <= _INT_MAX:
            raise SyntaxFault("the number does not fit into 64 bits", start, token.end)
        return self._literal(start, value)

    def _literal(self, start: int, value: Literal) -> Node:
        self._advance()
        return LiteralNode(*self._count(start), value)

    def _member(self, start: int, node: Node) -> Node:
        while True:
            if self._take_if("."):
                node = self._after_dot(start, node)
            elif self._take_if("["):
                key = self.expression()
                self._expect("]")
                node = IndexNode(*self._count(start), node, key)
            else:
                return node

    def _after_dot(self, start: int, receiver: Node) -> Node:
        kind, text = self.token.kind, self.token.text
        if kind not in ("name", "quoted name"):
            self.refuse("expected a name")
        self._advance()
        if kind == "quoted name" or not self._take_if("("):
            return FieldNode(*self._count(start), receiver, text)
        values = self._list(")")
        return MethodNode(*self._count(start), text, receiver, values)

    def _is_number(self) -> bool:
        return self.token.kind == "int" or (self.token.kind == "literal" and type(self.token.value) is float)

    def _primary(self) -> Node:
        token = self.token
        start = token.start
        if self._is_negative_number():
            self._advance()
            return self._number(start, -1)
        if self._is_number():
            return self._number(start, 1)
        if token.kind == "literal":
            return self._literal(start, token.value)
        if token.kind == "name" and token.text not in _RESERVED:
            return self._named(start, token.text)
        if self._take_if("("):
            node = self.expression()
            self._expect(")")
            return node
        if self._take_if("["):
            elements = self._list("]")
            return ListNode(*self._count(start), elements)
        if self._take_if("{"):
            entries = self._entries()
            return MapNode(*self._count(start), entries)
        self.refuse("expected a value")

    def _named(self, start: int, name: str) -> Node:
        self._advance()
        if not self._take_if("("):
            return NameNode(*self._count(start), name)
        values = self._list(")")
        return CallNode(*self._count(start), name, values)

    def _list(self, close: str) -> list[Node]:
        """Expressions up to a closing bracket. A list can end with a comma."""
        values: list[Node] = []
        while not self._is_next(close):
            values.append(self.expression())
            if not self._take_if(","):
                break
            if close == ")" and self._is_next(")"):
                self.refuse("expected a value")
        self._expect(close)
        return values

    def _entries(self) -> list[tuple[Node, Node]]:
        pairs: list[tuple[Node, Node]] = []
        while not self._is_next("}"):
            key = self.expression()
            self._expect(":")
            pairs.append((key, self.expression()))
            if not self._take_if(","):
                break
        self._expect("}")
        return pairs
