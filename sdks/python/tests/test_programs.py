"""The SDK in many kinds of programs: streamed responses, options, `shutdown`, large arguments, pools."""

from __future__ import annotations

import asyncio
import functools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service, accept_all, refuse_key
from tacho_sdk.guarding import guard

Make = Callable[..., Client]


def environment(service: Service) -> dict[str, str]:
    return {"TACHO_URL": service.url, "TACHO_API_KEY": "key", "PYTHONPATH": ":".join(filter(None, sys.path))}


class Sent:
    """Keeps what an ASGI application sends, and simulates when its client leaves."""

    def __init__(self, leaves_after: int = 1_000) -> None:
        self.parts: list[bytes] = []
        self._leaves_after = leaves_after
        self._has_left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self._has_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message.get("body"):
            self.parts.append(message["body"])
        if len(self.parts) >= self._leaves_after:
            self._has_left.set()
            await asyncio.sleep(3_600)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_streamed_response_is_part_of_its_run(make: Make, service: Service, is_async: bool) -> None:
    responses = pytest.importorskip("starlette.responses")
    client = make()

    async def pieces() -> Any:
        for n in range(3):
            await asyncio.sleep(0)
            client.tacho.record("PIECE", str(n))
            yield f"{n};"

    def sync_pieces() -> Iterator[str]:
        for n in range(3):
            client.tacho.record("PIECE", str(n))
            yield f"{n};"

    @client.tacho.run
    def sync_chat() -> Any:
        return responses.StreamingResponse(sync_pieces())

    @client.tacho.run
    async def chat() -> Any:
        return responses.StreamingResponse(pieces())

    async def main(leaves_after: int = 1_000) -> list[bytes]:
        sent = Sent(leaves_after)
        response = await chat() if is_async else sync_chat()
        assert client.tacho.current_run() is None
        await response({"type": "http", "asgi": {"spec_version": "2.3"}}, sent.receive, sent.send)
        return sent.parts

    assert asyncio.run(main()) == [b"0;", b"1;", b"2;"]
    client.tacho.flush(120)
    labels = ["0", "1", "2", "completed"]
    assert [event["label"] for event in service.events] == labels
    assert len({event["runId"] for event in service.events}) == 1
    # The browser disconnects after the first piece.
    assert asyncio.run(main(1)) == [b"0;"]
    client.tacho.flush(120)
    assert [event["label"] for event in service.events[4:]] == ["0", "cancelled"]
    assert client.tacho.counters().dropped == {}


def test_a_failure_in_a_streamed_response_fails_its_run(make: Make, service: Service) -> None:
    responses = pytest.importorskip("starlette.responses")
    client = make()

    async def pieces() -> Any:
        yield "1"
        raise ValueError("the model went away")

    @client.tacho.run(agent_name="chat")
    async def chat() -> Any:
        return responses.StreamingResponse(pieces())

    async def main() -> None:
        sent = Sent()
        with pytest.raises(Exception):  # noqa: B017 - Starlette's task group wraps it.
            await (await chat())({"type": "http", "asgi": {"spec_version": "2.3"}}, sent.receive, sent.send)

    asyncio.run(main())
    client.tacho.flush(120)
    (outcome,) = service.events
    assert outcome["payload"]["status"] == "FAILED" and "went away" in outcome["payload"]["error"]


def test_a_response_that_is_not_streamed_ends_its_run_at_once(make: Make, service: Service) -> None:
    responses = pytest.importorskip("starlette.responses")
    client = make()
    response = client.tacho.run(lambda: responses.PlainTextResponse("ok"))()
    assert response.body == b"ok"
    client.tacho.flush(120)
    assert [event["label"] for event in service.events] == ["completed"]


def test_shutdown_ends_the_client_and_not_the_module(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tacho, "_client", None)
    first = tacho.configure(api_key="key", base_url=service.url, agent_name="mine", flush_interval=0, request_timeout=120)
    assert tacho.shutdown(120).left == 0
    with tacho.run():
        tacho.record("X", "x")
    second = tacho.client()
    assert second is not first and second.flush(120).left == 0
    assert {event["agentName"] for event in service.events} == {"mine"}
    assert second.counters().accepted == 2 and second.counters().dropped == {}
    tacho.shutdown(120)
    tacho.shutdown(0)
    assert tacho._client is second


