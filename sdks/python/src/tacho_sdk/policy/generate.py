"""
Generates one Python function for the logic of a condition: `&&`, `||`, `!` and the comparisons inside, which cost most of a
decision. The code contains only names made here: names, keys and texts of the condition are numbered constants. Values of an
unusual type go to the functions of build.py before a step is spent, so results and steps stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .functions import origin_of_text
from .position import units
from .syntax import (
    BinaryNode,
    CallNode,
    FieldNode,
    LiteralNode,
    NameNode,
    Node,
    UnaryNode,
    dotted_name,
    is_of_history,
    literal_text,
)
from .text import quoted
from .values import NO_OVERLOAD, Failure, OutOfSteps, Scope, Step, Unreadable, Value
from .variables import VARIABLE_NAMES

Names = Mapping[str, int]
"""Visible loop variables and their slots in the scope."""

# Python's parser rejects more than 200 nested brackets. An operator needs three, a field two.
_BRACKETS_MAX = 30
_FIELDS_MAX = 12
# Shorter texts are compared without a step, whatever their characters.
_SHORT = 16
_LABELS = ("tool.labels", "run.labels", "risk.signals")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def generate(node: Node, names: Names, build: Callable[[Node, Names], Step], plain: Callable[[Node, Names], Step]) -> Step:
    """`build` builds any node; `plain` builds a node without generating code for it."""
    code = _Code(names, build, plain)
    result = code.logic(node, 0) or code.comparison(node) or code.origin(node)
    if result is None:
        return plain(node, names)
    constants = {f"k{number}": constant for number, constant in enumerate(code.constants)}
    exec(compile(f"def step(s):\n f = s.fact\n l = s.locals\n return {result}", "<condition>", "exec"), constants)
    return constants["step"]  # type: ignore[return-value]


class _Code:
    """Each method returns a Python expression, or None for a node that it cannot generate."""

    def __init__(self, names: Names, build: Callable[[Node, Names], Step], plain: Callable[[Node, Names], Step]) -> None:
        self._names, self._build, self._plain = names, build, plain
        self.constants: list[object] = []
        self._variables = 0

    def logic(self, node: Node, brackets: int) -> str | None:
        if isinstance(node, UnaryNode) and node.operator == "!":
            value, other = self._variable(), self._constant(_inverse_of)
            not_bool = self._constant(Failure(NO_OVERLOAD.reason, node.start))
            operand = self._any(node.operand, brackets + 1)
            return f"(False if ({value} := {operand}) is True else True if {value} is False else {other}({value}, {not_bool}))"
        if not isinstance(node, BinaryNode) or node.operator not in ("||", "&&"):
            return None
        decisive = node.operator == "||"
        sides: list[Node] = []
        left: Node = node
        while isinstance(left, BinaryNode) and left.operator == node.operator:
            sides.insert(0, left.right)
            left = left.left
        sides.insert(0, left)
        values = [self._variable() for _ in sides]
        turns = [
            f"{decisive} if ({value} := {self._any(side, brackets + 1)}) is {decisive}"
            for value, side in zip(values, sides, strict=True)
        ]
        all_clear = " is ".join([*values, str(not decisive)])
        failures = self._constant([Failure("this must be true or false", side.start) for side in sides])
        failed = f"{self._constant(_first_failure)}({failures}, ({', '.join(values)}))"
        return f"({' else '.join(turns)} else {not decisive} if {all_clear} else {failed})"

    def comparison(self, node: Node) -> str | None:
        if isinstance(node, CallNode) and node.name == "has" and isinstance(node.values[0], FieldNode):
            container = self._leaf(node.values[0].object)
            if container is None or dotted_name(node.values[0]) in VARIABLE_NAMES:
                return None
            value, key = self._variable(), self._constant(node.values[0].key)
            return f"({key} in {value} if ({value} := {container}).__class__ is dict else {self._otherwise(node)})"
        if isinstance(node, BinaryNode) and node.operator == "in":
            return self._is_label(node)
        if not isinstance(node, BinaryNode) or node.operator not in _COMPARISONS:
            return None
        left, right = self._leaf(node.left), self._leaf(node.right)
        if left is None or right is None or isinstance(node.left, LiteralNode):
            return None
        a, b = self._variable(), self._variable()
        is_short = f"(len({a}) < {_SHORT} or len({a}) < {2 * _SHORT} and {a}.isascii())"
        if not isinstance(node.right, LiteralNode):
            kinds = f"({a}.__class__ is float or {a}.__class__ is str and {is_short})"
            is_usual = f"({a} := {left}).__class__ is ({b} := {right}).__class__ and {kinds}"
        elif node.right.value is None:
            return None
        else:
            b, kind = right, type(node.right.value)
            is_usual = f"({a} := {left}).__class__ is {kind.__name__}{f' and {is_short}' if kind is str else ''}"
        return f"({a} {node.operator} {b} if {is_usual} else {self._otherwise(node)})"

    def _is_label(self, node: BinaryNode) -> str | None:
        """Code for `"text" in labels`, where the list has only texts."""
        text, value = literal_text(node.left), self._variable()
        labels = self._leaf(node.right) if dotted_name(node.right) in _LABELS else self.origin(node.right)
        if text is None or labels is None:
            return None
        has = self._constant(_finder(text, 1 + (units(text) >> 5)))
        return f"({has}({value}, s) if ({value} := {labels}).__class__ is list else {self._otherwise(node)})"

    def origin(self, node: Node) -> str | None:
        operand = self._leaf(node.values[0]) if is_of_history(node) and isinstance(node, CallNode) else None
        if operand is None:
            return None
        value = self._variable()
        is_usual = f"({value} := {operand}).__class__ is str and s.history is not None"
        return f"({self._constant(origin_of_text)}({value}, s) if {is_usual} else {self._otherwise(node)})"

    def _any(self, node: Node, brackets: int) -> str:
        if brackets < _BRACKETS_MAX:
            known = self.logic(node, brackets) or self.comparison(node) or self.origin(node) or self._leaf(node)
            if known is not None:
                return known
        return f"{self._constant(self._build(node, self._names))}(s)"

    def _leaf(self, node: Node, fields: int = 0) -> str | None:
        """Code of a value that is read without a step: a literal, a variable, or a field of one."""
        if fields > _FIELDS_MAX:
            return None
        if isinstance(node, LiteralNode):
            return self._constant(node.value)
        if isinstance(node, NameNode) and node.name in self._names:
            return f"l[{self._names[node.name]}]"
        name = dotted_name(node)
        if name in VARIABLE_NAMES:
            return f"f[{VARIABLE_NAMES.index(name)}]"
        container = self._leaf(node.object, fields + 1) if isinstance(node, FieldNode) else None
        if container is None or not isinstance(node, FieldNode):
            return None
        value, key = self._variable(), self._constant(node.key)
        missing = self._constant(Failure(f"missing key {quoted(node.key)}", node.start))
        return f"({value}.get({key}, {missing}) if ({value} := {container}).__class__ is dict else {self._otherwise(node)})"

    def _otherwise(self, node: Node) -> str:
        return f"{self._constant(self._plain(node, self._names))}(s)"

    def _constant(self, value: object) -> str:
        self.constants.append(value)
        return f"k{len(self.constants) - 1}"

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"


def _finder(text: str, cost: int) -> Callable[[list[str], Scope], bool]:
    def has(values: list[str], scope: Scope) -> bool:
        is_there = text in values
        # Inlines `scope.spend` to save the call.
        scope.left -= cost * (values.index(text) + 1 if is_there else len(values))
        if scope.left < 0:
            raise OutOfSteps
        return is_there

    return has


def _inverse_of(value: Value | Failure, not_bool: Failure) -> Failure:
    return value if isinstance(value, Failure) else not_bool


def _first_failure(not_bools: list[Failure], values: tuple[Value | Failure, ...]) -> Failure:
    """First failure of the sides of `||` or `&&`, if none decides. An unreadable place counts before the other failures."""
    failures = [
        value if isinstance(value, Failure) else not_bool
        for value, not_bool in zip(values, not_bools, strict=True)
        if type(value) is not bool
    ]
    unreadable = [failure for failure in failures if type(failure) is Unreadable]
    return unreadable[-1] if unreadable else failures[0]
