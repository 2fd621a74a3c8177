"""Decisions about tools that another program runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service
from test_guard import answer, ask

Make = Callable[..., Client]


def authorize(client: Client, is_async: bool, *args: Any, **named: Any) -> tacho.Authorization:
    if is_async:
        return asyncio.run(client.tacho.aauthorize(*args, **named))
    return client.tacho.authorize(*args, **named)


both = pytest.mark.parametrize("is_async", [False, True])


def kinds(service: Service) -> list[str]:
    return [event["eventType"] for event in service.events]


@both
def test_a_person_approves_and_the_caller_records_the_result(make: Make, service: Service, is_async: bool) -> None:
    ask(service, answer("APPROVED"))
    client = make()
    with client.tacho.run() as run:
        given = authorize(client, is_async, "refund", {"amount": 7})
        assert (given.action, given.policy_ids, given.approval_id) == ("REQUIRE_APPROVAL", ("p",), "a1")
        run.tool_call("refund", input={"amount": 7}, input_hash=given.input_hash, approval_id=given.approval_id)
    client.tacho.flush(120)
    assert kinds(service) == ["POLICY_DECISION", "TOOL_CALL", "SESSION_OUTCOME"]
    [request] = service.of("/firewall-approvals")
    assert service.events[1]["payload"]["inputHash"] == request["inputHash"]


@both
@pytest.mark.parametrize(("status", "code"), [("REJECTED", "approval_rejected"), ("EXPIRED", "approval_expired")])
def test_everything_but_an_approval_raises(make: Make, service: Service, is_async: bool, status: str, code: str) -> None:
    ask(service, answer(status))
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        authorize(client, is_async, "refund", {"amount": 7})
    assert blocked.value.code == code


def test_a_blocked_call_raises_and_outside_a_run_it_is_a_failed_run(make: Make, service: Service) -> None:
    service.deploy('tool.name == "refund"', "BLOCK")
    client = make()
    with pytest.raises(tacho.ToolBlockedError):
        client.tacho.authorize("refund", {"amount": 7})
    client.tacho.flush(120)
    assert kinds(service) == ["POLICY_DECISION", "SESSION_OUTCOME"]
    assert service.events[1]["payload"]["status"] == "FAILED"
    assert [record["detectionType"] for record in service.of("/issue-records")] == ["TOOL_BLOCKED"]


def test_outside_a_run_a_decision_that_leaves_no_event_makes_no_run(make: Make, service: Service) -> None:
    client = make()
    assert client.tacho.decide("refund", {}).action == "ALLOW"
    assert client.tacho.authorize("refund", {}).approval_id is None
    # At the end of the process, the SDK has no open run to end.
    assert client.tacho.core.open_runs.of_process(False) == []
    client.tacho.flush(120)
    assert service.events == []


def test_an_input_that_changes_while_the_person_decides_is_refused(make: Make, service: Service) -> None:
    given = {"amount": 7}

    def change(_: Any) -> Any:
        given["amount"] = 7_000
        return answer("APPROVED")(_)

    ask(service, change)
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        client.tacho.authorize("refund", given)
    assert blocked.value.code == "input_changed"


def test_an_authorized_call_counts_once_also_when_it_is_recorded(make: Make) -> None:
    budget = tacho.Budget(tool_calls=2, action="BLOCK")
    client = make(guard=tacho.GuardDefaults(loop=None, budget=budget, configuration_wait=120))
    with client.tacho.run() as run:
        for _ in range(2):
            client.tacho.authorize("refund", {})
            run.tool_call("refund")
        with pytest.raises(tacho.ToolBlockedError) as blocked:
            client.tacho.authorize("refund", {})
    assert blocked.value.code == "budget_exceeded"


def test_a_stopped_wait_ends_without_an_authorization(make: Make, service: Service) -> None:
    ask(service, answer("PENDING"))
    client = make()
    stop = tacho.StopSignal()
    stop.set()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        client.tacho.authorize("refund", {}, stop=stop)
    assert blocked.value.code == "aborted"
