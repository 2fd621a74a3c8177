"""The arguments of every kind of tool are checked, and each call is recorded."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from typing_extensions import TypedDict, Unpack

from conftest import Client, Service
from tacho_sdk.integrations.openai import acall_tools, call_tools

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]

Make = Callable[..., Client]
pydantic = pytest.importorskip("pydantic")


def _raise(value: Any) -> Any:
    raise KeyError(value)


class Named(TypedDict, total=False):
    order: int


@dataclasses.dataclass
class Data:
    order: int


class Plain:
    def __init__(self, order: int) -> None: ...


def unresolved(order: int, other: Missing = None) -> str:
    return "ran"


def rest(**named: int) -> str:
    return "ran"


def unpacked(**named: Unpack[Named]) -> str:
    return "ran"


def validated(order: Annotated[int, pydantic.AfterValidator(_raise)]) -> str:
    return "ran"


@pytest.mark.parametrize("tool", [unresolved, rest, unpacked, Data, Plain, validated])
def test_arguments_that_do_not_fit_never_run(make: Make, service: Service, tool: Any) -> None:
    client = make().tacho
    given = 7 if tool is validated else "seven"
    call = {"id": "c", "function": {"name": "t", "arguments": json.dumps({"order": given})}}
    with client.run():
        call_tools({"tool_calls": [call]}, {"t": tool}, client)
    client.flush(120)
    (told,) = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    assert (told["outcome"], told["reasonCode"]) == ("never_ran", "unfit")


def test_a_function_without_a_signature_is_called(make: Make, service: Service) -> None:
    client = make().tacho
    call = {"id": "c", "function": {"name": "t", "arguments": '{"order": 7}'}}
    with client.run():
        assert client.run_tool("max", max, (1, 2), {}) == 2
        call_tools({"tool_calls": [call]}, {"t": max}, client)
    client.flush(120)
    first, second = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    assert (first["input"], first["outcome"], second["outcome"]) == ({"args": [1, 2]}, "returned", "failed")


class Async:
    async def __call__(self, order: int) -> str:
        await asyncio.sleep(0)
        return f"refunded {order}"


@pytest.mark.parametrize("tool", [Async(), Async().__call__])
def test_async_tools_run_in_every_way(make: Make, tool: Any) -> None:
    client = make().tacho
    asked = {"tool_calls": [{"id": "c", "function": {"name": "t", "arguments": '{"order": 7}'}}]}

    async def inside() -> Any:
        return [call_tools(asked, {"t": tool}, client), await acall_tools(asked, {"t": tool}, client)]

    with client.run():
        answers = [call_tools(asked, {"t": tool}, client), *asyncio.run(inside())]
    assert [one["content"] for (one,) in answers] == ["refunded 7"] * 3
