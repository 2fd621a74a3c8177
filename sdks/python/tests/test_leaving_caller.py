"""An approval belongs to the call that asked for it. If the caller has given up, nothing runs under the approval."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Service
from tacho_sdk.delivery.answer import PerEvent
from tacho_sdk.delivery.issue_records import _verdict_of
from tacho_sdk.delivery.transport import Reply
from tacho_sdk.guarding.leaving_caller import _callers_of
from test_continued import Outliving, Process, result_of

Leave = Callable[[Process, Callable[[], Any]], None]


@pytest.fixture
def service() -> Outliving:
    return Outliving()


@pytest.fixture
def start(service: Outliving) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def process(client_id: str, **guard: Any) -> Process:
        made.append(Process(service, client_id, **{"approval_wait": None, **guard}))
        return made[-1]

    yield process
    for one in made:
        one.shutdown(0)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def events_of(service: Outliving, event_type: str) -> list[Any]:
    return [event for event in service.events if event.event_type == event_type]


def is_asked(service: Outliving) -> Callable[[], bool]:
    """Whether the request exists and the process knows it."""
    return lambda: bool(events_of(service, "POLICY_DECISION"))


def once_asked(process: Process, act: Callable[[], object]) -> None:
    """Waits for the request, because a call asks late on a busy machine. Then runs `act`."""

    def work() -> None:
        until(is_asked(process._service))
        act()

    threading.Thread(target=work, daemon=True).start()


async def _times_out(process: Process, call: Coroutine[Any, Any, Any]) -> None:
    calling = asyncio.ensure_future(call)
    await asyncio.to_thread(until, is_asked(process._service))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(calling, 0.1)


def by_timeout_of_a_task(process: Process, call: Callable[[], Any]) -> None:
    asyncio.run(_times_out(process, process.acall_guarded("refund", {"n": 1}, _async(call))))


def by_timeout_around_a_thread(process: Process, call: Callable[[], Any]) -> None:
    asyncio.run(_times_out(process, asyncio.to_thread(process.call_guarded, "refund", {"n": 1}, call)))


def by_timeout_around_a_thread_that_waits_late(process: Process, call: Callable[[], Any]) -> None:
    waits = threading.Event()
    decision = threading.Timer(60, process._service.decide)

    def work() -> Any:
        with ThreadPoolExecutor() as pool:
            future = pool.submit(process.call_guarded, "refund", {"n": 1}, call)
            until(is_asked(process._service))
            # As with LangGraph on a busy machine: the tool asks before LangGraph's own thread waits for the tool.
            time.sleep(0.5)
            waits.set()
            return future.result()

    async def main() -> None:
        calling = asyncio.ensure_future(asyncio.to_thread(work))
        assert await asyncio.to_thread(waits.wait, 60)
        decision.start()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(calling, 0.5)

    asyncio.run(main())
    decision.cancel()


def by_cancel_of_a_future(process: Process, call: Callable[[], Any]) -> None:
    with ThreadPoolExecutor() as pool:
        future = pool.submit(process.call_guarded, "refund", {"n": 1}, call)
        until(is_asked(process._service))
        # CrewAI and LangGraph give up in this way.
        future.cancel()


def by_timeout_of_a_future(process: Process, call: Callable[[], Any]) -> None:
    with pytest.raises(FutureTimeout), ThreadPoolExecutor() as pool:
        future = pool.submit(process.call_guarded, "refund", {"n": 1}, call)
        until(is_asked(process._service))
        try:
            future.result(timeout=0.1)
        finally:
            # The end of a `with` block waits for the call.
            threading.Timer(0.5, process._service.decide).start()


def by_end_of_the_run(process: Process, call: Callable[[], Any]) -> None:
    with process.run() as run:
        thread = threading.Thread(target=lambda: _within(process, run, call))
        thread.start()
        until(is_asked(process._service))
    thread.join()


def by_signal_of_the_host(process: Process, call: Callable[[], Any]) -> None:
    stop = tacho.StopSignal()
    once_asked(process, stop.set)
    result_of(lambda: process.call_guarded("refund", {"n": 1}, call, stop=stop))


def by_local_deadline(process: Process, call: Callable[[], Any]) -> None:
    result_of(lambda: process.call_guarded("refund", {"n": 1}, call, rules=tacho.Rules(approval_timeout=1)))


def by_closing_a_generator(process: Process, call: Callable[[], Any]) -> None:
    @process.run
    def steps() -> Iterator[int]:
        run = process.current_run()
        threading.Thread(target=lambda: _within(process, run, call)).start()
        until(is_asked(process._service))
        yield 1

    generator: Any = steps()
    next(generator)
    generator.close()


def _within(process: Process, run: Any, call: Callable[[], Any]) -> None:
    with run.within():
        result_of(lambda: process.call_guarded("refund", {"n": 1}, call))


def _async(call: Callable[[], Any]) -> Callable[[], Any]:
    async def act() -> Any:
        return call()

    return act


LEAVES: list[tuple[Leave, str]] = [
    (by_timeout_of_a_task, "cancelled"),
    (by_timeout_around_a_thread, "cancelled"),
    (by_timeout_around_a_thread_that_waits_late, "cancelled"),
    (by_cancel_of_a_future, "cancelled"),
    (by_timeout_of_a_future, "cancelled"),
    (by_end_of_the_run, "run_ended"),
    (by_closing_a_generator, "run_ended"),
    (by_signal_of_the_host, "aborted"),
    (by_local_deadline, "timeout"),
]


@pytest.mark.parametrize(("leave", "reason"), LEAVES, ids=[leave.__name__ for leave, _ in LEAVES])
def test_nothing_runs_after_the_caller_left_and_the_record_says_so(
    start: Callable[..., Process], service: Outliving, leave: Leave, reason: str
) -> None:
    process, ran = start("one"), []
    leave(process, lambda: ran.append(1))
    service.decide()
    time.sleep(0.3)
    process.flush(120)
    assert ran == []
    (withdrawn,) = events_of(service, "APPROVAL_WITHDRAWN")
    (asked,) = service.approvals.values()
    assert withdrawn.payload == {
        "approvalId": asked.id,
        "toolName": "refund",
        "inputHash": asked.input_hash,
        "reason": reason,
    }
    types = [event.event_type for event in service.events if event.run_id == withdrawn.run_id]
    assert "TOOL_START" not in types and types.index("APPROVAL_WITHDRAWN") < types.index("SESSION_OUTCOME")


def test_nobody_is_asked_for_a_call_whose_caller_left_before(start: Callable[..., Process], service: Outliving) -> None:
    """As with an agent of CrewAI that times out while its model writes the call."""
    process, ran, codes = start("one"), list[int](), list[Any]()
    service.decide()

    def late(is_caller_there: bool) -> None:
        def call() -> Any:
            # The middle thread starts to wait only after this thread has started.
            until(lambda: is_caller_there or _callers_of(threading.get_ident())[1])
            return result_of(lambda: process.call_guarded("refund", {"n": 1}, lambda: ran.append(1)))

        with ThreadPoolExecutor() as inner:
            codes.append(inner.submit(call).result())

    with pytest.raises(FutureTimeout), ThreadPoolExecutor() as pool:
        pool.submit(late, False).result(timeout=0.1)
    assert ran == [] and codes == ["caller_gone"] and not service.approvals
    # Without an exception, the end of the `with` block waits for its calls.
    with ThreadPoolExecutor() as pool:
        pool.submit(late, True)
    assert ran == [1]


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_later_equal_call_asks_anew_here_and_in_a_process_with_an_older_handle(
    start: Callable[..., Process], service: Outliving, is_resumed: bool
) -> None:
    process = start("one")
    run = process.start_run()
    before = json.loads(json.dumps(run.to_handle()))
    stop = tacho.StopSignal()
    once_asked(process, stop.set)
    ran: list[int] = []
    with run.within():
        code = result_of(lambda: process.call_guarded("refund", {"n": 1}, lambda: ran.append(1), stop=stop))
    assert code == "aborted"
    service.decide()
    service.is_decided = False
    process.flush(120)
    following = start("two", approval_wait=0) if is_resumed else process
    rules = tacho.Rules(approval_wait=0)
    with following.resume(before).within():
        code = result_of(lambda: following.call_guarded("refund", {"n": 1}, lambda: ran.append(2), rules=rules))
        if is_resumed:
            # This process cannot know whether the call ran, so it is refused once.
            assert code == "approval_used"
            code = result_of(lambda: following.call_guarded("refund", {"n": 1}, lambda: ran.append(2), rules=rules))
    assert code == "approval_pending" and ran == [] and len(service.approvals) == 2


def test_the_same_key_names_the_call_that_was_left(start: Callable[..., Process], service: Outliving) -> None:
    process, stop, ran = start("one"), tacho.StopSignal(), []
    once_asked(process, stop.set)
    with process.run():
        result_of(lambda: process.call_guarded("refund", {"n": 1}, lambda: ran.append(1), stop=stop, key="order-7"))
        service.decide()
        process.call_guarded("refund", {"n": 1}, lambda: ran.append(2), key="order-7")
    assert ran == [2] and len(service.approvals) == 1


def test_an_approval_whose_end_comes_while_the_policies_are_loaded_again_is_not_used(
    start: Callable[..., Process], service: Outliving, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, ran = start("one"), []
    service.decide()
    now = time.time()
    monkeypatch.setattr(process.configuration, "refresh", lambda: monkeypatch.setattr(time, "time", lambda: now + 90_000))
    code = result_of(lambda: process.call_guarded("refund", {}, lambda: ran.append(1)))
    assert code == "approval_expired" and ran == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_signal_withdraws_what_is_held(tmp_path: Path, number: signal.Signals, is_async: bool) -> None:
    service = Service()
    try:
        service.deploy("true", "REQUIRE_APPROVAL")
        approval = {"id": "a", "status": "PENDING", "decidedAt": None, "expiresAt": "2099-01-01T00:00:00Z"}
        service.script("/firewall-approvals", lambda _: (201, approval, {}))
        service.script("/firewall-approvals/id", lambda _: (200, approval, {}))
        code = """
            import asyncio, sys, tacho_sdk as tacho
            client = tacho.configure(flush_timeout=60, request_timeout=60)
            async def held():
                with client.run():
                    await client.acall_guarded("refund", {}, lambda: print("ran"))
            if sys.argv[1] == "True":
                asyncio.run(held())
            else:
                with client.run():
                    client.call_guarded("refund", {}, lambda: print("ran"))
        """
        variables = {**os.environ, "TACHO_URL": service.url, "TACHO_API_KEY": "key"}
        command = [sys.executable, "-c", textwrap.dedent(code), str(is_async)]
        child = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        service.until(lambda: bool(service.of("/firewall-approvals/id")))
        child.send_signal(number)
        out, _ = child.communicate(timeout=120)
        assert out == ""
        (withdrawn,) = [event["payload"] for event in service.events if event["eventType"] == "APPROVAL_WITHDRAWN"]
        assert withdrawn["reason"] == ("process_ended" if number == signal.SIGTERM else "cancelled")
        ended = [event["payload"]["status"] for event in service.events if event["eventType"] == "SESSION_OUTCOME"]
        assert ended == ["CANCELLED"]
    finally:
        service.close()


def test_a_cancelled_tool_did_not_fail(start: Callable[..., Process], service: Outliving) -> None:
    process = start("one")
    service.policies = []

    async def main() -> None:
        has_begun = asyncio.Event()

        async def refund() -> None:
            has_begun.set()
            await asyncio.sleep(3_600)

        with process.run():
            task = asyncio.ensure_future(process.acall_guarded("refund", {}, refund, tool_call_id="c1"))
            await has_begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    process.flush(120)
    (call,) = events_of(service, "TOOL_CALL")
    assert call.payload["outcome"] == "cancelled" and "error" not in call.payload and call.payload["toolCallId"] == "c1"
    assert service.issues == []
    assert events_of(service, "TOOL_START")[0].payload["toolCallId"] == "c1"


def test_a_thread_of_anyio_knows_that_its_caller_left() -> None:
    to_thread = pytest.importorskip("anyio.to_thread")
    anyio = pytest.importorskip("anyio")
    left, told, ended = threading.Event(), list[bool](), threading.Event()

    def work(leave: Callable[[], object]) -> None:
        told.append(_callers_of(threading.get_ident())[1])
        leave()
        left.wait(60)
        told.append(_callers_of(threading.get_ident())[1])
        ended.set()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with anyio.CancelScope() as scope:
            await to_thread.run_sync(work, lambda: loop.call_soon_threadsafe(scope.cancel), abandon_on_cancel=True)
        left.set()
        assert ended.wait(60)

    anyio.run(main)
    assert told == [False, True]


def test_a_withdrawal_whose_claim_the_service_refuses_is_no_rejected_record() -> None:
    refusal = Reply(409, {}, {"code": "conflict"})
    assert _verdict_of(refusal, ["run-a1"]) == PerEvent()
    assert _verdict_of(refusal, ["r1"]) == PerEvent(rejected={"r1": "status 409"})


@pytest.mark.parametrize("is_collecting", [True, False])
def test_no_garbage_is_collected_while_the_stacks_of_threads_are_read(
    monkeypatch: pytest.MonkeyPatch, is_collecting: bool
) -> None:
    # CPython 3.11 hangs if an open response is garbage-collected there while another thread starts.
    seen: list[bool] = []
    frames = sys._current_frames

    def observed() -> Any:
        seen.append(gc.isenabled())
        return frames()

    monkeypatch.setattr(sys, "_current_frames", observed)
    (gc.enable if is_collecting else gc.disable)()
    try:
        _callers_of(threading.get_ident())
        assert seen == [False] and gc.isenabled() is is_collecting
    finally:
        gc.enable()
