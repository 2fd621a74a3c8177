"""The variables of a condition, with CEL types. Every variable always has a value."""

from __future__ import annotations

from .types import CALL, DOUBLE, INT, JSON_VALUE, STRING, TIMESTAMP, Type, list_of, map_of

VARIABLES: dict[str, Type] = {
    "tool.name": STRING,
    "tool.input": map_of(JSON_VALUE),
    "tool.annotations": map_of(JSON_VALUE),
    "tool.server": STRING,
    "tool.labels": list_of(STRING),
    "tool.output": JSON_VALUE,
    "agent.id": STRING,
    "agent.name": STRING,
    "run.id": STRING,
    "run.cost": DOUBLE,
    "run.totalTokens": INT,
    "run.toolCalls": INT,
    "run.labels": list_of(STRING),
    "run.calls": list_of(CALL),
    "session.id": STRING,
    "risk.signals": list_of(STRING),
    "now": TIMESTAMP,
}
VARIABLE_NAMES = list(VARIABLES)

TYPE_NAMES = ("bool", "int", "double", "string", "list", "map", "null_type", "type")


OUTPUT = "tool.output"
"""Only conditions of labels can read the output: a policy decides before the tool runs."""


def _fields_by_root() -> dict[str, list[str]]:
    roots: dict[str, list[str]] = {}
    for name in VARIABLE_NAMES:
        if name == OUTPUT:
            continue
        root, *fields = name.split(".")
        roots.setdefault(root, []).extend(fields)
    return roots


# Fields by variable: `tool` has name, input and so on; a variable without a dot has none.
FIELDS = _fields_by_root()
