"""The syntax tree. `start` and `end` count characters of the source."""

from __future__ import annotations

import typing

from ..inner_class import inner_class

Literal = None | bool | str | int | float


@inner_class
class Node:
    start: int
    end: int


@inner_class
class LiteralNode(Node):
    value: Literal


@inner_class
class NameNode(Node):
    name: str


@inner_class
class FieldNode(Node):
    object: Node
    key: str


@inner_class
class IndexNode(Node):
    object: Node
    key: Node


@inner_class
class ListNode(Node):
    elements: list[Node]


@inner_class
class MapNode(Node):
    entries: list[tuple[Node, Node]]


@inner_class
class ChoiceNode(Node):
    condition: Node
    consequent: Node
    alternate: Node


@inner_class
class UnaryNode(Node):
    operator: str
    operand: Node


@inner_class
class BinaryNode(Node):
    operator: str
    left: Node
    right: Node


@inner_class
class CallNode(Node):
    name: str
    values: list[Node]


@inner_class
class MethodNode(Node):
    name: str
    receiver: Node
    values: list[Node]


LOOPS = ("all/2", "exists/2", "exists_one/2", "map/2", "map/3", "filter/2")


def children_of(node: Node) -> list[Node]:
    match node:
        case FieldNode():
            return [node.object]
        case IndexNode():
            return [node.object, node.key]
        case ListNode():
            return node.elements
        case MapNode():
            return [inner_node for entry in node.entries for inner_node in entry]
        case ChoiceNode():
            return [node.condition, node.consequent, node.alternate]
        case UnaryNode():
            return [node.operand]
        case BinaryNode():
            return [node.left, node.right]
        case CallNode():
            return node.values
        case MethodNode():
            return [node.receiver, *node.values]
    return []


def size_of(node: Node) -> int:
    """The number of nodes in a tree."""
    return 1 + sum(map(size_of, children_of(node)))


def loop_of(node: MethodNode) -> str | None:
    """The loop of a method call, if it is one. Its first argument is then the name of the loop variable."""
    name = f"{node.name}/{len(node.values)}"
    return name if name in LOOPS else None


def literal_text(node: Node | None) -> str | None:
    """The text of a text literal."""
    return node.value if isinstance(node, LiteralNode) and isinstance(node.value, str) else None


def dotted_name(node: Node) -> str | None:
    """`now` for a name, `tool.name` for a field of a name."""
    if isinstance(node, NameNode):
        return node.name
    if isinstance(node, FieldNode) and isinstance(node.object, NameNode):
        return f"{node.object.name}.{node.key}"
    return None


def is_of_history(node: Node) -> bool:
    """Whether a node reads the past of the run in addition to its arguments."""
    return isinstance(node, CallNode) and node.name == "origin"


def tools_of(node: Node) -> tuple[str, ...]:
    """The tools that a condition names first, as in `tool.name == "pay" && …` or `tool.name in ["pay", "send"] && …`."""
    while isinstance(node, BinaryNode) and node.operator == "&&":
        node = node.left
    if not isinstance(node, BinaryNode) or dotted_name(node.left) != "tool.name":
        return ()
    named = [node.right] if node.operator == "==" else []
    if node.operator == "in" and isinstance(node.right, ListNode):
        named = node.right.elements
    texts = [literal_text(one) for one in named]
    return () if None in texts else tuple(texts)  # type: ignore[arg-type]


def only_tool_of(node: MethodNode) -> str | None:
    """
    The only tool whose calls a loop over `run.calls` looks at, if a part of its condition says so: `c.tool == "pay" && …`. The
    others cannot change the result, because false decides a conjunction even beside an error.
    """
    variable, condition = node.values[0], node.values[1]
    loop = loop_of(node)
    if dotted_name(node.receiver) != "run.calls" or not isinstance(variable, NameNode) or loop == "map/2":
        return None
    joiner, comparison = ("||", "!=") if loop == "all/2" else ("&&", "==")
    name = f"{variable.name}.tool"
    parts: list[Node] = [condition]
    while parts:
        inner_part = parts.pop()
        if not isinstance(inner_part, BinaryNode):
            continue
        if inner_part.operator == joiner:
            parts += [inner_part.right, inner_part.left]
        elif inner_part.operator == comparison:
            text = literal_text(inner_part.right) if dotted_name(inner_part.left) == name else None
            if text is None and dotted_name(inner_part.right) == name:
                text = literal_text(inner_part.left)
            if text is not None:
                return text
    return None


