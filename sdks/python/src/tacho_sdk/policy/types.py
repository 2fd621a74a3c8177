"""
Types of expressions. `json` is a value of `tool.input` whose type is known only at the call. It is CEL's dyn, except that its
numbers are doubles and it has no times. Map keys are texts.
"""

from __future__ import annotations

from ..inner_class import inner_class


@inner_class
class Type:
    name: str
    """bool, int, double, string, null, timestamp, duration, type, json, dyn, list or map."""
    of: Type | None = None
    """Type of a list's elements, or of a map's values."""
    keys: tuple[str, ...] = ()
    """The only keys of a map, if they are known."""


BOOL = Type("bool")
INT = Type("int")
DOUBLE = Type("double")
STRING = Type("string")
NULL = Type("null")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
TYPE = Type("type")
JSON_VALUE = Type("json")
DYN = Type("dyn")
CALL = Type("map", JSON_VALUE, ("tool", "labels", "input", "ok", "decision"))
"""An element of `run.calls`."""
LIST = Type("list", DYN)
MAP = Type("map", DYN)


def list_of(of: Type) -> Type:
    return Type("list", of)


def map_of(of: Type) -> Type:
    return Type("map", of)


def is_dynamic(type_: Type) -> bool:
    return type_.name in ("dyn", "json")


def is_numeric(type_: Type) -> bool:
    return type_.name in ("int", "double")


def show_type(type_: Type) -> str:
    """Text of a type for people: `list<string>`, or dyn if the type is known only at the call."""
    if type_.of is not None:
        inner = show_type(type_.of)
        return f"list<{inner}>" if type_.name == "list" else f"map<string, {inner}>"
    return "dyn" if type_.name == "json" else type_.name


def accepts(asked: Type, given_type: Type) -> bool:
    """Whether a value of type `given` can be an argument of type `asked`."""
    if asked.name == "dyn" or given_type.name == "dyn":
        return True
    if given_type.name == "json":
        return asked.name not in ("int", "timestamp", "duration", "type")
    if asked.of is not None:
        return given_type.of is not None and asked.name == given_type.name and accepts(asked.of, given_type.of)
    return asked.name == given_type.name


def comparable(a: Type, b: Type) -> bool:
    """Whether `==` can be true for values of two types; an int can equal a double."""
    if is_dynamic(a) or is_dynamic(b) or (is_numeric(a) and is_numeric(b)):
        return True
    if a.of is not None:
        return b.of is not None and a.name == b.name and comparable(a.of, b.of)
    return a.name == b.name


def join(a: Type, b: Type) -> Type:
    """The common type of two types."""
    if a.of is not None and b.of is not None and a.name == b.name:
        return Type(a.name, join(a.of, b.of))
    return a if a.name == b.name and a.of is None else DYN
