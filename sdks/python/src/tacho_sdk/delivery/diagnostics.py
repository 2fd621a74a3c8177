"""Diagnostics of the SDK for the host: counters, and one message for each kind of problem."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from .lock import Lock

Level = Literal["info", "warning", "error"]
DropReason = Literal["queue_full", "disabled", "closed", "unauthorized", "forbidden", "refused", "sampled", "no_run", "failed"]
# A code that recurs is reported at once, then at most once in this interval.
_REPEAT_SECONDS = 10
_logger = logging.getLogger("tacho")


@dataclass(frozen=True)
class Diagnostic:
    """What a client reports about itself."""

    level: Level
    code: str
    """Stable; docs/sdk/delivery.md lists them."""
    message: str
    """Never holds a key or recorded content."""
    count: int
    """Number of occurrences since the last report."""


@dataclass(frozen=True)
class Counters:
    """Counts of events. Always: recorded = accepted + rejected + every `dropped` + queued."""

    recorded: int
    """Record calls, and events recovered from the spool."""
    recovered: int
    """Events that a dead process left in the spool; counted in `recorded` too."""
    accepted: int
    rejected: int
    dropped: Mapping[str, int]
    queued: int
    """Events in the queue or in a request."""
    queued_bytes: int
    retried: int
    """Number of repeated sends of events."""
    shortened: int
    """Payloads that were shortened."""
    requests: int
    failed_requests: int


class _HeldLocks(threading.local):
    """How many locks of queues a thread holds."""

    count = 0


class Diagnostics:
    """Without a listener of the host, the logger `tacho` gets each code once, except those of level `info`."""

    def __init__(self, on_diagnostic: Callable[[Diagnostic], object] | None) -> None:
        self._on_diagnostic = on_diagnostic
        self._locks = _HeldLocks()
        self.reset()

    def reset(self) -> None:
        """Resets the counts in a forked process: its parent counts the earlier events."""
        self._lock = Lock()
        self._untold: deque[Diagnostic] = deque()
        names = "recorded recovered accepted rejected retried shortened requests failed_requests"
        self._counts = dict.fromkeys(names.split(), 0)
        self._dropped: dict[str, int] = {}
        # Time of the last report and the occurrences since, by code.
        self._reported: dict[str, tuple[float, int]] = {}
        # State of the spool that the next delivery reports.
        self.spool: Literal["full", "failed"] | None = None

    def report(self, level: Level, code: str, message: str) -> None:
        now = time.monotonic()
        with self._lock:
            last = self._reported.get(code)
            if last and (self._on_diagnostic is None or now - last[0] < _REPEAT_SECONDS):
                self._reported[code] = (last[0], last[1] + 1)
                return
            self._reported[code] = (now, 0)
            self._untold.append(Diagnostic(level, code, message, (last[1] if last else 0) + 1))
        self._tell()

    def hold_messages(self) -> None:
        """Call this before locking a queue. Diagnostics of this thread wait until it calls `release`."""
        self._locks.count += 1

    def release(self) -> None:
        self._locks.count -= 1
        if self._untold:
            self._tell()

    def _tell(self) -> None:
        while self._untold and self._locks.count == 0:
            try:
                report = self._untold.popleft()
                if self._on_diagnostic is not None:
                    self._on_diagnostic(report)
                elif report.level != "info":
                    _logger.log(logging.ERROR if report.level == "error" else logging.WARNING, "tacho: %s", report.message)
            except Exception:
                pass  # Another thread took the message, or the host's listener failed. Neither may break recording.

    def count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self._counts[name] += by

    def drop(self, reason: DropReason, by: int = 1) -> None:
        if by > 0:
            with self._lock:
                self._dropped[reason] = self._dropped.get(reason, 0) + by

    def counters(self, queued: int, queued_bytes: int) -> Counters:
        with self._lock:
            counts, dropped = dict(self._counts), dict(self._dropped)
        return Counters(**counts, dropped=dropped, queued=queued, queued_bytes=queued_bytes)
