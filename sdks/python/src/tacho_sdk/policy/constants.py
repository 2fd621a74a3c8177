"""
Rejects the parts of a checked condition that fail for every call: `duration("30d")`, `1 / 0`. All parts share the steps of one
evaluation; the parts that remain without steps are not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from .build import build
from .syntax import BinaryNode, MethodNode, NameNode, Node, children_of, dotted_name, is_of_history, loop_of
from .values import Failure, OutOfSteps, Scope, Value
from .variables import VARIABLE_NAMES

# Dependency of a node: the depth of the outermost loop whose variable it reads, or one of these.
_FACT = -1
_NOTHING = math.inf

_NO_FACT = Failure("constants read no facts")
_NOT_CONSTANT = object()


def check_constants(root: Node, refuse: Callable[[Node, str], None]) -> None:
    try:
        _Check(refuse).visit(root)
    except OutOfSteps:
        pass


class _NoFacts(dict[int, "Value | Failure"]):
    def __missing__(self, _slot: int) -> Failure:
        return _NO_FACT


class _Check:
    def __init__(self, refuse: Callable[[Node, str], None]) -> None:
        self._refuse = refuse
        self._reads: dict[Node, float] = {}
        self._scope = Scope(_NoFacts())

    def visit(self, node: Node) -> None:
        self._read(node, {})
        self._visit(node)

    def _read(self, node: Node, names: Mapping[str, int]) -> float:
        """The dependency of a node. Uses one frame for each level, because a condition may have 250 levels."""
        read = _NOTHING
        if isinstance(node, NameNode) and node.name in names:
            read = names[node.name]
        elif dotted_name(node) in VARIABLE_NAMES:
            read = _FACT
        elif isinstance(node, MethodNode) and loop_of(node):
            variable, *bodies = node.values
            assert isinstance(variable, NameNode)
            depth = max(names.values(), default=_FACT) + 1
            inside = {**names, variable.name: depth}
            for body in bodies:
                read = min(read, self._read(body, inside))
            read = min(self._read(node.receiver, names), _NOTHING if read == depth else read)
        else:
            for child in children_of(node):
                read = min(read, self._read(child, names))
        if is_of_history(node):
            read = _FACT
        self._reads[node] = read
        return read

    def _visit(self, node: Node) -> None:
        result = self._value_of(node)
        if isinstance(result, Failure):
            at, failure = self._innermost(node, result)
            self._refuse(at, f"this always fails: {failure.message}")
            return
        if result is not _NOT_CONSTANT:
            return
        if isinstance(node, BinaryNode) and node.operator in ("/", "%"):
            right = self._value_of(node.right)
            if type(right) is int and right == 0:
                self._refuse(node, "this always fails: division by zero")
        for child in children_of(node):
            self._visit(child)

    def _value_of(self, node: Node) -> Value | Failure | object:
        return build(node)(self._scope) if self._reads.get(node) == _NOTHING else _NOT_CONSTANT

    def _innermost(self, node: Node, failure: Failure) -> tuple[Node, Failure]:
        for child in children_of(node):
            result = self._value_of(child)
            if isinstance(result, Failure):
                return self._innermost(child, result)
        return node, failure