def sought_input_of(node: MethodNode) -> tuple[tuple[str, ...], Node] | None:
    """
    The path and the value in `c.input.id == tool.input.id && …` of a loop over `run.calls`. The parts before it spend no step.
    The value is a variable, or a field of one.
    """
    variable, condition = node.values[0], node.values[1]
    loop = loop_of(node)
    if dotted_name(node.receiver) != "run.calls" or not isinstance(variable, NameNode) or loop in ("map/2", "map/3"):
        return None
    joiner, comparison = ("||", "!=") if loop == "all/2" else ("&&", "==")
    parts = [condition]
    while isinstance(parts[0], BinaryNode) and parts[0].operator == joiner:
        parts[:1] = [parts[0].left, parts[0].right]
    for inner_part in parts:
        if isinstance(inner_part, BinaryNode) and inner_part.operator == comparison:
            for side, other in ((inner_part.left, inner_part.right), (inner_part.right, inner_part.left)):
                path, value_path = _path_of(side), _path_of(other)
                if path[:2] == (variable.name, "input") and len(path) > 2 and value_path[:1] not in ((), (variable.name,)):
                    return path[1:], other
        if not _is_free(inner_part, variable.name, comparison):
            return None
    return None


def _path_of(node: Node) -> tuple[str, ...]:
    """The name and the fields of `a.b.c`; empty for anything else."""
    if isinstance(node, NameNode):
        return (node.name,)
    path = _path_of(node.object) if isinstance(node, FieldNode) else ()
    return (*path, node.key) if path and isinstance(node, FieldNode) else ()


def _is_free(node: Node, variable: str, comparison: str) -> bool:
    """Whether a part of a condition in a loop over calls spends no step. A short name of a tool is compared without one."""
    if isinstance(node, BinaryNode) and node.operator == comparison:
        left, right = dotted_name(node.left), dotted_name(node.right)
        text = literal_text(node.right if left == f"{variable}.tool" else node.left)
        return f"{variable}.tool" in (left, right) and text is not None and len(text) < 16
    if isinstance(node, UnaryNode) and node.operator == "!":
        node = node.operand
    if isinstance(node, CallNode) and node.name == "has":
        node = node.values[0]
    return _path_of(node)[:1] == (variable,)


_SETTLED = ("tool", "labels", "ok", "decision")


def past_of(node: MethodNode) -> typing.Literal["settled", "inputs"] | None:
    """
    Which members of calls a loop over `run.calls` reads. "settled": only members that are final when a call has ended.
    "inputs": also inputs, which old calls lose. None: the loop also reads facts outside these calls.
    """
    variable = node.values[0]
    if dotted_name(node.receiver) != "run.calls" or not isinstance(variable, NameNode):
        return None
    names = {variable.name}
    past: typing.Literal["settled", "inputs"] = "settled"
    nodes = node.values[1:]
    while nodes:
        inner_node = nodes.pop()
        if isinstance(inner_node, FieldNode) and dotted_name(inner_node.object) == variable.name:
            if inner_node.key not in _SETTLED:
                past = "inputs"
        elif is_of_history(inner_node) or (isinstance(inner_node, NameNode) and inner_node.name not in names - {variable.name}):
            return None
        elif isinstance(inner_node, MethodNode) and loop_of(inner_node):
            inner_variable = inner_node.values[0]
            if isinstance(inner_variable, NameNode):
                if inner_variable.name == variable.name:
                    return None
                names.add(inner_variable.name)
            nodes += [inner_node.receiver, *inner_node.values[1:]]
        else:
            nodes += children_of(inner_node)
    return past
