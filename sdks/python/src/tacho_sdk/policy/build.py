"""Builds nested functions from a checked syntax tree, once. Running them looks up only facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .clock import TIMESTAMP_FIELDS, shown_in, zone_of
from .functions import FUNCTIONS, METHODS, Implementation
from .generate import generate
from .literals import build_comparison
from .loops import LoopParts, SoughtInput, build_loop
from .loops_of_calls import Preparation, build_loop_of_calls
from .operators import OPERATORS, negate
from .pattern import compile_pattern
from .syntax import (
    BinaryNode,
    CallNode,
    ChoiceNode,
    FieldNode,
    IndexNode,
    ListNode,
    LiteralNode,
    MapNode,
    MethodNode,
    NameNode,
    Node,
    UnaryNode,
    dotted_name,
    literal_text,
    loop_of,
    only_tool_of,
    past_of,
    size_of,
    sought_input_of,
)
from .text import quoted
from .times import Timestamp
from .values import NO_HISTORY, NO_OVERLOAD, Failure, Refusal, Scope, Step, TypeName, Value
from .variables import VARIABLE_NAMES

_Names = Mapping[str, int]
"""Visible loop variables and their slots in the scope."""
_NO_NAMES: _Names = {}


class TopNames(dict[str, int]):
    """The names around a whole condition, where no loop variable is visible."""

    def __init__(self) -> None:
        self.preparations: list[Preparation] = []
        """Prepare the condition's loops for the next decision when a call has ended."""


def build(node: Node, names: _Names = _NO_NAMES) -> Step:
    return (
        generate(node, names, build, _build_plain)
        if isinstance(node, (UnaryNode, BinaryNode, CallNode))
        else _build_plain(node, names)
    )


def _build_plain(node: Node, names: _Names) -> Step:
    match node:
        case LiteralNode():
            value = node.value
            return lambda _scope: value
        case NameNode() | FieldNode():
            return _build_name(node, names) or _build_other_name(node, names)
        case IndexNode():
            return _build_index(node, names)
        case ListNode():
            return _build_list(node, names)
        case MapNode():
            return _build_map([(literal_text(key) or "", build(value, names)) for key, value in node.entries])
        case ChoiceNode():
            return _build_choice(node, names)
        case UnaryNode():
            return _build_unary(node, names)
        case BinaryNode():
            return _build_operator(node, names)
        case CallNode():
            if node.name == "has":
                return _build_has(node, names)
            return _build_call(node, FUNCTIONS[f"{node.name}/{len(node.values)}"], node.values, names)
        case MethodNode():
            return _build_method(node, names)
    raise TypeError(type(node).__name__)


def _build_name(node: Node, names: _Names) -> Step | None:
    place = names.get(node.name) if isinstance(node, NameNode) else None
    if place is not None:
        slot_of_local = place
        return lambda scope: scope.locals[slot_of_local]
    name = dotted_name(node)
    if name not in VARIABLE_NAMES:
        return None
    slot = VARIABLE_NAMES.index(name)
    return lambda scope: scope.fact[slot]


def _build_other_name(node: NameNode | FieldNode, names: _Names) -> Step:
    if isinstance(node, FieldNode):
        return _build_field(node, names)
    type_name = TypeName(node.name)
    return lambda _scope: type_name


def _build_field(node: FieldNode, names: _Names) -> Step:
    container = build(node.object, names)
    key = node.key
    missing = Failure(f"missing key {quoted(key)}", node.start)
    not_a_map = Failure(f"only a map can have the key {quoted(key)}", node.start)

    def step(scope: Scope) -> Value | Failure:
        fields = container(scope)
        if isinstance(fields, dict):
            value: Value | Failure = fields.get(key, missing)
            return value
        return fields if isinstance(fields, Failure) else not_a_map

    return step


def _build_index(node: IndexNode, names: _Names) -> Step:
    container = build(node.object, names)
    index = build(node.key, names)
    missing = Failure("no such key or index", node.start)
    wrong_type = Failure(NO_OVERLOAD.reason, node.start)

    def step(scope: Scope) -> Value | Failure:
        source = container(scope)
        if isinstance(source, Failure):
            return source
        at = index(scope)
        if isinstance(at, Failure):
            return at
        if isinstance(source, list) and type(at) in (int, float):
            place = int(at) if at == at and abs(at) < 2**53 else -1  # type: ignore[arg-type]
            return source[place] if place == at and 0 <= place < len(source) else missing
        if isinstance(source, dict) and isinstance(at, str):
            value: Value | Failure = source.get(at, missing)
            return value
        return wrong_type

    return step


def _build_list(node: ListNode, names: _Names) -> Step:
    constant: list[Value] = [element.value for element in node.elements if isinstance(element, LiteralNode)]
    if len(constant) == len(node.elements):
        return lambda _scope: constant
    elements = [build(element, names) for element in node.elements]

    def step(scope: Scope) -> Value | Failure:
        values: list[Value] = []
        for element in elements:
            value = element(scope)
            if isinstance(value, Failure):
                return value
            values.append(value)
        return values

    return step


def _build_map(entries: list[tuple[str, Step]]) -> Step:
    def step(scope: Scope) -> Value | Failure:
        fields: dict[str, Value] = {}
        for key, entry in entries:
            value = entry(scope)
            if isinstance(value, Failure):
                return value
            fields[key] = value
        return fields

    return step


