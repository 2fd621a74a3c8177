"""A guarded call judges, hashes, shows, records and runs one and the same input. It counts as soon as it is admitted."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import functools
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service
from tacho_sdk.guarding.arguments import Arguments
from test_guard import answer, ask, created

Make = Callable[..., Client]


def kinds(service: Service) -> list[str]:
    return [event["eventType"] for event in service.events]


def payloads(service: Service, kind: str) -> list[dict[str, Any]]:
    return [event["payload"] for event in service.events if event["eventType"] == kind]


def test_one_value_is_judged_approved_recorded_and_run(make: Make, service: Service) -> None:
    """The caller changes its dict while the person decides, and the tool changes its own."""
    given: dict[str, Any] = {"order": {"id": "1007"}, "amounts": [1, (2, [3])]}

    def change(_: Any) -> Any:
        given["order"]["id"] = "666"
        given["amounts"].append(999)
        return answer("APPROVED")(_)

    ask(service, change)
    client = make()
    got: list[Any] = []

    @client.tacho.guard(name="refund")
    def refund(one: dict[str, Any]) -> None:
        got.append(repr(one))
        one["order"]["id"] = "changed by the tool"

    with client.tacho.run():
        refund(given)
    client.tacho.flush(120)
    assert got == ["{'order': {'id': '1007'}, 'amounts': [1, (2, [3])]}"]
    as_judged = {"order": {"id": "1007"}, "amounts": [1, [2, [3]]]}
    for kind in ("POLICY_DECISION", "TOOL_START", "TOOL_CALL"):
        [payload] = payloads(service, kind)
        assert (payload["input"], payload["approvalId"]) == (as_judged, "a1")
        assert payload["inputHash"] == service.of("/firewall-approvals")[0]["inputHash"]


def test_an_object_that_changes_before_the_tool_runs_is_refused(make: Make, service: Service) -> None:
    @dataclasses.dataclass
    class Order:
        amount: int

    order = Order(1)

    def change(_: Any) -> Any:
        order.amount = 999
        return answer("APPROVED")(_)

    ask(service, change)
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        client.tacho.run_tool("refund", lambda one: one, (order,))
    assert blocked.value.code == "input_changed"


def test_parallel_calls_in_threads_are_bound_by_a_budget_of_one(make: Make, service: Service) -> None:
    client = make(
        guard=tacho.GuardDefaults(budget=tacho.Budget(tool_calls=1, action="BLOCK"), loop=None, configuration_wait=120)
    )
    ran: list[int] = []

    @client.tacho.guard
    def tool(n: int) -> None:
        ran.append(n)

    with client.tacho.run() as run, ThreadPoolExecutor(10) as pool:

        def one(n: int) -> str:
            with run.within():
                try:
                    tool(n)
                except tacho.ToolBlockedError as error:
                    return error.code
            return "ran"

        codes = list(pool.map(one, range(10)))
    assert len(ran) == 1 and sorted(codes) == ["budget_exceeded"] * 9 + ["ran"]


def test_parallel_calls_in_tasks_are_bound_by_a_policy_on_tool_calls(make: Make, service: Service) -> None:
    service.deploy("run.toolCalls >= 1", "BLOCK")
    client = make()
    ran: list[int] = []

    @client.tacho.guard
    async def tool(n: int) -> None:
        await asyncio.sleep(0.01)
        ran.append(n)

    async def main() -> list[Any]:
        async with client.tacho.run():
            return list(await asyncio.gather(*(tool(n) for n in range(10)), return_exceptions=True))

    errors = [error for error in asyncio.run(main()) if error is not None]
    assert len(ran) == 1 and [error.code for error in errors] == ["policy"] * 9


def test_calls_that_people_approve_count_when_they_may_run(make: Make, service: Service) -> None:
    """Two calls wait at the same time, a person approves both, but only one runs."""
    service.deploy('tool.name == "refund"', "REQUIRE_APPROVAL")
    both_asked = threading.Barrier(2)

    def create(_: Any) -> Any:
        both_asked.wait(300)
        return created(_)

    service.script("/firewall-approvals", create)
    service.script("/firewall-approvals/id", answer("APPROVED"))
    client = make(guard=tacho.GuardDefaults(budget=tacho.Budget(tool_calls=1, action="BLOCK"), configuration_wait=120))
    ran: list[int] = []

    @client.tacho.guard
    async def refund(n: int) -> None:
        ran.append(n)

    async def main() -> list[Any]:
        async with client.tacho.run():
            return list(await asyncio.gather(refund(1), refund(2), return_exceptions=True))

    errors = [error for error in asyncio.run(main()) if error is not None]
    assert len(ran) == 1 and [(error.code, error.approval_id) for error in errors] == [("budget_exceeded", "a1")]


def test_a_policy_that_is_deployed_while_a_person_decides_holds(make: Make, service: Service) -> None:
    def deploy(_: Any) -> Any:
        service.policies.append({**service.policies[0], "policyId": "new", "action": "BLOCK"})
        service.revision = "r2"
        return answer("APPROVED")(_)

    ask(service, deploy)
    client = make()
    ran: list[int] = []
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        client.tacho.guard(name="refund")(ran.append)(1)
    assert (blocked.value.code, blocked.value.policy_ids[0], blocked.value.approval_id, ran) == ("policy", "new", "a1", [])
    client.tacho.flush(120)
    decisions = [(one["action"], one["approvalId"]) for one in payloads(service, "POLICY_DECISION")]
    assert decisions == [("REQUIRE_APPROVAL", "a1"), ("BLOCK", "a1")] and "TOOL_START" not in kinds(service)


def test_a_refusal_is_an_answer_in_this_run(make: Make, service: Service) -> None:
    ask(service, answer("REJECTED", decisionReason="never"), answer("APPROVED"))
    client = make()
    ran: list[int] = []
    refund = client.tacho.guard(name="refund")(ran.append)
    with client.tacho.run():
        for _ in range(6):
            with pytest.raises(tacho.ToolBlockedError) as blocked:
                refund(1)
            assert (blocked.value.code, blocked.value.approval_id) == ("approval_rejected", "a1")
            assert "They said: never" in blocked.value.model_text
        assert len(service.of("/firewall-approvals")) == 1 and ran == []
        refund(2)
    with client.tacho.run():
        refund(1)
    assert len(service.of("/firewall-approvals")) == 3 and ran == [2, 1]


@pytest.mark.parametrize("is_async", [False, True])
def test_outside_a_run_a_call_gets_a_run_of_its_own(make: Make, service: Service, is_async: bool) -> None:
    service.deploy("tool.input.n > 1.0", "BLOCK")
    client = make(agent_name="own")
    seen: list[Any] = []

    def body(n: int) -> int:
        run = client.tacho.current_run()
        seen.append(run and run.run_id)
        return n

    async def abody(n: int) -> int:
        await asyncio.sleep(0)
        return body(n)

    guarded: Any = client.tacho.guard(name="t")(abody if is_async else body)

    def call(n: int) -> Any:
        return asyncio.run(guarded(n)) if is_async else guarded(n)

    assert call(1) == 1 and client.tacho.current_run() is None
    with pytest.raises(tacho.ToolBlockedError):
        call(2)
    assert client.tacho.decide("other", {"n": 0}).action == "ALLOW"
    assert client.tacho.decide("other", {"n": 2}).action == "BLOCK"
    client.tacho.flush(120)
    assert kinds(service) == [
        *("TOOL_START", "TOOL_CALL", "SESSION_OUTCOME"),
        *("POLICY_DECISION", "SESSION_OUTCOME"),
        *("POLICY_DECISION", "SESSION_OUTCOME"),
    ]
    runs = [event["runId"] for event in service.events]
    assert seen == [runs[0]] and len(set(runs)) == 3 and {event["agentName"] for event in service.events} == {"own"}
    assert [one["status"] for one in payloads(service, "SESSION_OUTCOME")] == ["COMPLETED", "FAILED", "COMPLETED"]


def test_the_start_is_sent_before_the_tool_ends(make: Make, service: Service) -> None:
    client = make()
    with client.tacho.run():
        client.tacho.call_guarded("t", {"a": 1}, lambda: service.until(lambda: kinds(service) == ["TOOL_START"]))
    client.tacho.flush(120)
    assert payloads(service, "TOOL_CALL")[0]["startEventId"] == service.events[0]["eventId"]


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Item:
    price: decimal.Decimal
    made: datetime.date
    tags: set[str]


ID = uuid.UUID(int=7)
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)


@pytest.mark.parametrize(
    ("given", "form"),
    [
        (decimal.Decimal("500"), 500),
        (decimal.Decimal("19.90"), 19.9),
        (decimal.Decimal("-0.1"), -0.1),
        (Item(decimal.Decimal("1.5"), MOMENT.date(), {"b", "a"}), {"price": 1.5, "made": "2026-01-02", "tags": ["a", "b"]}),
        (MOMENT, "2026-01-02T03:04:00+00:00"),
        (datetime.timedelta(minutes=1.5), 90.0),
        (Colour.RED, "red"),
        ([ID, Path("/a")], [str(ID), "/a"]),
        ({ID: 1, 2: 3, Colour.RED: 4}, {str(ID): 1, "2": 3, "red": 4}),
        ((1, [True, None]), [1, [True, None]]),
    ],
)
def test_values_are_judged_hashed_and_recorded_by_their_json_form(make: Make, service: Service, given: Any, form: Any) -> None:
    service.deploy("true", "WARN")
    client = make()
    got: list[Any] = []

    @client.tacho.guard(name="t")
    def tool(value: Any, more: int = 0) -> None:
        got.append(value)

    with client.tacho.run():
        tool(given)
        tool(form)
    client.tacho.flush(120)
    assert got[0] == given
    one, other = payloads(service, "TOOL_CALL")
    assert one["input"] == other["input"] == {"value": form, "more": 0} and one["inputHash"] == other["inputHash"]


@pytest.mark.parametrize(
    "amount", [decimal.Decimal("500"), decimal.Decimal("100.01"), 101, Item(decimal.Decimal(500), MOMENT, set())]
)
def test_a_medium_policy_sees_decimals_and_nested_fields(make: Make, service: Service, amount: Any) -> None:
    service.deploy(
        "(type(tool.input.amount) == double ? tool.input.amount : tool.input.amount.price) > 100.0", "BLOCK", "MEDIUM"
    )
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError):
        client.tacho.run_tool("t", lambda amount: None, (amount,))


@pytest.mark.parametrize(
    "value",
    [
        decimal.Decimal("0.1234567890123456789"),
        decimal.Decimal("NaN"),
        float("inf"),
        2**53 + 1,
        b"x",
        object(),
        "\ud800",
    ],
)
def test_a_part_without_a_json_form_fails_closed_and_alone(make: Make, service: Service, value: Any) -> None:
    service.deploy("tool.input.value == 1.0", "BLOCK", "LOW")
    service.deploy("tool.input.other == 1.0", "BLOCK", "LOW")
    client = make()

    @client.tacho.guard(name="t")
    def tool(other: int, value: Any = 1.5) -> None: ...

    with client.tacho.run():
        tool(2)
        with pytest.raises(tacho.ToolBlockedError) as blocked:
            tool(2, value)
        assert blocked.value.policy_ids == ("p",) and blocked.value.input_hash is None
        service.policies.pop(0)
        service.revision = "r2"
        client.tacho.configuration.refresh()
        tool(2, value)
        with pytest.raises(tacho.ToolBlockedError):
            tool(1, value)


def test_budgets_bind_calls_without_a_hash(make: Make, service: Service) -> None:
    client = make(guard=tacho.GuardDefaults(budget=tacho.Budget(tool_calls=1, action="BLOCK"), configuration_wait=120))
    with client.tacho.run():
        client.tacho.call_guarded("t", {"a": b"x"}, lambda: None)
        with pytest.raises(tacho.ToolBlockedError, match="budget_exceeded"):
            client.tacho.call_guarded("t", {"a": b"x"}, lambda: None)


class Tools:
    def method(self, a: int, *rest: int, b: int = 2, **more: int) -> None: ...

    def __call__(self, a: int) -> int:
        return a


def test_the_input_is_the_arguments_as_python_binds_them() -> None:
    def read(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return Arguments(function, args, named).own_input()

    def one(given: Any) -> None: ...

    def positional(a: int, /, **more: int) -> None: ...

    def outside(self: int) -> None: ...

    assert read(Tools.method, Tools(), 1, 7, c=3) == {"a": 1, "rest": (7,), "b": 2, "c": 3}
    assert read(Tools().method, 1) == {"a": 1, "rest": (), "b": 2}
    assert read(one, {"x": 1}) == {"x": 1}
    assert read(one, "x") == {"given": "x"}
    assert read(positional, 1, b=2) == {"a": 1, "b": 2}
    # Python passes 1 as `a`; a keyword `a` does not change that.
    # If a model writes the parameter's name as a key, its other keys must not move.
    assert read(positional, 1, b=2, more=3) == {"a": 1, "b": 2, "more": 3}
    assert read(positional, 1, a=2) == {"a": 1, "more": {"a": 2}}
    assert read(outside, 1) == {"self": 1}
    assert read(functools.partial(positional, 1, b=2), b=3) == {"a": 1, "b": 3}
    assert Arguments(positional, (1,), {"state": 2, "b": 3}, ["state"]).input() == {"a": 1, "b": 3}
    with pytest.raises(TypeError, match="missing a required argument"):
        read(one)


def test_a_decorated_function_gets_what_was_judged(make: Make, service: Service) -> None:
    service.deploy('tool.name == "pay" && tool.input.amount > 100.0', "BLOCK", "MEDIUM")
    paid: list[Any] = []

    def pay(account: object = None, amount: int = 1) -> None:
        paid.append(amount)

    @functools.wraps(pay)
    def injecting(*args: Any, **named: Any) -> None:
        pay("ours", *args, **named)

    @functools.wraps(pay)
    def renaming(amount: int, account: object = None) -> None:
        pay(account, amount)

    @functools.wraps(pay)
    def forwarding(*args: Any, **named: Any) -> None:
        pay(*args, **named)

    class Shop:
        def pay(self, amount: int, *more: int) -> None:
            paid.append([amount, *more])

        def decorated(*args: Any, **named: Any) -> None:
            Shop.pay(*args, **named)

    functools.update_wrapper(Shop.decorated, Shop.pay)
    guard: Any = make().tacho.guard(name="pay")
    # Bound to the parameters of `pay`, it would be judged as the account.
    with pytest.raises(TypeError, match="account"):
        guard(injecting)(500)
    with pytest.raises(tacho.ToolBlockedError):
        guard(renaming)(500)
    with pytest.raises(tacho.ToolBlockedError):
        guard(forwarding)(None, 500)
    with pytest.raises(tacho.ToolBlockedError):
        guard(Shop().decorated)(500)
    assert paid == []
    guard(forwarding)(None, 5)
    guard(renaming)(6)
    guard(Shop().decorated)(7, 8)
    guard(Shop.decorated)(Shop(), 9, 10)
    assert paid == [5, 6, [7, 8], [9, 10]]


def test_the_context_of_a_framework_is_no_input() -> None:
    context = type("RunContext", (), {"__module__": "pydantic_ai._run_context"})()
    assert Arguments(lambda ctx, amount: None, (context, 1), {}).input() == {"amount": 1}
    other = type("RunContext", (), {"__module__": "elsewhere"})()
    assert Arguments(lambda ctx, amount: None, (other, 1), {}).input() == {"ctx": other, "amount": 1}


def test_callable_objects_and_partial_functions_are_guarded(make: Make, service: Service) -> None:
    service.deploy("tool.input.a == 1.0", "BLOCK", "MEDIUM")
    client = make()

    class Async:
        async def __call__(self, a: int) -> int:
            await asyncio.sleep(0)
            return a

    async def both(a: int, b: int) -> int:
        return a + b

    with client.tacho.run():
        assert client.tacho.guard(Tools())(2) == 2
        assert asyncio.run(client.tacho.guard(Async())(2)) == 2
        assert asyncio.run(client.tacho.guard(functools.partial(both, 2))(b=3)) == 5
        with pytest.raises(tacho.ToolBlockedError):
            client.tacho.guard(Tools())(1)
        with pytest.raises(tacho.ToolBlockedError):
            asyncio.run(client.tacho.guard(functools.partial(both, 1))(2))
    client.tacho.flush(120)
    assert [event["label"] for event in service.events if event["eventType"] == "TOOL_CALL"] == ["Tools", "Async", "both"]


def test_an_awaitable_is_awaited_before_it_is_a_success(make: Make, service: Service) -> None:
    client = make()

    async def body(fails: bool) -> str:
        await asyncio.sleep(0)
        if fails:
            raise ValueError("late")
        return "done"

    def returning(fails: bool) -> Any:
        return body(fails)

    tool = client.tacho.guard(name="t")(returning)

    async def main() -> None:
        assert await tool(False) == "done"
        with pytest.raises(ValueError):
            await tool(True)

    asyncio.run(main())
    client.tacho.flush(120)
    first, second = payloads(service, "TOOL_CALL")
    assert first["output"] == "done" and second["error"] == "ValueError: late"
    assert [one["status"] for one in payloads(service, "SESSION_OUTCOME")] == ["COMPLETED", "FAILED"]


def test_generators_are_refused(make: Make, service: Service) -> None:
    client = make()

    def plain() -> Iterator[int]:
        yield 1

    async def asynchronous() -> Any:
        yield 1

    class Callable_:
        def __call__(self) -> Iterator[int]:
            yield 1

    for tool in (plain, asynchronous, functools.partial(plain), Callable_()):
        with pytest.raises(TypeError, match="is a generator"):
            client.tacho.guard(tool)
    with client.tacho.run(), pytest.raises(TypeError, match="returned a generator"):
        client.tacho.call_guarded("t", {}, plain)


def test_an_integration_runs_a_function_with_what_was_judged(make: Make, service: Service) -> None:
    service.deploy("tool.input.amount > 100.0", "BLOCK", "MEDIUM")
    client = make()
    got: list[Any] = []

    class Interrupt(Exception):
        pass

    def refund(amount: int, state: dict[str, Any], waits: bool = False) -> str:
        got.append((amount, state))
        if waits:
            raise Interrupt
        return "ok"

    state = {"messages": [object()]}

    def run(**named: Any) -> Any:
        return client.tacho.run_tool("refund", refund, (), {"state": state, **named}, left_out=["state"], pauses=(Interrupt,))

    assert run(amount=5) == "ok"
    with pytest.raises(tacho.ToolBlockedError):
        run(amount=500)
    with pytest.raises(Interrupt):
        run(amount=6, waits=True)
    assert asyncio.run(client.tacho.arun_tool("refund", refund, (7, state))) == "ok"
    assert [amount for amount, _ in got] == [5, 6, 7]
    client.tacho.flush(120)
    calls = payloads(service, "TOOL_CALL")
    assert calls[0]["input"] == {"amount": 5, "waits": False} and calls[0]["inputHash"]
    assert calls[1]["paused"] is True and "error" not in calls[1]
    assert "TOOL_FAILED" not in [one["detectionType"] for one in service.of("/issue-records")]
