"""Calls in threads and executors: whether they know the run, and how to pass the run to them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service

Make = Callable[..., Client]


def outcome(call: Callable[[], Any]) -> str:
    try:
        call()
        return "ran"
    except tacho.ToolBlockedError as blocked:
        return blocked.code


@pytest.mark.parametrize(
    ("condition", "severity", "expected"),
    [
        ('tool.name == "t" && agent.name == "Support"', "HIGH", "policy"),
        ('tool.name == "t" && agent.name == "Support"', "MEDIUM", "ran"),
        ('tool.name == "t" && run.toolCalls >= 2', "CRITICAL", "policy"),
        ('session.id == "s"', "HIGH", "policy"),
        # The condition names another tool, so it has a result without a run.
        ('tool.name == "other" && agent.name == "Support"', "HIGH", "ran"),
    ],
)
def test_conditions_about_the_run_fail_by_their_severity_in_a_thread_without_one(
    make: Make, service: Service, condition: str, severity: str, expected: str
) -> None:
    service.deploy(condition, "BLOCK", severity)
    client = make()
    tool = client.tacho.guard(name="t")(lambda: None)
    with client.tacho.run(agent_name="Other", session_id="other"):
        assert outcome(tool) == "ran"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert outcome(pool.submit(tool).result) == expected


def test_the_agent_of_the_client_is_known_without_a_run(make: Make, service: Service) -> None:
    service.deploy('agent.name == "Support"', "BLOCK")
    tool = make(agent_name="Other").tacho.guard(name="t")(lambda: None)
    assert outcome(tool) == "ran"
    tool = make(agent_name="Support").tacho.guard(name="t")(lambda: None)
    assert outcome(tool) == "policy"


def test_an_executor_carries_the_run_the_span_and_the_budget(make: Make, service: Service) -> None:
    service.deploy('agent.name != "Support"', "BLOCK")
    client = make(guard=tacho.GuardDefaults(configuration_wait=120, budget=tacho.Budget(tool_calls=2, action="BLOCK")))
    tool = client.tacho.guard(name="t")(lambda n: n)
    with tacho.ThreadPoolExecutor(4) as pool:
        with client.tacho.run(run_id="r", agent_name="Support") as run, run.span("inside"):
            calls = [pool.submit(tool, n) for n in range(6)]
            assert sorted(outcome(call.result) for call in calls) == ["budget_exceeded"] * 4 + ["ran"] * 2
            list(pool.map(lambda n: client.tacho.record("X", str(n)), range(3)))
        # A thread of the pool keeps nothing.
        assert pool.submit(client.tacho.current_run).result() is None
    client.tacho.flush(120)
    assert {event["runId"] for event in service.events} == {"r"}
    span = next(event for event in service.events if event["label"] == "inside")
    assert all(event["spanId"] == span["spanId"] for event in service.events if event["eventType"] == "X")
    assert client.tacho.counters().dropped == {}


def test_standard_executors_carry_the_run_on_request(make: Make) -> None:
    client = make()

    def name() -> str | None:
        run = client.tacho.current_run()
        return run.run_id if run else None

    async def main() -> list[str | None]:
        loop = asyncio.get_running_loop()
        async with client.tacho.run(run_id="a"):
            first = await loop.run_in_executor(None, name)
        async with client.tacho.run(run_id="b"):
            return [first, await loop.run_in_executor(None, name), await asyncio.to_thread(name)]

    assert asyncio.run(main()) == [None, None, "b"]
    before = concurrent.futures.ThreadPoolExecutor(1)
    undo = tacho.carry_runs()
    try:
        assert asyncio.run(main()) == ["a", "b", "b"]
        with client.tacho.run(run_id="c"):
            assert before.submit(name).result() == "c"
        assert before.submit(name).result() is None
        tacho.carry_runs()()  # `carry_runs` is already on, so this changes nothing.
        with client.tacho.run(run_id="d"):
            assert before.submit(name).result() == "d"
    finally:
        undo()
        before.shutdown()
    assert asyncio.run(main()) == [None, None, "b"]


def test_a_thread_runs_in_the_run_of_in_this_run(make: Make) -> None:
    client = make()
    seen: list[Any] = []

    def work(*given: int) -> None:
        seen.append((given, client.tacho.current_run()))

    with client.tacho.run(run_id="r"):
        thread = threading.Thread(target=tacho.in_this_run(work), args=(1, 2))
        thread.start()
        thread.join()
    (((given, run)),) = seen
    assert given == (1, 2) and run is not None and run.run_id == "r"
    assert tacho.in_this_run(work) is work


def test_the_threads_of_the_sdk_are_in_no_run(make: Make, service: Service) -> None:
    client = make()
    seen: list[object] = []
    client.tacho.configuration.on_change(lambda *_: seen.append(client.tacho.current_run()))
    other = make()
    with other.tacho.run():
        pass
    inside = make()
    with inside.tacho.run():
        inside.tacho.configuration.on_change(lambda *_: seen.append(inside.tacho.current_run()))
        assert inside.tacho.configuration.ready(120)
    service.until(lambda: len(seen) == 2)
    assert seen == [None, None]
