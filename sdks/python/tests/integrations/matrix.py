"""
The promise of a guard, for each integration and each way of defining a tool: the input that the tool gets is the input that
policies judge, and that is hashed, approved and recorded. A blocked or rejected call does not run, and a person is asked once.

Each way of defining a tool is an entry of `WAYS`; an integration may add its own. A `Runner` runs the calls of one answer of a
model. docs/integrations/guarded.md is generated from the results. UPDATE_DOCS=1 writes them.
"""

# No `from __future__ import annotations` here: CrewAI reads the annotations of tools directly, so they must not be texts.
import dataclasses
import datetime
import decimal
import enum
import importlib.metadata
import json
import os
import pathlib
import uuid
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import pydantic
import pydantic_core
from typing_extensions import TypedDict

from conftest import Client, Service
from tacho_sdk.policy.input_hash import input_hash

NAMES = ("allowed", "blocked", "approved", "rejected")
RESULTS = pathlib.Path(__file__).parents[4] / "packages" / "sdk-integrations" / "results"
"""What docs/integrations/guarded.md is made of."""


class Spy:
    """Keeps the inputs that tools received, by tool name."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.got: list[tuple[str, object]] = []
        self._failures = dict.fromkeys(NAMES, failure)
        """Raised by the first call of each tool."""

    def take(self, name: str, /, **given: object) -> str:
        failure = self._failures.pop(name, None)
        if failure:
            raise failure
        fields = {key: self._plain(value) for key, value in given.items()}
        self.got.append((name, fields))
        return f"did {name}"

    def _plain(self, value: object) -> object:
        return pydantic_core.to_jsonable_python(value, by_alias=False)


Function = Callable[..., Any]
Runner = Callable[[Client, dict[str, Any], dict[str, dict[str, Any]]], dict[str, str]]
"""Runs one answer of a model with calls of these tools, and returns what the model reads, by tool."""


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    row: str
    """In docs/integrations/guarded.md."""
    make: Callable[[Spy, str], Any]
    """The tool of this name: a function, or an object of the framework."""
    given: dict[str, Any]
    """What the model writes."""
    want: dict[str, Any]
    """What the tool gets, as JSON."""
    rule: str = "tool.input.amount > 100.0"
    got: dict[str, Any] | None = None
    """What the tool writes down, if pydantic writes it in another form than `want`."""


class Line(pydantic.BaseModel):
    amount: int
    note: Annotated[str, pydantic.StringConstraints(strip_whitespace=True)] = "none"


class Hiding(pydantic.BaseModel):
    amount: int = pydantic.Field(exclude=True)

    @pydantic.field_serializer("amount")
    def zero(self, _: int) -> int:
        return 0


class Open(pydantic.BaseModel, extra="allow"):
    order: int


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Item(TypedDict):
    amount: int


@dataclasses.dataclass
class Point:
    amount: int


def _typed(spy: Spy, name: str) -> Function:
    def tool(order: int, amount: int) -> str:
        """Does it."""
        return spy.take(name, order=order, amount=amount)

    return tool


def _async(spy: Spy, name: str) -> Function:
    async def tool(order: int, amount: int) -> str:
        """Does it."""
        return spy.take(name, order=order, amount=amount)

    return tool


def _default(spy: Spy, name: str) -> Function:
    def tool(order: int, amount: int = 500) -> str:
        """Does it."""
        return spy.take(name, order=order, amount=amount)

    return tool


def _strip(spy: Spy, name: str) -> Function:
    def tool(to: Annotated[str, pydantic.StringConstraints(strip_whitespace=True, to_upper=True)]) -> str:
        """Does it."""
        return spy.take(name, to=to)

    return tool


def _model(spy: Spy, name: str) -> Function:
    def tool(line: Line) -> str:
        """Does it."""
        assert isinstance(line, (Line, dict))
        return spy.take(name, line=line)

    return tool


def _models(spy: Spy, name: str) -> Function:
    def tool(order: int, lines: list[Line]) -> str:
        """Does it."""
        return spy.take(name, order=order, lines=lines)

    return tool


def _hiding(spy: Spy, name: str) -> Function:
    def tool(order: int, hidden: Hiding) -> str:
        """Does it."""
        amount = hidden["amount"] if isinstance(hidden, dict) else hidden.amount
        return spy.take(name, order=order, hidden={"amount": amount})

    return tool


def _open(spy: Spy, name: str) -> Function:
    def tool(amount: int, more: Open) -> str:
        """Does it."""
        return spy.take(name, amount=amount, more=more)

    return tool


def _union(spy: Spy, name: str) -> Function:
    def tool(amount: int | str, to: Literal["ada", "bob"] | None = None) -> str:
        """Does it."""
        return spy.take(name, amount=amount, to=to)

    return tool


def _dates(spy: Spy, name: str) -> Function:
    def tool(day: datetime.date, at: datetime.datetime, amount: decimal.Decimal, key: uuid.UUID) -> str:
        """Does it."""
        return spy.take(name, day=day, at=at, amount=amount, key=key)

    return tool


def _enum(spy: Spy, name: str) -> Function:
    def tool(size: Size, items: list[Item], point: Point) -> str:
        """Does it."""
        return spy.take(name, size=size, items=items, point=point)

    return tool


def _changing(spy: Spy, name: str) -> Function:
    def tool(amount: int, lines: list[dict[str, int]]) -> str:
        """Does it."""
        said = spy.take(name, amount=amount, lines=lines)
        lines[0]["amount"] = 1
        lines.append({})
        return said

    return tool


def _keywords(spy: Spy, name: str) -> Function:
    def tool(order: int, *, amount: float) -> str:
        """Does it."""
        return spy.take(name, order=order, amount=amount)

    return tool


_KEY = "6c84fb90-12c4-11e1-840d-7b25c5ee775a"

WAYS = [
    Way("typed arguments", "sync", _typed, {"order": 1, "amount": 500}, {"order": 1, "amount": 500}),
    Way("async function", "async", _async, {"order": 1, "amount": 500}, {"order": 1, "amount": 500}),
    Way("coercion", "coercion", _typed, {"order": "1", "amount": "500"}, {"order": 1, "amount": 500}),
    Way("default", "default", _default, {"order": 1}, {"order": 1, "amount": 500}),
    Way("extra keys", "extra keys", _typed, {"order": 1, "amount": 500, "other": 1}, {"order": 1, "amount": 500}),
    Way("trim", "trim", _strip, {"to": "  mallory "}, {"to": "MALLORY"}, 'tool.input.to == "MALLORY"'),
    Way(
        "model",
        "typed model",
        _model,
        {"line": {"amount": "500", "note": " x "}},
        {"line": {"amount": 500, "note": "x"}},
        "tool.input.line.amount > 100.0",
    ),
    Way(
        "nested models",
        "nested model",
        _models,
        {"order": 1, "lines": [{"amount": "500"}]},
        {"order": 1, "lines": [{"amount": 500, "note": "none"}]},
        "tool.input.lines.exists(line, line.amount > 100.0)",
    ),
    Way(
        "model that hides a field when written",
        "own serializer",
        _hiding,
        {"order": 1, "hidden": {"amount": 500}},
        {"order": 1, "hidden": {"amount": 500}},
        "tool.input.hidden.amount > 100.0",
    ),
    Way(
        "model with extra keys",
        "extra keys",
        _open,
        {"amount": 500, "more": {"order": 1, "x": 2}},
        {"amount": 500, "more": {"order": 1, "x": 2}},
    ),
    Way("union", "union", _union, {"amount": 500, "to": "ada"}, {"amount": 500, "to": "ada"}),
    Way(
        "dates and decimals",
        "dates",
        _dates,
        {"day": "2026-01-02", "at": "2026-01-02T03:04:05Z", "amount": "500.50", "key": _KEY},
        {"day": "2026-01-02", "at": "2026-01-02T03:04:05+00:00", "amount": 500.5, "key": _KEY},
        got={"day": "2026-01-02", "at": "2026-01-02T03:04:05Z", "amount": "500.50", "key": _KEY},
    ),
    Way(
        "enum, TypedDict and dataclass",
        "typed model",
        _enum,
        {"size": "large", "items": [{"amount": "5"}], "point": {"amount": "500"}},
        {"size": "large", "items": [{"amount": 5}], "point": {"amount": 500}},
        'tool.input.size == "large" && tool.input.point.amount > 100.0',
    ),
    Way(
        "changed argument",
        "changed argument",
        _changing,
        {"amount": 500, "lines": [{"amount": 500}]},
        {"amount": 500, "lines": [{"amount": 500}]},
    ),
    Way("keyword-only", "sync", _keywords, {"order": 1, "amount": 500.5}, {"order": 1, "amount": 500.5}),
]


def check(
    service: Service,
    make: Callable[..., Client],
    way: Way,
    run: Runner,
    wrap: Callable[[Any, str], Any],
    failure: Exception | None = None,
) -> None:
    """One answer of a model calls the tool four times: allowed, blocked, approved and rejected. `wrap` makes the framework's
    tool of a function. With `failure`, the first call of each tool fails, and the model gives that answer twice."""
    times = 2 if failure else 1
    for action, name in (
        ("WARN", "allowed"),
        ("BLOCK", "blocked"),
        ("REQUIRE_APPROVAL", "approved"),
        ("REQUIRE_APPROVAL", "rejected"),
    ):
        # A policy of MEDIUM severity matches only if its condition could read the input.
        service.deploy(f'tool.name == "{name}" && {way.rule}', action, "MEDIUM")
    asked: list[dict[str, Any]] = []
    statuses = {"approved": "APPROVED", "rejected": "REJECTED"}

    def answer(request: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        asked.append(request)
        at = {"expiresAt": "2030-01-01T00:00:00Z", "decidedAt": "2026-01-01T00:00:00Z", "decisionReason": None}
        return 201, {"id": f"a-{len(asked)}", "status": statuses[request["toolName"]], **at}, {}

    service.script("/firewall-approvals", answer)
    client, spy = make(), Spy(failure)
    tools = {name: wrap(way.make(spy, name), name) for name in NAMES}
    with client.tacho.run():
        answers = run(client, tools, {name: json.loads(json.dumps(way.given)) for name in NAMES})
    client.tacho.flush(120)

    assert sorted(name for name, _ in spy.got) == ["allowed", "approved"], (spy.got, answers)
    got = way.want if way.got is None else way.got
    assert [given for _, given in spy.got] == [got, got], spy.got
    assert "did allowed" in answers["allowed"] and "did approved" in answers["approved"]
    assert "A policy forbids this call" in answers["blocked"] and "A person rejected this call" in answers["rejected"]

    assert sorted(request["toolName"] for request in asked) == [*["approved"] * times, "rejected"]
    for request in asked:
        assert request["inputHash"] == input_hash(request["toolName"], way.want)
    decided = [event["payload"] for event in service.events if event["eventType"] == "POLICY_DECISION"]
    assert sorted(payload["toolName"] for payload in decided) == sorted(NAMES * times)
    for payload in decided:
        assert payload["inputHash"] == input_hash(payload["toolName"], way.want)
        assert payload["action"] == "WARN" or payload["input"] == way.want
    ran = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    ended = [payload for payload in ran if "output" in payload or "error" in payload]
    assert sorted(payload["toolName"] for payload in ended) == sorted(["allowed", "approved"] * times)
    assert len([payload for payload in ended if "error" in payload]) == (2 if failure else 0)
    for payload in ended:
        assert payload["input"] == way.want
        assert payload["inputHash"] == input_hash(payload["toolName"], way.want)


def check_results(
    file: str, integration: str, packages: list[str], ways: Iterable[Way], others: dict[str, Any], outside: list[str]
) -> None:
    """`others`: rows that separate tests prove."""
    proven: dict[str, Any] = {"parallel calls": "guarded", **{way.row: "guarded" for way in ways}, **others}
    order = list(json.loads((RESULTS / "ways.json").read_text()))
    assert proven.keys() <= set(order)
    results = {
        "language": "Python",
        "integration": integration,
        "page": f"{file}.md",
        "tested": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages),
        "ways": {row: proven[row] for row in order if row in proven},
        "outside": outside,
    }
    path = RESULTS / f"{file}.json"
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    assert json.loads(path.read_text()) == results, (
        "Run these tests with UPDATE_DOCS=1, then those of sdk-integrations/test/matrix."
    )
