"""An API key from a function: after the service refuses a key, the SDK calls the function again, and loses no event."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import tacho_sdk as tacho
from tacho_sdk.delivery import rotating_key
from tacho_sdk.delivery.rotating_key import RotatingKey
from tacho_sdk.delivery.transport import NoReply, Reply

REFUSED = Reply(401, {"content-type": "application/problem+json"}, {"type": "urn:tacho:error:unauthorized"})
OK = Reply(200, {}, {"accepted": 1, "retryableEventIds": [], "rejectedEventIds": []})


class Vault:
    """Returns the host's key, and acts as the service, which accepts one key."""

    def __init__(self, *, is_async: bool = False) -> None:
        self.given, self.valid, self.asked, self.refused = "first", "first", 0, 0
        self.rotating = RotatingKey(self.key_async if is_async else self.key)
        self.request = self.rotating.sending(self.send)

    def key(self) -> str:
        self.asked += 1
        return self.given

    async def key_async(self) -> str:
        await asyncio.sleep(0)
        return self.key()

    def send(self, *_: Any, **__: Any) -> Reply | NoReply:
        if self.rotating.current() == self.valid:
            return OK
        self.refused += 1
        return REFUSED


@pytest.mark.parametrize("is_async", [False, True])
def test_the_function_is_asked_once_and_after_a_refusal_once_more(is_async: bool) -> None:
    vault = Vault(is_async=is_async)
    assert [vault.request("GET", "/", timeout=60) for _ in range(3)] == [OK, OK, OK]
    assert vault.asked == 1
    vault.given = vault.valid = "second"
    threads = [threading.Thread(target=vault.request, args=("GET", "/"), kwargs={"timeout": 60}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert vault.asked == 2


def test_inside_a_running_loop_an_async_function_is_asked_too() -> None:
    vault = Vault(is_async=True)

    async def main() -> Reply | NoReply:
        return vault.request("GET", "/", timeout=60)

    assert asyncio.run(main()) == OK


def test_without_another_key_it_is_not_asked_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotating_key, "_SAME_KEY_SECONDS", 3_600)
    vault = Vault()
    vault.valid = "other"
    for _ in range(50):
        reply = vault.request("GET", "/", timeout=60)
        assert isinstance(reply, NoReply) and reply.reason == "network"
    # One call for the first use and one after the refusal, then a pause.
    assert vault.asked == 2


@pytest.mark.parametrize("given", ["", None, "a b", 5])
def test_no_key_is_an_outage(given: Any) -> None:
    rotating = RotatingKey(lambda: given)
    reply = rotating.sending(lambda *_, **__: OK)("GET", "/", timeout=60)
    assert isinstance(reply, NoReply)


def test_a_request_that_began_with_an_older_key_is_repeated_with_the_newer_one_without_a_question() -> None:
    vault = Vault()
    sent: list[str] = []

    def send(*_: Any, **__: Any) -> Reply | NoReply:
        sent.append(vault.rotating.current())
        if len(sent) == 1:
            vault.given = vault.valid = "second"
            # Meanwhile, another request gets the newer key.
            assert vault.request("GET", "/", timeout=60) == OK
            return REFUSED
        return OK

    assert vault.rotating.sending(send)("GET", "/", timeout=60) == OK
    assert (sent, vault.asked) == (["first", "second"], 2)


def _reply_of(give: Any) -> Reply | NoReply | None:
    """None if the request waits for more than a minute."""
    rotating, replies = RotatingKey(give), []

    def ask() -> None:
        replies.append(rotating.sending(lambda *_, **__: OK)("GET", "/", timeout=0.02))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(60)
    return next(iter(replies), None)


def test_an_async_function_that_never_answers_holds_up_no_request_and_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", shown.append)

    async def never() -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async def fails() -> str:
        raise ValueError("hush")

    for give in (never, fails):
        assert isinstance(_reply_of(give), NoReply)
    for thread in [thread for thread in threading.enumerate() if thread.name == "tacho-key"]:
        thread.join(60)
        assert not thread.is_alive()
    assert shown == []


def test_an_async_function_that_blocks_holds_up_no_request() -> None:
    may_end = threading.Event()

    async def blocks() -> str:
        may_end.wait()
        return "late"

    try:
        assert isinstance(_reply_of(blocks), NoReply)
    finally:
        may_end.set()


def test_the_401_of_a_proxy_asks_for_no_key() -> None:
    vault = Vault()
    page = Reply(401, {"content-type": "text/html"}, None)
    assert vault.rotating.sending(lambda *_, **__: page)("GET", "/", timeout=60) is page
    assert vault.asked == 1


def test_a_client_loses_nothing_while_the_key_is_refused(service: Any) -> None:
    """With the real network: the sender, the configuration, the spool's queue."""
    from conftest import accept_all, refuse_key

    service.script("/events/batch", refuse_key(401), refuse_key(401), accept_all)
    keys = iter(["first", "first", "second", "third"])
    made = tacho.Tacho(api_key=lambda: next(keys), base_url=service.url, on_diagnostic=lambda _: None)
    run = made.start_run()
    for number in range(150):
        run.step(f"step {number}")
    result = made.flush(120)
    assert (result.left, result.dropped) == (0, 0)
    assert made.counters().accepted == 150
    sent = [headers["x-api-key"] for path, _, headers in service.requests if path == "/events/batch"]
    assert sent[0] == "first" and len(sent) >= 3
    made.shutdown()
