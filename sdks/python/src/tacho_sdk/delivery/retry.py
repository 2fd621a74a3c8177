"""How long to wait before the next attempt. Pure: clock and randomness are parameters."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

_BACKOFF_BASE = 1.0
_BACKOFF_MAX = 30.0
# Cap on Retry-After, so that a server's mistake does not silence a client for a day.
_RETRY_AFTER_MAX = 300.0
# Added to Retry-After, so that clients do not all return at once.
_RETRY_AFTER_SPREAD = 0.5
_NUMBER = re.compile(r"\s*\d{1,18}(\.\d{1,18})?\s*\Z", re.ASCII)


def backoff_seconds(failures: int, random: float) -> float:
    """Full jitter: from 0 to a bound that doubles with each failure. `failures` counts consecutive failures from 1."""
    return random * min(_BACKOFF_MAX, _BACKOFF_BASE * 2.0 ** min(failures - 1, 10))


def retry_after_seconds(header: str | None, now: float) -> float | None:
    """Retry-After in seconds or as an HTTP date; None if absent or malformed. `now`: Unix time in seconds."""
    if not header:
        return None
    try:
        wait = float(header) if _NUMBER.match(header) else parsedate_to_datetime(header).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(wait, 0.0), _RETRY_AFTER_MAX)


def wait_seconds(failures: int, retry_after: str | None, now: float, random: float) -> float:
    """The backoff, and never less than Retry-After."""
    asked = retry_after_seconds(retry_after, now)
    backoff = backoff_seconds(failures, random)
    return backoff if asked is None else max(backoff, asked + random * _RETRY_AFTER_SPREAD)