def test_a_good_key_after_a_revoked_one_revives_open_runs(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tacho, "_client", None)
    service.script("/events/batch", refuse_key(401))
    service.script("/issue-records", refuse_key(401))
    said: list[str] = []
    options: dict[str, Any] = {"base_url": service.url, "on_diagnostic": lambda one: said.append(one.code)}
    revoked = tacho.configure(api_key="revoked", **options)
    run = tacho.start_run(run_id="open")
    with run.within():
        tacho.report_issue(tacho.IssueReport("CUSTOM"))
        tacho.record("X", "before")
        service.until(lambda: "unauthorized" in said and "issue_records_unauthorized" in said)
        service.script("/events/batch", accept_all)
        service.script("/issue-records", lambda _: (202, {"recordId": "r", "status": "RECEIVED", "isNew": True}, {}))
        refused = len(service.requests)
        good = tacho.configure(api_key="good", **options)
        # One event of the present client and one of the run's own client.
        tacho.record("X", "module")
        run.record("X", "run")
    run.end()
    assert good is not revoked and good.flush(120).left == 0
    assert {headers["x-api-key"] for _, _, headers in service.requests[refused:]} == {"good"}
    # Each client has its own queue.
    by_id = {event["eventId"]: (event["runId"], event["label"]) for event in service.events}
    assert sorted(by_id.values()) == [("open", label) for label in ("before", "completed", "module", "run")]
    assert revoked.issue_record_counters().accepted == 1
    assert revoked.counters().dropped == {} and good.counters().dropped == {}
    tacho.shutdown(120)
    assert revoked.is_closed and good.is_closed


def test_a_good_key_after_two_revoked_ones_revives_the_first_run(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tacho, "_client", None)
    service.script("/events/batch", refuse_key(401))
    options: dict[str, Any] = {"base_url": service.url, "on_diagnostic": lambda _: None}
    first = tacho.configure(api_key="revoked", **options)
    run = tacho.start_run(run_id="open")
    run.record("X", "one")
    assert first.flush(120).left == 1
    # This client records nothing itself, so the service refuses its key for the run of the first client.
    second = tacho.configure(api_key="wrong", **options)
    assert first.flush(120).left == 1
    service.script("/events/batch", accept_all)
    good = tacho.configure(api_key="good", **options)
    run.record("X", "two")
    run.end()
    tacho.shutdown(120)
    assert {event["label"] for event in service.events} == {"one", "two", "completed"}
    assert first.is_closed and second.is_closed and good.is_closed


def test_after_a_shutdown_the_next_key_gets_nothing_of_runs_before(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tacho, "_client", None)
    service.script("/events/batch", refuse_key(401))
    options: dict[str, Any] = {"base_url": service.url, "on_diagnostic": lambda _: None}
    first = tacho.configure(api_key="revoked", **options)
    run = tacho.start_run()
    run.record("X", "secret")
    assert first.flush(120).left == 1
    tacho.shutdown(0)
    refused = len(service.requests)
    service.script("/events/batch", accept_all)
    tacho.configure(api_key="other", **options)
    with run.within():
        run.record("X", "secret")
        tacho.record("X", "secret")
    with tacho.run():
        tacho.record("X", "own")
    tacho.shutdown(120)
    sent = [body for _, body, _ in service.requests[refused:]]
    assert "own" in str(sent) and "secret" not in str(sent)


def test_another_service_gets_nothing_of_the_runs_before(make: Make, service: Service) -> None:
    service.script("/events/batch", refuse_key(401))
    before = make(api_key="revoked").tacho
    before.start_run().step("secret")
    assert before.flush(120).left == 1
    after = make(api_key="good", base_url="http://127.0.0.1:9").tacho
    assert not after._take_over(before)
    assert make(api_key="good").tacho._take_over(before)


def _wrong_options() -> None:
    """Never called: mypy fails if it does not see the wrong name."""
    tacho.start_run(agent_nmae="a")  # type: ignore[call-arg]
    tacho.run(sesion_id="s")  # type: ignore[call-overload]
    tacho.observe(nmae="n")  # type: ignore[call-overload]
    tacho.guard(nmae="n")  # type: ignore[call-overload]
    tacho.call_guarded("t", {}, lambda: 1, rule=None)  # type: ignore[call-arg]
    tacho.run_tool("t", print, signals=())  # type: ignore[call-arg]
    tacho.Tacho(api_kye="k")  # type: ignore[call-arg]


