"""Each recorder numbers its events, so that the service knows which events of a run arrived."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Service, accept_all, judged, refuse
from tacho_sdk.delivery.queue import Recorder

Make = Callable[..., Any]


def numbers_of(events: list[dict[str, Any]]) -> list[tuple[str, int, bool]]:
    """Recorder and number of an event, and whether the event is the recorder's last."""
    return [(event["n"][:5], int(event["n"][5:].rstrip("."), 36), event["n"].endswith(".")) for event in events]


def test_events_are_numbered_by_their_recorder_and_the_outcome_is_the_last(make: Make, service: Service) -> None:
    client = make().tacho
    with client.run(run_id="first") as run:
        for _ in range(39):
            run.step("step")
    with client.run(run_id="second"):
        pass
    client.flush(120)
    first = numbers_of([event for event in service.events if event["runId"] == "first"])
    assert [number for _, number, _ in first] == list(range(1, 41))
    assert [is_last for *_, is_last in first] == [False] * 39 + [True]
    recorder = first[0][0]
    assert {each for each, *_ in first} == {recorder} and re.fullmatch("[0-9a-z]{5}", recorder)
    second = numbers_of([event for event in service.events if event["runId"] == "second"])
    assert second[0][1:] == (1, True) and second[0][0] != recorder
    assert max(len(f',"n":"{event["n"]}"') for event in service.events) <= 16


def test_recorders_use_all_digits_and_letters_of_their_five_characters() -> None:
    recorders = [Recorder(None, os.urandom(8).hex()).id for _ in range(200)]
    assert all(re.fullmatch("[0-9a-z]{5}", recorder) for recorder in recorders)
    assert len(set("".join(recorders))) == 36
    assert Recorder(None, "0" * 16).id == "00000"


def test_threads_share_the_numbers_of_a_run(make: Make, service: Service) -> None:
    client = make().tacho
    run = client.start_run()
    threads = [threading.Thread(target=lambda: [run.step("step") for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.flush(120)
    assert sorted(number for _, number, _ in numbers_of(service.events)) == list(range(1, 801))


def test_a_retry_has_the_same_number(make: Make, service: Service) -> None:
    service.script("/events/batch", refuse(503), lambda events: judged(0, [events[0]["eventId"]]), accept_all)
    client = make(flush_interval=0.01).tacho
    client.start_run().step("step")
    client.flush(120)
    assert len(service.batches) == 3
    assert len({event["n"] for event in service.events}) == 1


def test_what_is_dropped_is_told_with_what_is_sent_once_in_a_batch(make: Make, service: Service) -> None:
    service.script("/events/batch", refuse(503, retry_after="2"), accept_all)
    client = make(max_queued_events=10).tacho
    run = client.start_run(run_id="full")
    beside = client.start_run(run_id="beside")
    for _ in range(15):
        run.step("step")
    run.end()
    # The queue is full, so this event displaces another one of the run, after the run's outcome was recorded.
    beside.step("step")
    client.flush(120)
    events = service.batches[-1]
    told = [event for event in events if "dropped" in event]
    assert [event["runId"] for event in told] == ["full"]
    count, last_at = told[0]["dropped"]["queue_full"]
    assert count == 7 and last_at > 1_700_000_000_000
    assert [number for _, number, _ in numbers_of(events)] == [*range(8, 17), 1]


def test_an_event_that_cannot_be_recorded_has_a_number_too(make: Make, service: Service) -> None:
    class Hostile:
        def __str__(self) -> str:
            raise ValueError

    client = make().tacho
    run = client.start_run()
    run.record(Hostile(), "step")
    run.end()
    client.flush(120)
    assert numbers_of(service.events)[0][1:] == (2, True)
    assert service.events[0]["dropped"]["failed"][0] == 1


def test_another_part_of_a_run_is_another_recorder_which_says_when_it_is_done(make: Make, service: Service) -> None:
    run = make().tacho.start_run()
    run.step("step")
    worker = make(client_id="worker").tacho
    part = worker.resume(run.to_handle())
    part.step("step")
    part.leave()
    worker.flush(120)
    [(first, *_), (second, number, is_last)] = numbers_of(service.events)
    assert first == second and (number, is_last) == (2, True)
    service.requests.clear()
    run.end()
    assert run._core.sender.flush(120).left == 0
    assert numbers_of(service.events)[0][0] != first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_is_another_recorder(make: Make, service: Service) -> None:
    client = make().tacho
    run = client.start_run()
    run.step("parent")
    pid = os.fork()
    if pid == 0:
        run.step("child")
        client.flush(120)
        os._exit(0)
    os.waitpid(pid, 0)
    run.step("parent")
    client.flush(120)
    numbers: dict[str, list[tuple[str, int]]] = {event["label"]: [] for event in service.events}
    for event, (recorder, number, _) in zip(service.events, numbers_of(service.events), strict=True):
        numbers[event["label"]].append((recorder, number))
    [(child, one)] = numbers["child"]
    parent = numbers["parent"][0][0]
    assert one == 1 and child != parent
    assert sorted(numbers["parent"]) == [(parent, 1), (parent, 2)]


def test_what_is_not_recorded_on_purpose_has_no_number(make: Make, service: Service) -> None:
    client = make(sample_rate=0.000_001).tacho
    run = client.start_run()
    run.step("not recorded")
    run.end()
    client.flush(120)
    assert numbers_of(service.events)[0][1:] == (1, True)
    assert isinstance(client, tacho.Tacho)
