"""
The type of an expression that follows the rules (rules.py). Rejects every operation that always fails; its result then counts
as dyn, to report one mistake only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

from .signatures import FUNCTION_SIGNATURES, METHOD_SIGNATURES, OPERATOR_SIGNATURES, Signature
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
    loop_of,
)
from .text import number_text, quoted
from .types import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    JSON_VALUE,
    LIST,
    MAP,
    NULL,
    STRING,
    TYPE,
    Type,
    accepts,
    comparable,
    is_dynamic,
    is_numeric,
    join,
    list_of,
    map_of,
    show_type,
)
from .variables import VARIABLES

Refuse = Callable[[Node, str], None]
_Locals = Mapping[str, Type]


def check_types(root: Node, refuse: Refuse) -> Type:
    return _Check(refuse).visit(root, {})


class _Check:
    def __init__(self, refuse: Refuse) -> None:
        self._refuse = refuse

    def visit(self, node: Node, names: _Locals) -> Type:
        match node:
            case LiteralNode():
                return _type_of_literal(node)
            case NameNode():
                return names.get(node.name) or VARIABLES.get(node.name) or TYPE
            case FieldNode():
                return VARIABLES.get(dotted_name(node) or "") or self._field(node, names)
            case IndexNode():
                return self._index(node, names)
            case ListNode():
                return list_of(self._join(node.elements, names)) if node.elements else LIST
            case MapNode():
                return map_of(self._join((value for _, value in node.entries), names)) if node.entries else MAP
            case ChoiceNode():
                return self._choice(node, names)
            case UnaryNode():
                operand = self.visit(node.operand, names)
                result = _result_of(OPERATOR_SIGNATURES.get(f"{node.operator}/1", []), [operand])
                return result or self._no_such(node, f"{node.operator}{show_type(operand)}")
            case BinaryNode():
                return self._binary(node, names)
            case CallNode():
                return self._call(node, names)
            case MethodNode():
                return self._method(node, names)
        raise TypeError(type(node).__name__)

    def _no_such(self, node: Node, operation: str, hint: str = "") -> Type:
        self._refuse(node, f"no such operation: {operation}{hint}")
        return DYN

    def _join(self, nodes: Iterable[Node], names: _Locals) -> Type:
        return reduce(join, [self.visit(node, names) for node in nodes])

    def _field(self, node: FieldNode, names: _Locals) -> Type:
        container = self.visit(node.object, names)
        if is_dynamic(container):
            return container
        if container.name == "map" and container.of:
            if not container.keys or node.key in container.keys:
                return container.of
            self._refuse(node, f"a call of run.calls has no {node.key}; use one of {', '.join(container.keys)}")
            return DYN
        message = f"only a map can have the key {quoted(node.key)}, but this is {show_type(container)}"
        self._refuse(node, message)
        return DYN

    def _index(self, node: IndexNode, names: _Locals) -> Type:
        container = self.visit(node.object, names)
        key = self.visit(node.key, names)
        if container.name == "dyn":
            return DYN
        if container.name == "list" and container.of and (is_dynamic(key) or key.name == "int"):
            return container.of
        if container.name == "map" and container.of and accepts(STRING, key):
            return container.of
        if container.name == "json" and (is_dynamic(key) or is_numeric(key) or key.name == "string"):
            return JSON_VALUE
        return self._no_such(node, f"{show_type(container)}[{show_type(key)}]")

    def _choice(self, node: ChoiceNode, names: _Locals) -> Type:
        condition = self.visit(node.condition, names)
        consequent = self.visit(node.consequent, names)
        alternate = self.visit(node.alternate, names)
        if accepts(BOOL, condition) and comparable(consequent, alternate):
            return join(consequent, alternate)
        parts = f"{show_type(condition)} ? {show_type(consequent)} : {show_type(alternate)}"
        return self._no_such(node, parts)

    def _binary(self, node: BinaryNode, names: _Locals) -> Type:
        left = self.visit(node.left, names)
        right = self.visit(node.right, names)
        result = _binary_result(node.operator, left, right)
        if result:
            return result
        at, hint = _binary_hint(node, left, right) or (node, "")
        return self._no_such(at, f"{show_type(left)} {node.operator} {show_type(right)}", hint)

    def _call(self, node: CallNode, names: _Locals) -> Type:
        if node.name == "has":
            if isinstance(node.values[0], FieldNode):
                self.visit(node.values[0], names)
            return BOOL
        argument_types = [self.visit(value, names) for value in node.values]
        signatures = FUNCTION_SIGNATURES.get(f"{node.name}/{len(argument_types)}", [])
        result = _result_of(signatures, argument_types)
        if result:
            return result
        options = " or ".join(_show_types(types) for types, _ in signatures)
        return self._no_such(node, f"{node.name}({_show_types(argument_types)})", f"; {node.name} takes {options}")

    def _method(self, node: MethodNode, names: _Locals) -> Type:
        receiver = self.visit(node.receiver, names)
        if loop_of(node):
            return self._loop(node, receiver, names)
        argument_types = [self.visit(value, names) for value in node.values]
        signatures = METHOD_SIGNATURES.get(f"{node.name}/{len(argument_types)}", [])
        result = _result_of(signatures, [receiver, *argument_types])
        if result:
            return result
        if receiver.name == "json" and not any(accepts(types[0], receiver) for types, _ in signatures):
            return self._no_such(node.receiver, f"dyn.{node.name}()", _time_hint("timestamp"))
        options = " or ".join(f"{show_type(types[0])}.{node.name}({_show_types(types[1:])})" for types, _ in signatures)
        operation = f"{show_type(receiver)}.{node.name}({_show_types(argument_types)})"
        return self._no_such(node, operation, f"; use {options}")

    def _loop(self, node: MethodNode, receiver: Type, names: _Locals) -> Type:
        variable, *bodies = node.values
        if not accepts(LIST, receiver) and not accepts(MAP, receiver):
            self._refuse(node.receiver, f"a loop needs a list or a map, but this is {show_type(receiver)}")
            return DYN
        # A loop over a map visits its keys. A value of tool.input can be a map or a list.
        item = receiver
        if receiver.name == "list" and receiver.of:
            item = receiver.of
        elif receiver.name == "map":
            item = STRING
        assert isinstance(variable, NameNode)
        inside = {**names, variable.name: item}
        types = [self.visit(body, inside) for body in bodies]
        transforms = types.pop() if node.name == "map" else None
        for body, type_ in zip(bodies, types, strict=False):
            if not accepts(BOOL, type_):
                self._refuse(body, f"this must be true or false, but is {show_type(type_)}")
        if transforms:
            return list_of(transforms)
        return list_of(item) if node.name == "filter" else BOOL


def _type_of_literal(node: LiteralNode) -> Type:
    types: dict[type, Type] = {str: STRING, int: INT, float: DOUBLE, bool: BOOL}
    return types.get(type(node.value), NULL)


def _result_of(signatures: Sequence[Signature], argument_types: Sequence[Type]) -> Type | None:
    """The result type for these operands: dyn if several are possible, None if there is none."""
    results = [result for asked, result in signatures if all(map(accepts, asked, argument_types))]
    if not results:
        return None
    if all(result is results[0] for result in results):
        return results[0]
    return JSON_VALUE if all(type_.name == "json" for type_ in argument_types) else DYN


def _binary_result(operator: str, left: Type, right: Type) -> Type | None:
    if operator in ("==", "!="):
        return BOOL if comparable(left, right) else None
    if operator == "in":
        return BOOL if _is_container(right, left) else None
    result = _result_of(OPERATOR_SIGNATURES.get(f"{operator}/2", []), [left, right])
    if left.name != "list" or right.name != "list":
        return result
    return join(left, right) if result and comparable(left, right) else None


def _is_container(container: Type, element: Type) -> bool:
    if container.name == "list" and container.of:
        return comparable(container.of, element)
    return is_dynamic(container) or (container.name == "map" and accepts(STRING, element))


def _binary_hint(node: BinaryNode, left: Type, right: Type) -> tuple[Node, str] | None:
    """Hints for common mistakes: comparing ints with the doubles of tool.input, and times with its texts."""
    sides = [(node.left, left, right), (node.right, right, left)]
    for at, type_, other in sides:
        if type_.name == "json" and other.name in ("timestamp", "duration"):
            return at, _time_hint(other.name)
    has_json = "json" in (left.name, right.name)
    doubles = "; numbers in tool.input are doubles and " if has_json else "; "
    if node.operator == "%":
        for at, type_, _ in sides:
            if type_.name in ("json", "double"):
                return at, f"{doubles}% takes ints: write int(…) around this"
        return None
    for at, type_, other in sides:
        if type_.name == "int" and other.name in ("json", "double"):
            write = "write double(…) around it"
            if isinstance(at, LiteralNode):
                value = at.value
                shown = number_text(value) if isinstance(value, float) else str(value)
                write = f"write {shown}.0 for {shown}"
            return at, f"{doubles}this is an int: {write}"
    return None


def _time_hint(name: str) -> str:
    return f"; times in tool.input are texts: write {name}(…) around this"


def _show_types(types: Sequence[Type]) -> str:
    return ", ".join(map(show_type, types))
