"""The JSON form of models and arrays, and calls inside guarded calls."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime
import decimal
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import tacho_sdk as tacho
from conftest import Client, Service
from tacho_sdk.guarding.json_form import is_readable, is_same, json_form, shown

Make = Callable[..., Client]


def test_pydantic_models_count_by_every_field_that_the_tool_sees() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Line(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        model_config = {"extra": "allow"}
        price: decimal.Decimal
        due: datetime.date
        hidden: int = pydantic.Field(default=3, exclude=True)
        named: int = pydantic.Field(default=4, alias="Named")

    class Root(pydantic.RootModel[list[Line]]):  # type: ignore[misc, name-defined]
        pass

    class Secret(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        key: pydantic.SecretStr  # type: ignore[name-defined]
        open: int = 1

    line = Line(price="500.00", due="2026-01-02", more={"a": 1})
    form = {"price": 500, "due": "2026-01-02", "hidden": 3, "named": 4, "more": {"a": 1}}
    assert json_form(line) == form and json_form(Root([line])) == [form]
    # Different secrets have the same text.
    secret = json_form(Secret(key="S3"))
    assert not is_readable(secret) and secret["open"] == 1 and "S3" not in str(shown(secret))


def test_a_container_that_reads_otherwise_than_it_holds_has_no_form() -> None:
    class Lying(dict[str, Any]):
        def items(self) -> Any:
            return {"amount": 1}.items()

    class Missing(dict[str, Any]):
        def __missing__(self, key: str) -> int:
            return 500

    class Other(list[int]):
        def __iter__(self) -> Any:
            return iter([1])

    class Plain(dict[str, Any]):
        def total(self) -> int:
            return 500

    class Pair(NamedTuple):
        amount: int

    for source in (Lying(amount=500), Missing(), Other([500])):
        assert not is_readable(json_form({"given": source}))
    known = [Plain(amount=1), collections.OrderedDict(amount=1), collections.defaultdict(int, amount=1), Pair(1)]
    assert [json_form(source) for source in known] == [{"amount": 1}, {"amount": 1}, {"amount": 1}, [1]]


class Scalar:
    """A scalar like NumPy's: only `tolist` returns the number."""

    size = 1

    def __init__(self, held: Any) -> None:
        self.held = held

    def tolist(self) -> Any:
        return self.held


Scalar.__module__ = "numpy"


def test_values_of_numpy_count_by_their_numbers() -> None:
    assert json_form({"n": Scalar(500), "list": Scalar([1.5, [2]]), "truth": Scalar(True)}) == {
        "n": 500,
        "list": [1.5, [2]],
        "truth": True,
    }
    assert not is_readable(json_form(Scalar(1j)))


def test_forms_tell_true_from_one_and_one_object_from_another() -> None:
    assert is_same(json_form({"a": [1, "x", b"x", 2**60 + 1]}), json_form({"a": [1, "x", b"x", 2**60 + 1]}))
    assert not is_same(json_form([1]), json_form([True]))
    assert not is_same(json_form([b"x"]), json_form([b"y"]))
    assert not is_same(json_form([object()]), json_form([object()]))


def test_arguments_too_large_to_read_are_the_same_whenever_they_are_read() -> None:
    numbers, other = [*range(100_000)], [*range(100_000)]
    # Keep all objects alive at the same time, so that no two have the same id.
    first, again, changed = {"n": numbers, "x": 1.5}, {"n": numbers, "x": 1.5}, {"n": other, "x": 1.5}
    forms = [json_form(given) for given in (first, again, changed, {"n": numbers, "x": 2.5})]
    assert [is_same(forms[0], form) for form in forms] == [True, True, False, False]
    assert [is_same(json_form(json_form), json_form(given)) for given in (json_form, is_same)] == [True, False]


def test_a_large_a_circular_and_a_deep_input_are_read_within_bounds() -> None:
    many: list[Any] = []
    for _ in range(40):
        many = [many, many]
    circular: dict[str, Any] = {"amount": 1}
    circular["self"] = circular
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert not is_readable(json_form(many)) and not is_readable(json_form(deep))
    form = json_form(circular)
    assert form["amount"] == 1 and not is_readable(form)


@dataclasses.dataclass
class Place:
    how: str


@pytest.mark.parametrize(
    "place", [Place("awaited"), Place("task"), Place("thread"), Place("later task")], ids=lambda one: one.how
)
def test_what_runs_inside_a_guarded_tool_is_guarded(make: Make, service: Service, place: Place) -> None:
    """The inner call may also run in a task or thread that the outer call starts."""
    service.deploy('tool.name == "inner"', "BLOCK")
    client = make()
    ran: list[str] = []
    refused: list[str] = []

    @client.tacho.guard
    async def inner() -> None:
        ran.append("inner")

    async def try_inner() -> None:
        try:
            await inner()
        except tacho.ToolBlockedError as error:
            refused.append(error.code)

    later: list[asyncio.Task[None]] = []

    @client.tacho.guard
    async def outer() -> None:
        if place.how == "awaited":
            await try_inner()
        elif place.how == "task":
            await asyncio.create_task(try_inner())
        elif place.how == "later task":
            later.append(asyncio.create_task(try_inner()))
        else:
            thread = threading.Thread(target=lambda: asyncio.run(try_inner()))
            thread.start()
            await asyncio.to_thread(thread.join)

    async def main() -> None:
        async with client.tacho.run():
            await outer()
            await asyncio.gather(*later)

    asyncio.run(main())
    assert (ran, refused) == ([], ["policy"])
