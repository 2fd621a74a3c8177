"""A record call captures; the sender's thread masks and serialises."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from conftest import Client, Service, assert_balanced
from tacho_sdk import Masking
from tacho_sdk.recording.plain import Plain

Make = Callable[..., Client]
MIB = 1_048_576


def test_a_record_call_masks_nothing_itself(make: Make, service: Service, monkeypatch: Any) -> None:
    client = make()
    threads: list[str] = []
    payloads = client.tacho.core.payloads
    written = payloads.written

    def noted(captured: Plain) -> str:
        threads.append(threading.current_thread().name)
        return written(captured)

    monkeypatch.setattr(payloads, "written", noted)
    client.tacho.start_run().llm_call(output="password=hunter2")
    assert threads == []
    assert client.tacho.flush(120).left == 0
    assert threads == ["tacho-events"]
    assert service.events[0]["payload"] == {"output": "password=[masked:credential]"}
    assert_balanced(client.tacho)


def test_a_later_change_of_the_payload_has_no_effect(make: Make, service: Service) -> None:
    client = make()
    given: dict[str, Any] = {"list": [1, {"deep": "a"}], "half": "\ud800 é"}
    client.tacho.start_run().step("s", given)
    given["list"][1]["deep"] = "b"
    given["list"].append(2)
    given["new"] = True
    assert client.tacho.flush(120).left == 0
    assert service.events[0]["payload"] == {"list": [1, {"deep": "a"}], "half": "\ufffd é"}


def test_a_function_of_the_host_runs_in_its_record_call(make: Make, service: Service) -> None:
    threads: set[str] = set()

    def custom(text: str) -> str:
        threads.add(threading.current_thread().name)
        return text

    client = make(masking=Masking(custom=custom))
    client.tacho.start_run().step("s", {"text": "x"})
    assert threads == {threading.current_thread().name}
    assert client.tacho.flush(120).left == 0
    assert threads == {threading.current_thread().name}


def test_events_that_grow_when_written_are_sent_in_more_requests(make: Make, service: Service) -> None:
    client = make()
    run = client.tacho.start_run()
    # JSON escapes each quote, which doubles the size.
    ids = [run.step("s", {"text": '"' * 100_000}) for _ in range(12)]
    assert client.tacho.flush(120).left == 0
    assert [event["eventId"] for event in service.events] == ids
    assert len(service.batches) > 2
    for batch in service.batches:
        assert len(json.dumps(batch, separators=(",", ":"))) <= MIB
    assert client.tacho.counters().queued_bytes == 0
    assert_balanced(client.tacho)


def test_the_bound_of_queued_bytes_holds_for_events_that_grow(make: Make, service: Service) -> None:
    service.script("/events/batch", lambda _: (503, None, {}))
    client = make(max_queued_bytes=2 * MIB)
    run = client.tacho.start_run()
    for _ in range(15):
        run.step("s", {"text": '"' * 100_000})
    client.tacho.flush(0.5)
    assert client.tacho.counters().queued_bytes <= 2 * MIB
    assert_balanced(client.tacho)
