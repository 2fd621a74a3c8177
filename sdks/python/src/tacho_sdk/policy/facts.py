"""The facts of a tool call, as conditions see them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..exact import exact_number, exact_text
from .history.run_history import NO_OUTPUT, RunHistory
from .limits import INPUT_LEVELS, INPUT_VALUES
from .plain_json import NotPlainJson, copy_json
from .times import timestamp_of_milliseconds
from .values import NO_HISTORY, Failure, Unreadable, Value
from .variables import VARIABLE_NAMES

# Largest safe integer of JavaScript.
_SAFE = 2**53 - 1
_TEXT = frozenset({str})


# Not frozen, because frozen objects take three times as long to create.
@dataclass(slots=True)
class Facts:
    """
    A missing text counts as "", a missing input and missing annotations as {}. A fact with the wrong type fails the
    conditions that need it.
    """

    tool_name: str
    tool_input: object
    now: float
    """Unix time in milliseconds: this package never reads a clock."""
    agent_id: str | None = None
    agent_name: str | None = None
    run_id: str | None = None
    run_cost: float | None = None
    run_total_tokens: int | None = None
    run_tool_calls: int | None = None
    session_id: str | None = None
    risk_signals: Sequence[str] | None = None
    tool_annotations: object = None
    tool_labels: Sequence[str] | None = None
    tool_output: object = NO_OUTPUT
    """Output of the tool, for conditions of labels: no policy reads it."""
    run_history: RunHistory | None = None
    """Past of the run; without it, conditions on the past fail."""
    tool_server: str | None = None
    """The tool's MCP server, if the name does not contain it."""
    unknown: frozenset[str] = frozenset()
    """Variables without a value. They fail the conditions that need them."""


_WRONG = object()
_READERS: dict[str, Callable[[Facts], object]] = {
    "tool.name": lambda facts: _text(facts.tool_name),
    "tool.server": lambda facts: name_parts(facts)[0],
    "tool's own name": lambda facts: name_parts(facts)[1],
    "tool.input": lambda facts: _input(facts.tool_input),
    "tool.annotations": lambda facts: _input(facts.tool_annotations),
    "tool.labels": lambda facts: _texts(facts.tool_labels),
    "tool.output": lambda facts: _output(facts.tool_output),
    "agent.id": lambda facts: _text(facts.agent_id),
    "agent.name": lambda facts: _text(facts.agent_name),
    "run.id": lambda facts: _text(facts.run_id),
    "run.cost": lambda facts: _double(facts.run_cost),
    "run.totalTokens": lambda facts: _int(facts.run_total_tokens),
    "run.toolCalls": lambda facts: _int(facts.run_tool_calls),
    "run.labels": lambda facts: NO_HISTORY if facts.run_history is None else facts.run_history.labels,
    "run.calls": lambda facts: NO_HISTORY if facts.run_history is None else facts.run_history.calls,
    "session.id": lambda facts: _text(facts.session_id),
    "risk.signals": lambda facts: _texts(facts.risk_signals),
    "now": lambda facts: timestamp_of_milliseconds(facts.now) or _WRONG,
}


_NAME = VARIABLE_NAMES.index("tool.name")
_RUN_LABELS = VARIABLE_NAMES.index("run.labels")
_OF_HISTORY = (_RUN_LABELS, VARIABLE_NAMES.index("run.calls"))
OWN_NAME = len(VARIABLE_NAMES)
"""The slot of the tool's own name, for conditions that read `tool.server`."""


# The fields of the variables that are texts.
_TEXT_FIELDS = {slot: name.replace(".", "_") for slot, name in enumerate(VARIABLE_NAMES) if name.endswith((".name", ".id"))}


class FactReader(dict[int, "Value | Failure"]):
    """
    Reads each fact at its first use and caches it. A condition without `tool.input` neither copies it nor fails because of it.
    The slot of a variable is its index in VARIABLE_NAMES. Never raises.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __missing__(self, slot: int) -> Value | Failure:
        facts = self._facts
        if slot in _OF_HISTORY and facts.run_history is not None and not facts.unknown:
            value: Any = facts.run_history.labels if slot == _RUN_LABELS else facts.run_history.calls
        else:
            field = _TEXT_FIELDS.get(slot)
            value = None if field is None or facts.unknown else getattr(facts, field)
            if type(value) is not str:
                value = _read("tool's own name" if slot == OWN_NAME else VARIABLE_NAMES[slot], facts)
        self[slot] = value
        return value  # type: ignore[no-any-return]


class OwnNameReader(dict[int, "Value | Failure"]):
    """Facts for a condition that reads `tool.server`: `tool.name` is the tool's own name."""

    def __init__(self, fact: Mapping[int, Value | Failure]) -> None:
        self._fact = fact

    def __missing__(self, slot: int) -> Value | Failure:
        value = self[slot] = self._fact[OWN_NAME if slot == _NAME else slot]
        return value


def _read(name: str, facts: Facts) -> Value | Failure:
    if name in facts.unknown:
        return Failure(f"{name} is not known outside a run")
    try:
        value = _READERS[name](facts)
    except NotPlainJson as error:
        return _unreadable(error.reason)
    except Exception:
        if name == "tool.input":
            return Unreadable("tool.input cannot be read")
        return Failure(f"the fact {name} cannot be read")
    return Failure(f"the fact {name} has the wrong type") if value is _WRONG else value  # type: ignore[return-value]


_OF_SERVER = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)


def name_parts(facts: Facts) -> tuple[object, object]:
    """
    The server and the tool's own name: hooks of coding agents use `mcp__db__drop_table`, a guard of the server
    `drop_table`. If the client names a server, the name is the tool's own.
    """
    name, server = _text(facts.tool_name), _text(facts.tool_server)
    if not isinstance(name, str) or not isinstance(server, str):
        return _WRONG, _WRONG
    spelled = None if server else _OF_SERVER.fullmatch(name)
    return (spelled[1], spelled[2]) if spelled else (server, name)


def _text(value: object) -> object:
    if type(value) is str:
        return value
    text = "" if value is None else exact_text(value)
    return _WRONG if text is None else text


def _double(value: object) -> object:
    if type(value) is float and math.isfinite(value):
        return value
    number = 0 if value is None else exact_number(value)
    return float(number) if number is not None and math.isfinite(number) else _WRONG


def _int(value: object) -> object:
    number = 0 if value is None else exact_number(value)
    return number if type(number) is int and abs(number) <= _SAFE else _WRONG


def _input(value: object) -> object:
    fields = {} if value is None else value
    copied = copy_json(fields, max_values=INPUT_VALUES, max_levels=INPUT_LEVELS, mark=_unreadable)
    return copied if isinstance(copied, (dict, Unreadable)) else Unreadable("tool.input is not an object")


def _output(value: object) -> object:
    if value is NO_OUTPUT:
        return Failure("the output of a tool is not known before it runs")
    return copy_json(value, max_values=INPUT_VALUES, max_levels=INPUT_LEVELS)


def _unreadable(reason: str) -> Unreadable:
    return Unreadable(f"a value in tool.input {reason}")


def _texts(value: object) -> object:
    values = () if value is None else value
    if type(values) not in (list, tuple) or len(values) > INPUT_VALUES:  # type: ignore[arg-type]
        return _WRONG
    if _TEXT.issuperset(map(type, values)):  # type: ignore[call-overload]
        return list(values)  # type: ignore[call-overload]
    texts = [exact_text(element) for element in values]  # type: ignore[attr-defined]
    return _WRONG if None in texts else texts
