"""Ids of events, runs and spans."""

import os
from collections.abc import Callable

from ..delivery.lock import Lock

_COUNTER_MAX = 0xFFF
# If the clock goes back by less than this, ids wait for it; by more, they follow it.
_CLOCK_STEP_MS = 10_000


class Ids:
    """UUIDv7 (RFC 9562 5.7) that increase, even within a millisecond, and span ids."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.reset()

    def reset(self) -> None:
        """Forgets the lock and the last time: for a forked process."""
        self._lock = Lock()
        self._last_ms = 0
        self._counter = 0

    def uuid(self) -> str:
        random = os.urandom(10)
        now = self._now_ms()
        with self._lock:
            if now > self._last_ms or now < self._last_ms - _CLOCK_STEP_MS:
                self._last_ms = now
                # A random count with room for half of all counts.
                self._counter = (random[0] & 7) << 8 | random[1]
            elif self._counter < _COUNTER_MAX:
                self._counter += 1
            else:
                self._last_ms += 1
                self._counter = 0
            time, counter = self._last_ms, self._counter
        tail = random[2:].hex()
        variant = f"{(random[2] & 0x3F) | 0x80:02x}"
        stamp = f"{time:012x}"
        return f"{stamp[:8]}-{stamp[8:]}-7{counter:03x}-{variant}{tail[2:4]}-{tail[4:]}"

    def span(self) -> str:
        """Eight random bytes as hex, the form of an OpenTelemetry span id."""
        return os.urandom(8).hex()
