"""
Delivers the queue in batches, one request after another, on a thread of its own.

  idle ──add──▶ waiting ──full batch, interval since the last request, flush──▶ sending ──queue empty──▶ idle
                  ▲                                         │
                  └────────── more events, or backoff ──────┘
  sending ──Tacho refuses the key──▶ refused ──after five minutes──▶ sending          any ──close──▶ closed

Items leave the queue before a request begins. When it ends, for any reason, they are finished or put back. Events and issue
records have a sender each.
"""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..inner_class import inner_class
from ..limits import BATCH_BYTES
from ..recording.event import PROTECTED_TYPES
from ..recording.text import utf8_length
from . import process_end
from .answer import PerEvent, RetryAll, Split, Stop, Verdict
from .diagnostics import Counters, Diagnostics, DropReason
from .kind import Kind
from .lock import QueueLock
from .queue import Queue, QueuedItem
from .retry import wait_seconds
from .service_clock import ServiceClock
from .spool import Keeper, Spool, SpoolUser
from .transport import Request
from .worker import Worker

# A smaller body fits into a few packets, so compression saves nothing.
_WORTH_BYTES = 4_096
# Interval at which a refused key is tried again.
_REFUSED_SECONDS = 300.0
_LATE_SECONDS = 1.0
_STOP_SECONDS = 0.2
# Writing events lets the host's threads run after this time. A switch takes as long as writing a short event.
_TURN_SECONDS = 0.0005


@dataclass(frozen=True)
class FlushResult:
    sent: int
    """Events the service accepted."""
    rejected: int
    dropped: int
    left: int
    """Events still queued when the time was up."""


@inner_class
class SenderSettings:
    base_url: str
    max_queued_events: int
    max_queued_bytes: int
    flush_interval: float
    request_timeout: float
    compress: bool


@dataclass(eq=False, repr=False)
class _Flush:
    up_to: int
    """Sequence number of the last event that it covers."""
    left: int
    counts: dict[str, int] = field(default_factory=lambda: {"sent": 0, "rejected": 0, "dropped": 0})