def _build_choice(node: ChoiceNode, names: _Names) -> Step:
    condition = build(node.condition, names)
    consequent = build(node.consequent, names)
    alternate = build(node.alternate, names)
    not_bool = Failure("this must be true or false", node.condition.start)

    def step(scope: Scope) -> Value | Failure:
        chosen = condition(scope)
        if type(chosen) is not bool:
            return chosen if isinstance(chosen, Failure) else not_bool
        return consequent(scope) if chosen else alternate(scope)

    return step


def _build_unary(node: UnaryNode, names: _Names) -> Step:
    operand = build(node.operand, names)
    start = node.start

    def step(scope: Scope) -> Value | Failure:
        value = operand(scope)
        return value if isinstance(value, Failure) else _located(negate(value), start)

    return step


def _build_operator(node: BinaryNode, names: _Names) -> Step:
    left = build(node.left, names)
    right = build(node.right, names)
    comparison = build_comparison(node, left, right)
    if comparison is not None:
        return comparison
    apply = OPERATORS[node.operator]
    start = node.start

    def step(scope: Scope) -> Value | Failure:
        first = left(scope)
        if isinstance(first, Failure):
            return first
        second = right(scope)
        return second if isinstance(second, Failure) else _located(apply(first, second, scope), start)

    return step


def _build_has(node: CallNode, names: _Names) -> Step:
    field = node.values[0]
    assert isinstance(field, FieldNode)
    if _build_name(field, names):
        return lambda _scope: True
    container = build(field.object, names)
    key = field.key
    not_a_map = Failure(f"only a map can have the key {quoted(key)}", field.start)

    def step(scope: Scope) -> Value | Failure:
        fields = container(scope)
        if isinstance(fields, dict):
            return key in fields
        return fields if isinstance(fields, Failure) else not_a_map

    return step


def _build_loop_at(node: MethodNode, loop: str, names: _Names) -> Step:
    variable, *bodies = node.values
    assert isinstance(variable, NameNode)
    place = max(names.values(), default=-1) + 1
    inside = {**names, variable.name: place}
    sought = sought_input_of(node) if place == 0 else None
    parts = LoopParts(
        loop=loop,
        iterable=_build_iterable(node, names),
        bodies=[build(body, inside) for body in bodies],
        place=place,
        weight=sum(map(size_of, bodies)),
        not_iterable=Failure("a loop needs a list or a map", node.receiver.start),
        not_bool=Failure("this must be true or false", bodies[0].start),
        past=past_of(node) if place == 0 else None,
        sought=None if sought is None else SoughtInput(only_tool_of(node), sought[0], build(sought[1])),
    )
    preparations = names.preparations if isinstance(names, TopNames) else []
    return build_loop_of_calls(parts, preparations) or build_loop(parts)


def _build_iterable(node: MethodNode, names: _Names) -> Step:
    tool = only_tool_of(node)
    if tool is None:
        return build(node.receiver, names)
    only_tool = tool
    return lambda scope: NO_HISTORY if scope.history is None else scope.history.calls_of(only_tool)


def _build_method(node: MethodNode, names: _Names) -> Step:
    loop = loop_of(node)
    if loop:
        return _build_loop_at(node, loop, names)
    text = literal_text(node.values[0]) if node.values else None
    if node.name == "matches" and text is not None:
        return _build_call(node, _pattern_method(text), [node.receiver], names)
    if node.name in TIMESTAMP_FIELDS and text is not None:
        return _build_call(node, _zone_method(node.name, text), [node.receiver], names)
    method = METHODS[f"{node.name}/{len(node.values)}"]
    return _build_call(node, method, [node.receiver, *node.values], names)


def _build_call(node: Node, apply: Implementation, inputs: list[Node], names: _Names) -> Step:
    steps = [build(inner_step, names) for inner_step in inputs]
    start = node.start
    if len(steps) == 1:
        only_step = steps[0]

        def step_of_one(scope: Scope) -> Value | Failure:
            value = only_step(scope)
            return value if isinstance(value, Failure) else _located(apply([value], scope), start)

        return step_of_one

    def step(scope: Scope) -> Value | Failure:
        values: list[Value] = []
        for inner_step in steps:
            value = inner_step(scope)
            if isinstance(value, Failure):
                return value
            values.append(value)
        return _located(apply(values, scope), start)

    return step


def _pattern_method(source: str) -> Implementation:
    pattern = compile_pattern(source)

    def apply(values: list[Value], scope: Scope) -> Value | Refusal:
        text = values[0]
        return pattern.matches(text, scope) if isinstance(text, str) else NO_OVERLOAD

    return apply


def _zone_method(name: str, zone_name: str) -> Implementation:
    zone = zone_of(zone_name)
    assert zone is not None
    in_zone = zone
    field: Callable[..., int] = TIMESTAMP_FIELDS[name]

    def apply(values: list[Value], scope: Scope) -> Value | Refusal:
        time = values[0]
        if not isinstance(time, Timestamp):
            return NO_OVERLOAD
        scope.spend(100)
        return field(shown_in(in_zone, time))

    return apply


def _located(result: Value | Refusal, start: int) -> Value | Failure:
    return Failure(result.reason, start) if type(result) is Refusal else result  # type: ignore[return-value]
