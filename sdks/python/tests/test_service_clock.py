"""Machines with a wrong clock, simulated by a service whose clock is wrong in the other direction."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

from conftest import Client, Service

Make = Callable[..., Client]
HOUR = 3_600


class OtherClock:
    """A service whose clock is this many seconds behind."""

    def __init__(self, behind: float) -> None:
        self.behind = behind
        self.stored: list[dict[str, Any]] = []

    def answer(self, events: list[dict[str, Any]]) -> tuple[int, Any, dict[str, str]]:
        now = time.time() - self.behind
        early = [event["eventId"] for event in events if event["timestamp"] > (now + 300) * 1_000]
        self.stored += [event for event in events if event["eventId"] not in early]
        rejections = [{"eventId": id_, "code": "timestamp_too_new"} for id_ in early]
        body = {"success": True, "accepted": len(events) - len(early), "retryableEventIds": []}
        return 200, {**body, "rejectedEventIds": early, "rejections": rejections}, {"date": formatdate(now, usegmt=True)}


def test_events_of_a_clock_that_is_ahead_get_the_time_of_the_service_in_order(make: Make, service: Service) -> None:
    other = OtherClock(HOUR)
    service.scripts["/events/batch"] = [other.answer]
    said: list[Any] = []
    client = make(on_diagnostic=said.append)
    run = client.tacho.start_run()
    labels = [f"step {n}" for n in range(250)]
    for label in labels[:120]:
        run.step(label, {"quote": '"timestamp":1'})
    client.tacho.flush(60)
    for label in labels[120:]:
        run.step(label)
    result = client.tacho.flush(60)
    assert (result.left, result.rejected) == (0, 0)
    in_order = sorted(other.stored, key=lambda event: int(event["timestamp"]))
    assert [event["label"] for event in in_order] == labels
    assert all(abs(event["timestamp"] / 1_000 - (time.time() - HOUR)) < 60 for event in other.stored)
    assert other.stored[0]["payload"] == {"quote": '"timestamp":1'}
    message = "The clock of this machine is 60 minutes ahead. The times of events are corrected."
    assert [(one.code, one.message) for one in said] == [("clock_ahead", message)]


def test_a_clock_that_is_set_right_counts_again(make: Make, service: Service) -> None:
    other = OtherClock(HOUR)
    service.scripts["/events/batch"] = [other.answer]
    client = make()
    run = client.tacho.start_run()
    run.step("wrong")
    client.tacho.flush(60)
    other.behind = 0
    run.step("notices")
    client.tacho.flush(60)
    run.step("right")
    client.tacho.flush(60)
    assert abs(other.stored[-1]["timestamp"] / 1_000 - time.time()) < 60


def test_a_clock_that_is_behind_is_said_once_and_a_time_of_the_host_stays_rejected(make: Make, service: Service) -> None:
    other = OtherClock(-3 * HOUR)
    service.scripts["/events/batch"] = [other.answer]
    said: list[Any] = []
    client = make(on_diagnostic=said.append)
    for _ in range(2):
        client.tacho.start_run().step("x")
        client.tacho.flush(60)
    message = "The clock of this machine is 180 minutes behind. Events have its time."
    assert [(one.code, one.message) for one in said] == [("clock_behind", message)]
    other.behind = 0
    client.tacho.start_run().record("NOTE", "x", at=time.time() + HOUR)
    assert client.tacho.flush(60).rejected == 1
