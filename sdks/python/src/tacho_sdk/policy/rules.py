"""
Rules of the profile beyond CEL's grammar and types: only declared names and functions, limited nesting, patterns and zones as
valid literals.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..inner_class import inner_class
from .clock import TIMESTAMP_FIELDS, zone_of
from .limits import COMPREHENSION_LEVELS, NESTING_LEVELS, PATTERN_FOLDED_CHARS, PATTERN_REPEATS
from .parse import TOO_DEEP
from .pattern import BadPattern, compile_pattern, folded_chars_of, repeats_of
from .position import Fault, in_order, position_at
from .signatures import FUNCTION_SIGNATURES, METHOD_SIGNATURES
from .syntax import (
    LOOPS,
    CallNode,
    FieldNode,
    MapNode,
    MethodNode,
    NameNode,
    Node,
    children_of,
    literal_text,
    loop_of,
)
from .text import quoted
from .variables import FIELDS, OUTPUT, TYPE_NAMES

# All functions and methods, with their argument counts.
_CALLS = [*FUNCTION_SIGNATURES, "has/1"]
_METHOD_CALLS = [*METHOD_SIGNATURES, *LOOPS]

_TOO_MANY_REPEATS = f"the sum of all counts in {{…}} of all patterns must be at most {PATTERN_REPEATS}"
_TOO_MANY_FOLDED = f"the ranges of all patterns with (?i) must have at most {PATTERN_FOLDED_CHARS} characters together"


def check_rules(root: Node, source: str, of_labels: bool) -> list[Fault]:
    """All faults, in source order."""
    rules = _Rules(source, of_labels)
    rules.visit(root, _Place(1, 0, frozenset()))
    return in_order(rules.faults)


@inner_class
class _Place:
    level: int
    loops: int
    variables: frozenset[str]


class _Rules:
    def __init__(self, source: str, of_labels: bool) -> None:
        self._source = source
        self._of_labels = of_labels
        self.faults: list[Fault] = []
        self._repeats = 0
        self._folded_chars = 0

    def _refuse(self, node: Node, message: str) -> None:
        self.faults.append(Fault(message, position_at(self._source, node.start, node.end)))

    def visit(self, node: Node, place: _Place) -> None:
        if place.level > NESTING_LEVELS:
            # Everything below is also nested too deeply; report it once.
            if not self.faults or self.faults[-1].message != TOO_DEEP:
                self._refuse(node, TOO_DEEP)
            return
        inner = replace(place, level=place.level + 1)
        match node:
            case NameNode():
                return self._name(node, place.variables)
            case FieldNode():
                return self._field(node, inner)
            case CallNode():
                return self._call(node, inner)
            case MethodNode():
                return self._method(node, inner)
            case MapNode():
                self._keys(key for key, _ in node.entries)
        for child in children_of(node):
            self.visit(child, inner)

    def _name(self, node: NameNode, variables: frozenset[str]) -> None:
        name = node.name
        if name in variables or name in TYPE_NAMES:
            return
        fields = FIELDS.get(name)
        if fields is None:
            return self._refuse(node, f"unknown name {name}; use one of {', '.join(FIELDS)}")
        if fields:
            names = ", ".join(f"{name}.{field}" for field in fields)
            self._refuse(node, f"{name} needs a field; use one of {names}")

    def _field(self, node: FieldNode, place: _Place) -> None:
        inner = node.object
        root = inner.name if isinstance(inner, NameNode) and inner.name not in place.variables else ""
        fields = FIELDS.get(root)
        if fields is None:
            return self.visit(inner, place)
        if node.key not in fields and not (self._of_labels and f"{root}.{node.key}" == OUTPUT):
            hint = f"use one of {', '.join(fields)}" if fields else "it has no fields"
            self._refuse(node, f"{root} has no field {node.key}; {hint}")

    def _call(self, node: CallNode, place: _Place) -> None:
        self._check_call(node, _CALLS, node.name, len(node.values))
        for value in node.values:
            self.visit(value, place)
        if node.name == "has" and len(node.values) == 1 and not isinstance(node.values[0], FieldNode):
            self._refuse(
                node,
                'has needs a field, for example has(tool.input.amount); for other keys write "key" in tool.input',
            )

    def _method(self, node: MethodNode, place: _Place) -> None:
        self.visit(node.receiver, place)
        self._check_call(node, _METHOD_CALLS, node.name, len(node.values))
        if loop_of(node):
            return self._loop(node.values, place)
        if node.values and node.name == "matches":
            self._pattern(node.values[0])
        if node.values and node.name in TIMESTAMP_FIELDS:
            self._zone(node.values[0])
        for value in node.values:
            self.visit(value, place)

    def _check_call(self, node: Node, known: list[str], name: str, argument_count: int) -> None:
        if f"{name}/{argument_count}" in known:
            return
        counts = [call[len(name) + 1 :] for call in known if call.startswith(f"{name}/")]
        if not counts:
            return self._refuse(node, f"{name} is not part of the policy language")
        noun = "argument" if counts[-1] == "1" else "arguments"
        self._refuse(node, f"{name} takes {' or '.join(counts)} {noun}, not {argument_count}")

    def _loop(self, values: list[Node], place: _Place) -> None:
        variable, *bodies = values
        if not isinstance(variable, NameNode):
            return self._refuse(variable, "the first argument of a loop must be a variable name")
        name = variable.name
        if name in FIELDS or name in TYPE_NAMES:
            self._refuse(variable, f"{name} already has a meaning; choose another name")
        if place.loops >= COMPREHENSION_LEVELS:
            message = f"loops must be nested at most {COMPREHENSION_LEVELS} levels deep"
            return self._refuse(variable, message)
        inside = replace(place, loops=place.loops + 1, variables=place.variables | {name})
        for body in bodies:
            self.visit(body, inside)

    def _pattern(self, node: Node) -> None:
        pattern = literal_text(node)
        if pattern is None:
            message = "the pattern must be a text literal, because only literals can be checked"
            return self._refuse(node, message)
        self._repeats += repeats_of(pattern)
        self._folded_chars += folded_chars_of(pattern)
        if self._repeats > PATTERN_REPEATS:
            return self._refuse(node, _TOO_MANY_REPEATS)
        if self._folded_chars > PATTERN_FOLDED_CHARS:
            return self._refuse(node, _TOO_MANY_FOLDED)
        try:
            compile_pattern(pattern)
        except BadPattern as error:
            self._refuse(node, str(error))

    def _zone(self, node: Node) -> None:
        zone = literal_text(node)
        if zone is None:
            self._refuse(node, "the time zone must be a text literal")
        elif zone_of(zone) is None:
            self._refuse(node, f'unknown time zone {zone}: write a name such as "Europe/Berlin" or "+02:00"')

    def _keys(self, keys: Iterable[Node]) -> None:
        seen: set[str] = set()
        for key in keys:
            text = literal_text(key)
            if text is None:
                self._refuse(key, "a key must be a text literal")
            elif text in seen:
                self._refuse(key, f"the key {quoted(text)} occurs twice")
            else:
                seen.add(text)