class Sender:
    def __init__(self, kind: Kind, settings: SenderSettings, request: Request, diagnostics: Diagnostics) -> None:
        self._kind = kind
        self._settings = settings
        self._request = request
        self._diagnostics = diagnostics
        self._clock = ServiceClock(diagnostics)
        self._closed_by: DropReason | None = None
        self._keeper: Keeper | None = None
        self._worker = Worker(f"tacho-{kind.suffix[1:]}", self._step)
        self.reset()

    def reset(self) -> None:
        """Empties the queue in a forked process: its parent delivers these events."""
        self._changed = QueueLock(self._diagnostics)
        self._queue = Queue(self._settings.max_queued_events, self._settings.max_queued_bytes)
        self._batch: list[QueuedItem] = []
        self._sequence = 0
        self._flushes: set[_Flush] = set()
        self._failures = 0
        # Earliest time of the next request.
        self._not_before = 0.0
        # Why Tacho refuses the key.
        self._refused_by: DropReason | None = None
        # Deadline for sending events that are recorded while the process ends.
        self._late_until: float | None = None
        # When the last request ended. The first event after a pause is sent at once, so that little is lost at kill -9.
        self._sent_at = float("-inf")
        self._max_batch = self._kind.max_batch
        self._worker.reset()

    @property
    def held(self) -> tuple[int, int]:
        """Number and bytes of the events in the queue or in a request."""
        with self._changed:
            return self._queue.held, self._queue.held_bytes

    @property
    def counters(self) -> Counters:
        """A snapshot: no request ends in between."""
        with self._changed:
            return self._diagnostics.counters(*self.held)

    def keep_in(self, spool: Spool) -> None:
        """Stores the events in the spool, which outlives the process. Call this before the first event."""
        user = SpoolUser(self._kind.suffix, lambda: self._closed_by is None, self._has_room, self._kind.id_of, self._restore)
        self._keeper = spool.keep(user)

    @property
    def fate(self) -> str:
        """Fate of the items that a process does not deliver."""
        is_kept = self._keeper is not None and self._keeper.is_open
        return "The spool keeps them." if is_kept else "They are lost."

    @property
    def is_open(self) -> bool:
        return self._closed_by is None

    @property
    def is_key_refused(self) -> bool:
        return self._refused_by == "unauthorized"

    def go_on_with(self, request: Request) -> None:
        """After a refused key, continues at once with a request that has another key."""
        with self._changed:
            self._request = request
            self._refused_by = None
            self._failures = 0
            self._not_before = 0.0
        self.flush_soon()

    def add(self, event: QueuedItem, is_kept: bool = False) -> bool:
        """Queues an event and returns at once. True if it was queued. `is_kept`: the spool has it already."""
        # Write without the lock: a slow disk must not block the sending thread.
        if self._keeper is not None and self._closed_by is None and not is_kept:
            self._keeper.append(event)
        with self._changed:
            if self._closed_by is not None:
                self._diagnostics.drop(self._closed_by)
                return False
            self._sequence += 1
            event.sequence = self._sequence
            before, was_full = len(self._queue), self._has_full_batch()
            dropped = self._queue.add(event)
            if dropped:
                self._drop(dropped, "queue_full")
            must_wake = before == 0 or (not was_full and self._has_full_batch())
        if (must_wake or process_end.is_ending()) and not self._worker.wake():
            self._send_late()
        return event not in dropped if dropped else True

    def flush(self, timeout: float) -> FlushResult:
        """Waits until every event recorded before the call is delivered, rejected or dropped, or the time is up."""
        deadline = time.monotonic() + timeout
        with self._changed:
            flush = _Flush(up_to=self._sequence, left=self._queue.held)
            if flush.left > 0:
                self._flushes.add(flush)
        try:
            is_working = flush.left == 0 or self._worker.wake()
            if not is_working:
                self._worker.drain(lambda: flush.left == 0 or self._refused_by is not None, deadline)
            with self._changed:
                while is_working and flush.left > 0 and self._refused_by is None and time.monotonic() < deadline:
                    self._changed.wait(deadline - time.monotonic())
                return FlushResult(**flush.counts, left=flush.left)
        finally:
            with self._changed:
                self._flushes.discard(flush)

    def flush_soon(self) -> None:
        """Sends what is queued without waiting for a full batch. Returns at once."""
        with self._changed:
            self._sent_at = float("-inf")
        self._worker.wake()

    def flush_at_end(self, seconds: float, patience: float) -> FlushResult:
        """
        The last flush of the process, for at most `seconds`. It gives up earlier if nothing is accepted for as long as
        `patience`.
        """
        until = time.monotonic() + seconds
        while True:
            result = self.flush(min(patience, max(0.0, until - time.monotonic())))
            if result.left == 0 or result.sent == 0 or time.monotonic() >= until:
                self._worker.stop(_STOP_SECONDS)
                return result

    def _send_late(self) -> None:
        """Sends on the recording thread, because no other thread may start. All such sends together wait at most a second."""
        if self._late_until is None:
            self._late_until = time.monotonic() + _LATE_SECONDS
        if self._failures == 0 and self._refused_by is None:
            self._sent_at = float("-inf")
            self._worker.drain(lambda: len(self._queue) == 0 or self._failures > 0, self._late_until)
        left = self.held[0]
        if left > 0:
            message = f"Recorded while the process ended, and not delivered: {left} {self._kind.noun}. {self.fate}"
            self._diagnostics.report("error", "events_undelivered", message)

    def close(self, reason: DropReason = "closed") -> None:
        """Accepts no more events. Remaining events count as dropped; the spool keeps them for the next process."""
        with self._changed:
            if self._closed_by is not None:
                return
            self._closed_by = reason
            if self._keeper is not None:
                self._keeper.close()
            self._queue.finish(self._batch)
            left = [*self._batch, *self._queue.clear()]
            self._batch = []
            self._drop(left, self._refused_by or reason if reason == "closed" else reason)

    def _step(self) -> float | None:
        with self._changed:
            wait = self._seconds_until_send()
            if wait is None or wait > 0:
                return wait
            batch = self._batch = self._queue.take(self._max_batch, BATCH_BYTES - 2)
            again = sum(1 for event in batch if event.attempts > 0)
            for event in batch:
                event.attempts += 1
        self._diagnostics.count("retried", again)
        try:
            batch = self._written(batch)
            verdict = self._deliver(batch)
        except Exception:  # For example, too little memory.
            verdict = RetryAll(None, "the SDK failed")
        with self._changed:
            if batch is self._batch:
                self._conclude(batch, verdict)
        return 0.0

    def _written(self, batch: list[QueuedItem]) -> list[QueuedItem]:
        """Masks and serialises taken events. Puts back what no longer fits into the request."""
        before = sum(event.bytes for event in batch)
        turn_ends = time.perf_counter() + _TURN_SECONDS
        try:
            for event in batch:
                event.json  # noqa: B018 - this writes it.
                if time.perf_counter() >= turn_ends:
                    time.sleep(0)  # So the host's threads wait for at most this time plus one event.
                    turn_ends = time.perf_counter() + _TURN_SECONDS
        finally:
            with self._changed:
                if batch is self._batch:
                    self._drop(self._queue.weigh(batch, before), "queue_full")
        with self._changed:
            if batch is not self._batch:
                return batch
            fitting = _fitting(batch)
            self._queue.put_back(batch[fitting:])
            self._batch = batch[:fitting]
            return self._batch

    def _seconds_until_send(self) -> float | None:
        if len(self._queue) == 0 or self._closed_by is not None:
            return None
        now = time.monotonic()
        if self._not_before > now:
            return self._not_before - now
        if self._has_full_batch() or self._flushes:
            return 0.0
        return max(0.0, self._sent_at + self._settings.flush_interval - now)

    def _deliver(self, batch: Sequence[QueuedItem]) -> Verdict:
        body = self._kind.body_of(batch, self._clock.corrected).encode()
        headers: dict[str, str] = {}
        if self._settings.compress and len(body) >= _WORTH_BYTES:
            packed = gzip.compress(body, compresslevel=5)
            if len(packed) < len(body) * 0.9:
                body, headers = packed, {"content-encoding": "gzip"}
        spool, self._diagnostics.spool = self._diagnostics.spool, None
        if spool is not None:
            headers["x-tacho-spool"] = spool
        timeout = self._settings.request_timeout
        reply = self._request("POST", self._kind.path, body=body, headers=headers, timeout=timeout)
        verdict = self._kind.verdict_of(reply, [event.id for event in batch])
        if not isinstance(verdict, PerEvent):
            self._diagnostics.spool = self._diagnostics.spool or spool
        return self._clock.verdict(reply, verdict)

    def _conclude(self, batch: list[QueuedItem], verdict: Verdict) -> None:
        self._batch = []
        self._diagnostics.count("requests")
        if not isinstance(verdict, PerEvent):
            self._diagnostics.count("failed_requests")
        if isinstance(verdict, PerEvent):
            self._conclude_each(batch, verdict)
        elif isinstance(verdict, RetryAll):
            self._queue.put_back(batch)
            self._back_off(verdict.retry_after, verdict.why)
        elif isinstance(verdict, Split) and len(batch) > 1:
            self._queue.put_back(batch)
            self._max_batch = (len(batch) + 1) // 2
        elif isinstance(verdict, Stop):
            self._queue.put_back(batch)
            self._refused_by = verdict.reason
            self._failures += 1
            self._not_before = time.monotonic() + _REFUSED_SECONDS
            fault = "lacks the scope events:write" if verdict.reason == "forbidden" else "is missing, invalid or revoked"
            minutes = f"{_REFUSED_SECONDS / 60:.0f} minutes"
            message = f"The API key {fault}: {self._kind.noun} stay queued, and are sent again after {minutes}."
            self._diagnostics.report("error", verdict.reason, message)
            self._changed.notify_all()
        else:
            self._queue.finish(batch)
            self._drop(batch, "refused")
        self._sent_at = time.monotonic()

    def _conclude_each(self, batch: list[QueuedItem], verdict: PerEvent) -> None:
        again = [event for event in batch if event.id in verdict.retry]
        rejected = [event for event in batch if event.id in verdict.rejected]
        sent = [event for event in batch if event.id not in verdict.retry and event.id not in verdict.rejected]
        self._queue.finish([*sent, *rejected])
        self._queue.put_back(again)
        self._diagnostics.count("accepted", len(sent))
        self._diagnostics.count("rejected", len(rejected))
        if rejected:
            codes = ", ".join(sorted(set(verdict.rejected.values())))
            message = f"The service rejected {len(rejected)} {self._kind.noun}: {codes}."
            self._diagnostics.report("warning", "event_rejected", message)
        self._finished(sent, "sent")
        self._finished(rejected, "rejected")
        self._max_batch = self._kind.max_batch
        self._refused_by = None
        if again and not verdict.at_once:
            self._back_off(None, f"the service could not store all {self._kind.noun}")
        else:
            if self._failures > 0:
                self._diagnostics.report("info", "delivery_recovered", "The service accepts events again.")
            self._failures = 0
            self._not_before = 0.0

    def _back_off(self, retry_after: str | None, why: str) -> None:
        self._failures += 1
        wait = wait_seconds(self._failures, retry_after, time.time(), random.random())
        self._not_before = time.monotonic() + wait
        message = f"Events stay queued because {self._settings.base_url} does not accept them: {why}."
        self._diagnostics.report("warning", "delivery_failing", message)

    def _drop(self, events: Sequence[QueuedItem], reason: DropReason) -> None:
        if events:
            now = time.time_ns() // 1_000_000
            for event in events:
                if event.recorder:
                    event.recorder.drop(reason, now)
            self._diagnostics.drop(reason, len(events))
            if self._keeper is not None and reason == "queue_full":
                self._diagnostics.spool = self._diagnostics.spool or "full"
            message = f"{len(events)} {self._kind.noun} were dropped: {reason}."
            self._diagnostics.report("warning", "events_dropped", message)
            self._finished(events, "dropped")

    def _finished(self, events: Sequence[QueuedItem], outcome: str) -> None:
        if self._keeper is not None:
            self._keeper.finish(events)
        for flush in self._flushes:
            covered = sum(1 for event in events if event.sequence <= flush.up_to)
            flush.counts[outcome] += covered
            flush.left -= covered
        self._changed.notify_all()

    def _has_room(self) -> bool:
        queued, queued_bytes = self.held
        return queued < self._settings.max_queued_events / 2 and queued_bytes < self._settings.max_queued_bytes / 2

    def _restore(self, id_: str, text: str, fields: dict[str, Any]) -> None:
        self._diagnostics.count("recorded")
        self._diagnostics.count("recovered")
        event = QueuedItem(id_, lambda: text, utf8_length(text), str(fields.get("eventType")) in PROTECTED_TYPES)
        self.add(event, is_kept=True)

    def _has_full_batch(self) -> bool:
        return len(self._queue) >= self._kind.max_batch or self._queue.bytes >= BATCH_BYTES


def _fitting(batch: Sequence[QueuedItem]) -> int:
    """How many of these fit into a request: at least one."""
    size = 0
    for index, event in enumerate(batch):
        size += event.bytes + 1
        if size > BATCH_BYTES - 2 and index > 0:
            return index
    return len(batch)
