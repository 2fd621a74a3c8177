"""If the service offers `x-tacho-wait`, the client always has a request open that waits for the next configuration."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from conftest import Client, Service

Make = Callable[..., Client]


class Offering:
    """A service that offers the wait. The test releases the answers of waiting requests."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.released = threading.Semaphore(0)
        service.script("/runtime-config", self.first, self.held)

    def first(self, _: Any) -> tuple[int, Any, dict[str, str]]:
        status, body, headers = self.service._configuration(None)
        return status, body, {**headers, "x-tacho-wait": "25"}

    def held(self, _: Any) -> tuple[int, Any, dict[str, str]]:
        self.released.acquire(timeout=60)
        return self.first(None)

    @property
    def asked(self) -> list[dict[str, str]]:
        return [headers for path, _, headers in list(self.service.requests) if path == "/runtime-config"]


def test_a_change_arrives_in_the_answer_of_the_request_that_waits(make: Make, service: Service) -> None:
    offering = Offering(service)
    client = make()
    assert client.tacho.configuration.ready(120)
    service.until(lambda: len(offering.asked) == 2)
    assert offering.asked[1]["if-none-match"] == 'W/"r1"'
    changes: list[str] = []
    client.tacho.configuration.on_change(lambda current, _: changes.append(current.revision))
    service.revision = "r2"
    offering.released.release()
    service.until(lambda: changes == ["r2"])
    service.until(lambda: len(offering.asked) == 3)
    assert offering.asked[2]["if-none-match"] == 'W/"r2"'
    # Neither an explicit refresh nor the end of the client waits for the open request.
    service.script("/runtime-config", offering.first)
    assert client.tacho.configuration.refresh()
    started_at = time.monotonic()
    client.tacho.shutdown(5)
    assert time.monotonic() - started_at < 20
    assert client.codes == []


def test_a_wait_whose_connection_is_cut_is_followed_soon_by_a_request_and_the_next_wait(make: Make, service: Service) -> None:
    def cut(_: Any) -> tuple[int, Any, dict[str, str]]:
        raise ConnectionAbortedError

    offering = Offering(service)
    service.script("/runtime-config", offering.first, cut, offering.first, offering.held)
    client = make()
    assert client.tacho.configuration.ready(120)
    service.until(lambda: len(offering.asked) >= 2)
    started_at = time.monotonic()
    service.until(lambda: len(offering.asked) >= 4)
    assert time.monotonic() - started_at < 20
    assert client.codes == []
    offering.released.release()


def test_a_service_that_does_not_offer_it_sees_the_requests_of_before(make: Make, service: Service) -> None:
    client = make()
    assert client.tacho.configuration.ready(120)
    time.sleep(1.5)
    assert len(service.of("/runtime-config")) == 1


def test_a_service_that_answers_early_is_not_asked_without_end(make: Make, service: Service) -> None:
    offering = Offering(service)
    service.script("/runtime-config", offering.first, lambda _: (304, None, {"etag": 'W/"r1"', "x-tacho-wait": "25"}))
    started_at = time.monotonic()
    client = make()
    assert client.tacho.configuration.ready(120)
    service.until(lambda: len(offering.asked) >= 2)
    time.sleep(1.5)
    # The client sends these requests at most once a second.
    asked = len(offering.asked)
    assert asked <= 2 + time.monotonic() - started_at
    assert client.codes == []
