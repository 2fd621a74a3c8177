"""Long outputs are read into a run's index in parts, so that an event loop can run other work in between."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import Any

import pytest

from tacho_sdk import GuardDefaults, Policy, ToolBlockedError, ToolLabels
from tacho_sdk.guarding.run_histories import OtherTurns
from tacho_sdk.policy.history.recorded_history import RecordedHistory
from tacho_sdk.policy.history.run_history import HistoryCall, RunHistory
from tacho_sdk.recording.context import CURRENT
from tacho_sdk.testing import FakeTacho, fake_tacho

LONG = " ".join(f"word{number}" for number in range(20_000)) + " mallory@evil.example"
PAY = Policy(
    policy_id="pay", name="flow", condition='tool.name == "pay" && "untrusted" in origin(tool.input.to)', action="BLOCK"
)


def ended(history: RunHistory, output: object, label: str = "untrusted") -> None:
    history.ended(HistoryCall("read", {}, True, "ALLOW", (), [label], output))


def test_a_long_output_is_read_in_parts_or_before_the_next_value_is_looked_up() -> None:
    waiting: list[Callable[[], bool]] = []

    def later(read_part: Callable[[], bool]) -> bool:
        waiting.append(read_part)
        return True

    history = RunHistory(later)
    ended(history, "bob@example.com")
    assert waiting == [], "a short one is read at once"
    ended(history, {"long": LONG})
    ended(history, ["alice@example.com"], "private")
    assert history.origin("mallory@evil.example") == ["untrusted"]
    assert history.origin("alice@example.com") == ["private"]
    assert [read_part() for read_part in waiting] == [False] * len(waiting), "nothing is left to read"
    ended(history, LONG)
    parts = 1
    while waiting[-1]():
        parts += 1
    assert 10 < parts < 1_000
    # Outputs of at most 1,048,576 characters wait: one more, and all are read at once.
    for outputs, is_left in ((5, True), (6, False)):
        many = RunHistory(later)
        for _ in range(outputs):
            ended(many, LONG)
        assert waiting[-1]() is is_left, outputs


def test_a_part_that_a_signal_handler_interrupts_is_unknown_to_it() -> None:
    history = RunHistory(lambda _: True)
    ended(history, [LONG])
    history._is_reading = True
    assert history.origin("mallory@evil.example") == ["unknown"]
    # A process that was forked at this moment may never finish the part.
    left = len(history._unread)
    for _ in range(3):
        ended(history, [LONG])
    assert len(history._unread) == left


def test_an_interrupt_during_a_part_makes_the_origin_of_values_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    history = RunHistory(lambda _: True)
    ended(history, [LONG])

    def interrupted(_: str) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tacho_sdk.policy.history.value_index.readings", interrupted)
        with pytest.raises(KeyboardInterrupt):
            history.origin("mallory@evil.example")
    assert history.origin("mallory@evil.example") == ["unknown"]
    ended(history, ["alice@example.com"])
    assert history.origin("alice@example.com") == ["unknown", "untrusted"], "later outputs are read"


def test_white_space_is_read_as_fast_as_others_because_a_stranger_could_stop_the_host_with_it_for_minutes() -> None:
    history = RunHistory()
    ended(history, f"mallory (at) evil [dot] example ({' ' * 262_000}( bob")
    assert history.origin("mallory@evil.example") == ["untrusted"]


def client() -> FakeTacho:
    labels = (ToolLabels("read", output=["untrusted"]),)
    return fake_tacho(deployed_policies=[PAY], guard=GuardDefaults(labels=labels))


def history_of_run() -> RunHistory:
    current = CURRENT.get()
    assert current is not None
    recorded = current.scope.state.history
    assert isinstance(recorded, RecordedHistory)
    return recorded.history


async def read(output: str = LONG) -> str:
    return output


async def pay(fake: FakeTacho) -> str:
    async def act() -> str:
        return "paid"

    try:
        return await fake.tacho.acall_guarded("pay", {"to": "mallory@evil.example"}, act)
    except ToolBlockedError:
        return "blocked"


def test_on_an_event_loop_a_long_output_is_read_in_other_turns_also_by_the_next_decision() -> None:
    async def main(fake: FakeTacho, decides_at_once: bool) -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        with fake.tacho.run():
            await fake.tacho.acall_guarded("read", {}, read)
            history = history_of_run()
            assert history._unread
            counting = asyncio.create_task(count())
            while history._unread and not decides_at_once:
                await asyncio.sleep(0)
            assert await pay(fake) == "blocked"
            counting.cancel()
            assert not history._unread
        return turns

    for decides_at_once in (False, True):
        fake = client()
        # The next decision also reads one part in each turn.
        assert asyncio.run(main(fake, decides_at_once)) > 10, decides_at_once
        fake.tacho.shutdown()


def in_a_loop(act: Coroutine[Any, Any, Any]) -> Any:
    """`asyncio.run` also waits for the threads of the loop, perhaps for enough turns to read all."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(act)
    finally:
        loop.close()


def test_an_output_whose_loop_ended_is_read_in_the_next_one_or_at_once() -> None:
    async def only_read(fake: FakeTacho, run: Any) -> None:
        with run.within():
            await fake.tacho.acall_guarded("read", {}, read)

    async def only_pay(fake: FakeTacho, run: Any) -> str:
        with run.within():
            return await pay(fake)

    fake = client()
    with fake.tacho.run() as run:
        in_a_loop(only_read(fake, run))
        assert history_of_run()._unread

        async def read_on() -> None:
            await only_read(fake, run)
            for _ in range(1_000):
                await asyncio.sleep(0)

        in_a_loop(read_on())
        assert not history_of_run()._unread
        in_a_loop(only_read(fake, run))
        assert in_a_loop(only_pay(fake, run)) == "blocked"
        # Without a loop, an output is read at once.
        fake.tacho.call_guarded("read", {}, lambda: LONG)
        assert not history_of_run()._unread
    fake.tacho.shutdown()


def test_runs_that_are_over_with_their_loops_leave_nothing_to_read() -> None:
    turns = OtherTurns(nullcontext)
    histories: list[weakref.ref[RunHistory]] = []

    async def job() -> None:
        history = RunHistory(turns.read)
        histories.append(weakref.ref(history))
        ended(history, LONG)
        assert history._unread

    for _ in range(5):
        asyncio.run(job())
    gc.collect()
    assert [history() for history in histories] == [None] * 5

    async def read_on() -> None:
        history = RunHistory(turns.read)
        ended(history, LONG)
        while history._unread:
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(read_on(), 60))
    assert not turns._waiting