def test_run_and_observe_need_no_parentheses(make: Make, service: Service) -> None:
    client = make()

    @client.tacho.run
    def whole(n: int) -> int:
        """Says n."""
        return n

    @client.tacho.run
    async def whole_async(n: int) -> int:
        return n

    typed: int = whole(1)
    assert typed == 1 and whole.__doc__ == "Says n." and asyncio.run(whole_async(2)) == 2
    assert client.tacho.guard(functools.partial(whole, 3))() == 3
    client.tacho.flush(120)
    assert [event["label"] for event in service.events if event["eventType"] == "SESSION_OUTCOME"] == ["completed"] * 4


@pytest.mark.parametrize("size", [100_000, 5_000_000])
def test_many_numbers_in_an_argument_are_not_read_one_by_one(make: Make, service: Service, size: int) -> None:
    """Counts calls of Python functions, because seconds depend on the machine."""
    client = make()
    service.deploy('tool.name == "other"', "BLOCK")
    tool: Any = client.tacho.guard(name="t")(lambda numbers: len(numbers))
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    with client.tacho.run():
        tool([1])
        numbers = [*range(size)]
        sys.setprofile(count)
        try:
            assert tool(numbers) == size
        finally:
            sys.setprofile(None)
    assert calls < 5_000


def test_a_sync_tool_on_an_event_loop_does_not_wait_for_a_slow_service(
    make: Make, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Outside an event loop, a call waits longer than this service needs.
    monkeypatch.setattr(guard, "_CONFIGURATION_WAIT", 10_000.0)
    may_answer = threading.Event()

    def slowly(given: Any) -> Any:
        may_answer.wait(120)
        return service._configuration(given)

    service.script("/runtime-config", slowly)
    client = make(guard=tacho.GuardDefaults())
    tool: Any = client.tacho.guard(name="t")(lambda: "ran")

    async def main() -> None:
        async with client.tacho.run():
            # The run requests the policies before the first call.
            assert client.tacho.configuration._is_started
            with pytest.raises(tacho.ToolBlockedError) as blocked:
                tool()
            assert blocked.value.code == "not_configured"
            may_answer.set()
            assert await client.tacho.configuration.aready(120)
            assert tool() == "ran"

    asyncio.run(main())


class Frame:
    """Like a DataFrame: no public fields, and a text for people."""

    def __init__(self) -> None:
        self._rows = [1, 2]

    def __repr__(self) -> str:
        return "   a\n0  1\n1  2"


class Order:
    def __init__(self) -> None:
        self.number = 7

    def __repr__(self) -> str:
        return "Order(7)"


class Empty:
    pass


def test_objects_are_recorded_by_their_fields_or_their_text(make: Make, service: Service) -> None:
    client = make()
    with client.tacho.run() as run:
        run.record("X", "x", {"frame": Frame(), "order": Order(), "empty": Empty()})
    client.tacho.flush(120)
    assert service.events[0]["payload"] == {"frame": "   a\n0  1\n1  2", "order": {"number": 7}, "empty": {}}


POOL = """
import multiprocessing, sys, tacho_sdk as tacho

# A slow machine gets its time.
tacho.configure(flush_interval=3600, flush_timeout=120, request_timeout=120)

def work(n):
    with tacho.run(run_id=f"pool-{n}") as run:
        run.step("work")
    return n

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert sorted(pool.map(work, range(6), chunksize=1)) == [*range(6)]
"""


SIGNAL_AT_EXIT = """
import os, signal, threading, tacho_sdk as tacho
from tacho_sdk.delivery import process_end

tacho.configure(flush_interval=3600, flush_timeout=120, request_timeout=120)
notify = threading.Condition.notify

def interrupted(self, n=1):
    # The lock is held here.
    if process_end.is_ending() and signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        os.kill(os.getpid(), signal.SIGTERM)
    notify(self, n)

threading.Condition.notify = interrupted
with tacho.run(run_id="interrupted") as run:
    run.step("work")
"""


def test_a_signal_while_the_last_flush_holds_a_lock_loses_nothing(service: Service, tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(SIGNAL_AT_EXIT)
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=environment(service), capture_output=True, text=True, timeout=100)
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert [event["runId"] for event in service.events if event["eventType"] == "SESSION_OUTCOME"] == ["interrupted"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_with_pool_loses_nothing(service: Service, method: str, tmp_path: Any) -> None:
    """`with Pool()` ends its workers by SIGTERM."""
    program = tmp_path / "program.py"
    program.write_text(POOL)
    done = subprocess.run(
        [sys.executable, str(program), method], env=environment(service), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    ended = [event["runId"] for event in service.events if event["eventType"] == "SESSION_OUTCOME"]
    assert sorted(ended) == [f"pool-{n}" for n in range(6)]
