"""Ids of events, runs and spans."""

import os
from collections.abc import Callable

from ..delivery.lock import Lock

_COUNTER_MAX = 0xFFF
# If the clock goes back by less than this, ids keep the last time. If it goes back by more, they follow it.
_CLOCK_STEP_MS = 10_000
# Random hexadecimal digits of one id: three for its counter, one for its variant, and 15 others.
_DIGITS = 19
# Random digits are read for this many ids at once. During each read, another thread may run, and the host waits for it.
_IDS_AHEAD = 64
# Random digits expire after this time, because a machine restored from a snapshot must not repeat ids of another one.
_AHEAD_MS = 250
_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


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
        self._stamp = ""
        # Random digits, where the next ones begin, and the time and process in which they were made.
        self._random, self._at, self._made_ms, self._process = "", 0, 0, 0

    def uuid(self) -> str:
        now = self._now_ms()
        # A child that was forked without the interpreter must not repeat the ids of its parent.
        process = os.getpid()
        with self._lock:
            at = self._at
            if at == len(self._random) or process != self._process or not 0 <= now - self._made_ms < _AHEAD_MS:
                self._random, at = os.urandom(_IDS_AHEAD * _DIGITS // 2).hex(), 0
                self._made_ms, self._process = now, process
            self._at = end = at + _DIGITS
            if now > self._last_ms or now < self._last_ms - _CLOCK_STEP_MS:
                self._begin(now)
                # Start at random in the lower half of the counter, so that there is room for more ids.
                self._counter = int(self._random[at : at + 3], 16) & 0x7FF
            elif self._counter < _COUNTER_MAX:
                self._counter += 1
            else:
                self._begin(self._last_ms + 1)
                self._counter = 0
            digits = self._random
            variant = _VARIANTS[digits[at + 3]]
            return f"{self._stamp}{self._counter:03x}-{variant}{digits[at + 4 : at + 7]}-{digits[at + 7 : end]}"

    def _begin(self, millisecond: int) -> None:
        self._last_ms = millisecond
        digits = f"{millisecond:012x}"
        self._stamp = f"{digits[:8]}-{digits[8:]}-7"

    def span(self) -> str:
        """Eight random bytes as hex, the form of an OpenTelemetry span id."""
        return os.urandom(8).hex()
