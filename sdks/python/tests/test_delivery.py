"""Delivery: events are lost only if the queue is full, every loss is counted, and the host never waits."""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service, accept_all, assert_balanced, judged, refuse, refuse_key
from tacho_sdk.delivery.retry import backoff_seconds, retry_after_seconds, wait_seconds
from tacho_sdk.delivery.transport import Connections, NoReply

Make = Callable[..., Client]


def record(client: Client, count: int) -> list[str | None]:
    run = client.tacho.start_run()
    return [run.step(f"step {n}") for n in range(count)]


@pytest.mark.parametrize("pause", [False, True])
def test_the_first_event_and_the_first_after_a_pause_are_sent_at_once_and_others_gathered(
    make: Make, service: Service, pause: bool
) -> None:
    client = make(flush_interval=3_600)
    first = record(client, 1)
    service.until(lambda: client.tacho.counters().accepted == 1)
    if pause:
        with client.tacho.core.sender._changed:
            client.tacho.core.sender._sent_at -= 3_600
        first += record(client, 1)
        service.until(lambda: client.tacho.counters().accepted == 2)
    record(client, 5)
    time.sleep(0.3)
    assert [event["eventId"] for event in service.events] == first
    assert client.tacho.flush(120).sent == 5


def test_two_flushes_at_once_send_each_event_once(make: Make, service: Service) -> None:
    # open-telemetry/opentelemetry-js#1665
    client = make()
    ids = record(client, 150)
    threads = [threading.Thread(target=client.tacho.flush) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert client.tacho.flush(120).left == 0
    for thread in threads:
        thread.join()
    assert [event["eventId"] for event in service.events] == ids


def test_a_full_batch_is_sent_at_once(make: Make, service: Service) -> None:
    # open-telemetry/opentelemetry-js#3772
    client = make()
    record(client, 100)
    service.until(lambda: client.tacho.counters().accepted == 100)


def test_an_event_recorded_during_a_request_is_sent_without_another_call(make: Make, service: Service) -> None:
    # PostHog/posthog-js#2144
    client = make(flush_interval=0.05)
    is_recorded = threading.Event()

    def slow(events: Any) -> Any:
        is_recorded.wait(120)
        return accept_all(events)

    service.script("/events/batch", slow)
    record(client, 1)
    service.until(lambda: len(service.batches) == 1)
    record(client, 1)
    is_recorded.set()
    service.until(lambda: client.tacho.counters().accepted == 2)


def test_a_request_that_times_out_loses_nothing(make: Make, service: Service) -> None:
    # open-telemetry/opentelemetry-js#4520, #4406
    def silent(events: Any) -> Any:
        time.sleep(2)
        return accept_all(events)

    service.script("/events/batch", silent, accept_all)
    client = make(request_timeout=0.5, flush_interval=0)
    ids = record(client, 3)
    assert client.tacho.flush(120).left == 0
    assert {event["eventId"] for event in service.events} == set(ids)
    counts = client.tacho.counters()
    assert (counts.accepted, counts.failed_requests >= 1, counts.retried >= 1) == (3, True, True)
    assert_balanced(client.tacho)


def test_a_server_that_answers_byte_by_byte_does_not_prolong_a_request() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def trickle() -> None:
        connection, _ = listener.accept()
        for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n" + b"x" * 60:
            try:
                connection.send(bytes([byte]))
            except OSError:
                return
            time.sleep(0.1)

    threading.Thread(target=trickle, daemon=True).start()
    connections = Connections(f"http://127.0.0.1:{listener.getsockname()[1]}", lambda: "key")
    # The whole answer takes ten seconds; each byte comes in time.
    reply = connections.request("GET", "/runs", timeout=0.5)
    assert isinstance(reply, NoReply) and reply.reason == "timeout"
    listener.close()


def test_only_retryable_ids_are_sent_again_and_unnamed_ones_if_the_count_is_short(make: Make, service: Service) -> None:
    def partly(events: Any) -> Any:
        ids = [event["eventId"] for event in events]
        return judged(1, [ids[1]], [ids[2]])

    def short(events: Any) -> Any:
        return judged(0)

    service.script("/events/batch", partly, short, accept_all)
    client = make()
    ids = record(client, 3)
    result = client.tacho.flush(120)
    assert (result.sent, result.rejected, result.left) == (2, 1, 0)
    assert [[event["eventId"] for event in batch] for batch in service.batches] == [ids, [ids[1]], [ids[1]]]
    assert "event_rejected" in client.codes
    assert_balanced(client.tacho)


@pytest.mark.parametrize("status", [400, 413])
def test_a_batch_that_is_refused_is_halved_until_the_faulty_event_is_alone(make: Make, service: Service, status: int) -> None:
    def picky(events: Any) -> Any:
        faulty = any(event["label"] == "step 5" for event in events)
        return refuse(status)(events) if faulty else accept_all(events)

    service.script("/events/batch", picky)
    client = make()
    record(client, 8)
    assert client.tacho.flush(120).dropped == 1
    counts = client.tacho.counters()
    assert (counts.accepted, counts.dropped) == (7, {"refused": 1})
    sent = [json.dumps(batch) for batch in service.batches]
    assert len(set(sent)) == len(sent)


@pytest.mark.parametrize(("status", "code"), [(401, "unauthorized"), (403, "forbidden")])
def test_a_refused_key_is_said_once_and_tried_again_slowly(make: Make, service: Service, status: int, code: str) -> None:
    service.script("/events/batch", refuse_key(status))
    client = make(flush_interval=0)
    record(client, 2)
    service.until(lambda: code in client.codes)
    record(client, 1)
    # A flush does not wait for another key.
    assert client.tacho.flush(3_600).left == 3
    assert client.codes.count(code) == 1 and len(service.batches) == 1
    assert time.monotonic() + 100 < client.tacho.core.sender._not_before
    service.script("/events/batch", accept_all)
    # Five minutes later.
    client.tacho.core.sender._not_before = 0
    assert record(client, 1) != [None]
    client.tacho.core.sender._worker.wake()
    service.until(lambda: client.tacho.counters().accepted == 4)
    assert_balanced(client.tacho)


def test_what_a_refused_key_leaves_is_counted_so_at_the_end(make: Make, service: Service) -> None:
    service.script("/events/batch", refuse_key(401))
    client = make(flush_interval=0)
    record(client, 2)
    client.tacho.shutdown(120)
    assert client.tacho.counters().dropped == {"unauthorized": 2}
    assert_balanced(client.tacho)


@pytest.mark.parametrize("status", [401, 403, 407])
def test_a_page_of_a_proxy_does_not_stop_recording(make: Make, service: Service, status: int) -> None:
    issue_accepted = service.scripts["/issue-records"][0]
    service.script("/events/batch", refuse(status), accept_all)
    service.script("/issue-records", refuse(status), issue_accepted)
    client = make(flush_interval=0)
    record(client, 2)
    client.tacho.report_issue(tacho.IssueReport("TOOL_FAILED"))
    assert client.tacho.flush(120).left == 0
    assert client.tacho.counters().accepted == 2
    counts = client.tacho.issue_record_counters()
    assert (counts.accepted, counts.queued) == (1, 0)


def test_a_listener_that_waits_for_a_thread_that_records_does_not_hang(make: Make, service: Service) -> None:
    recorded: list[bool] = []

    def listen(_: tacho.Diagnostic) -> None:
        # Simulates a logging handler that records while another thread writes to it.
        thread = threading.Thread(target=lambda: run.step("from the listener"), daemon=True)
        thread.start()
        thread.join(120)
        recorded.append(not thread.is_alive())

    client = make(on_diagnostic=listen, max_queued_events=2, flush_interval=3_600)
    run = client.tacho.start_run()
    for n in range(4):
        run.step(f"step {n}")
    assert recorded and all(recorded)


def test_without_a_listener_the_logger_tacho_gets_each_trouble_once(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    client = tacho.Tacho(api_key="key", base_url=service.url)
    for _ in range(3):
        client.record("X", "outside a run")
    client.shutdown(0)
    said = [(one.name, one.levelname, one.getMessage()) for one in caplog.records]
    # The TypeScript SDK uses the same text.
    assert said == [("tacho", "WARNING", "tacho: An event outside a run was dropped.")]


def test_the_oldest_events_are_dropped_first_and_outcomes_last(make: Make, service: Service) -> None:
    service.script("/events/batch", refuse(503, retry_after="60"))
    # Events of a request under way are not dropped.
    client = make(max_queued_events=10)
    run = client.tacho.start_run()
    run.end()
    for n in range(50):
        run.step(f"step {n}")
    counts = client.tacho.counters()
    assert (counts.queued, counts.dropped) == (10, {"queue_full": 41})
    service.script("/events/batch", accept_all)
    client.tacho.flush(120)
    labels = [event["label"] for event in service.events]
    assert labels == ["completed", *(f"step {n}" for n in range(41, 50))]
    assert_balanced(client.tacho)


def test_bytes_are_bounded_too(make: Make, service: Service) -> None:
    service.script("/events/batch", refuse(503, retry_after="60"))
    client = make(max_queued_bytes=1_048_576)
    run = client.tacho.start_run()
    for _ in range(100):
        run.step("x", {"text": "x" * 100_000})
    counts = client.tacho.counters()
    assert counts.queued_bytes <= 1_048_576 and counts.dropped["queue_full"] >= 90
    assert_balanced(client.tacho)


def test_retry_after_holds_back_every_request(make: Make, service: Service) -> None:
    service.script("/events/batch", refuse(429, retry_after="1"), accept_all)
    client = make(flush_interval=0)
    start = time.monotonic()
    record(client, 1)
    service.until(lambda: len(service.batches) == 1)
    record(client, 150)
    assert client.tacho.flush(120).left == 0
    assert time.monotonic() - start >= 1


def test_an_outage_does_not_reach_the_host(make: Make, service: Service) -> None:
    service.script("/events/batch", refuse(500))
    client = make(flush_interval=0)
    ids = record(client, 500)
    assert None not in ids
    assert client.tacho.flush(0.2).left == 500
    service.script("/events/batch", accept_all)
    assert client.tacho.flush(120).left == 0
    assert client.tacho.counters().accepted == 500


def test_an_event_that_memory_did_not_suffice_to_write_is_sent_later(
    make: Make, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make()
    payloads = client.tacho.core.payloads
    written, calls = payloads.written, itertools.count()

    def fails_once(*given: Any) -> str:
        if next(calls) == 1:
            raise MemoryError
        return written(*given)

    monkeypatch.setattr(payloads, "written", fails_once)
    ids = record(client, 3)
    assert client.tacho.flush(120).left == 0
    assert [event["eventId"] for event in service.events] == ids
    assert (client.tacho.counters().accepted, client.tacho.counters().queued_bytes) == (3, 0)
    assert_balanced(client.tacho)


def test_counts_are_of_one_moment(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    core = make().tacho.core
    counters, was_free = core.diagnostics.counters, list[bool]()

    def look() -> None:
        was_free.append(core.sender._changed.acquire(blocking=False))
        if was_free[-1]:
            core.sender._changed.release()

    def beside_another_thread(*given: Any) -> tacho.Counters:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return counters(*given)

    monkeypatch.setattr(core.diagnostics, "counters", beside_another_thread)
    assert core.sender.counters.recorded == 0
    assert was_free == [False]


def test_flush_with_an_empty_queue_returns_at_once_and_does_not_start_a_thread(make: Make) -> None:
    # getsentry/sentry-javascript#18996
    client = make()
    # Threads of other tests may end meanwhile.
    before = {*threading.enumerate()}
    assert client.tacho.flush(3_600) == tacho.FlushResult(0, 0, 0, 0)
    assert {*threading.enumerate()} <= before


def test_after_shutdown_events_count_as_closed(make: Make, service: Service) -> None:
    client = make()
    record(client, 1)
    assert client.tacho.shutdown(120).sent == 1
    assert record(client, 1) == [None]
    assert client.tacho.counters().dropped == {"closed": 1}
    assert_balanced(client.tacho)


def test_large_batches_are_compressed(make: Make, service: Service) -> None:
    client = make(compression="auto")
    # A service on the same machine gains nothing.
    assert not client.tacho.core.settings.compress
    assert tacho.Tacho(api_key="k", base_url="https://tacho.example.com").core.settings.compress
    object.__setattr__(client.tacho.core.sender._settings, "compress", True)
    client.tacho.start_run().step("large", {"text": "x" * 20_000})
    assert client.tacho.flush(120).left == 0
    assert [sent["content-encoding"] for path, _, sent in service.requests if path == "/events/batch"] == ["gzip"]


def test_a_fault_in_a_listener_does_not_reach_the_host(make: Make, service: Service) -> None:
    def broken(_: tacho.Diagnostic) -> None:
        raise RuntimeError("no")

    client = make(on_diagnostic=broken)
    assert client.tacho.record("X", "outside a run") is None


def test_issue_records_are_retried_with_the_same_id_and_counted(make: Make, service: Service) -> None:
    accepted = service.scripts["/issue-records"][0]
    service.script("/issue-records", refuse(500), accepted, refuse(400), accepted)
    client = make()
    with client.tacho.run(run_id="r", session_id="s"):
        for n in range(3):
            report = tacho.IssueReport("TOOL_FAILED", payload={"toolName": f"t{n}", "note": "password=hunter2"})
            assert client.tacho.report_issue(report)
    client.tacho.flush(120)
    records = service.of("/issue-records")
    assert records[0] == records[1]
    assert records[0]["payload"]["note"] == "password=[masked:credential]"
    assert (records[0]["runId"], records[0]["sessionId"], records[0]["sdkInstanceId"]) == ("r", "s", "c")
    counts = client.tacho.issue_record_counters()
    assert (counts.recorded, counts.accepted, counts.rejected, counts.queued, counts.retried) == (3, 2, 1, 0, 1)


def test_waits_have_full_jitter_and_respect_a_bounded_retry_after() -> None:
    assert [backoff_seconds(n, 1) for n in (1, 2, 3, 6, 1_000)] == [1, 2, 4, 30, 30]
    assert backoff_seconds(5, 0) == 0
    assert retry_after_seconds("2", 0) == 2 and retry_after_seconds("999999999", 0) == 300
    assert retry_after_seconds("Thu, 01 Jan 1970 00:01:00 GMT", 30) == 30
    for wrong in ("soon", "-1", "", None, "1e9", "nan"):
        assert retry_after_seconds(wrong, 0) is None
    assert wait_seconds(1, "10", 0, 0.5) == 10.25
