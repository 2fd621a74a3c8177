"""
A container or a resumed machine may have a wrong clock. The service refuses events that are too far ahead of its
own clock. The `Date` of the refusal shows the difference. The client subtracts it from all events, so their order stays.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from email.utils import parsedate_to_datetime

from .answer import PerEvent, Verdict
from .diagnostics import Diagnostics
from .transport import NoReply, Reply

# A smaller difference can come from a slow answer, or from the whole seconds of `Date`.
_SURELY_MS = 60_000
# A clock this far behind is reported. The service rejects events that are as far ahead.
_SAID_MS = 300_000
# Quotes inside a text are escaped, so the first is the event's own.
_TIME = re.compile(r'(?<="timestamp":)-?\d+')


class ServiceClock:
    """Used by one thread at a time: the one that sends."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._offset_ms = 0
        """Correction that is added to the time of an event. Never above 0."""
        self._is_behind = False

    def corrected(self, event: str) -> str:
        """The JSON text of an event, with its time corrected to the service's clock."""
        if self._offset_ms == 0:
            return event
        return _TIME.sub(lambda sent: str(int(sent[0]) + self._offset_ms), event, count=1)

    def verdict(self, reply: Reply | NoReply, verdict: Verdict) -> Verdict:
        """The verdict. Events that were rejected because this clock is ahead are retried at once, with a corrected time."""
        offset = _offset_of(reply)
        if offset is None or not isinstance(verdict, PerEvent):
            return verdict
        if offset > _SAID_MS and not self._is_behind:
            self._is_behind = True
            self._report("clock_behind", f"{_clock(offset)} behind. Events have its time.")
        if abs(offset - self._offset_ms) <= _SURELY_MS:
            return verdict
        early = {id_ for id_, code in verdict.rejected.items() if code == "timestamp_too_new"}
        if not early or offset > 0:
            # Somebody has corrected the clock.
            self._offset_ms = 0
            return verdict
        self._offset_ms = offset
        self._report("clock_ahead", f"{_clock(offset)} ahead. The times of events are corrected.")
        rejected = {id_: code for id_, code in verdict.rejected.items() if id_ not in early}
        return replace(verdict, retry=verdict.retry | early, rejected=rejected, at_once=True)

    def _report(self, code: str, message: str) -> None:
        self._diagnostics.report("warning", code, message)


def _offset_of(reply: Reply | NoReply) -> int | None:
    """The service's clock minus this machine's, in milliseconds; None without a valid `Date`."""
    date = None if isinstance(reply, NoReply) else reply.header("date")
    try:
        return round(parsedate_to_datetime(date).timestamp() * 1_000 - time.time() * 1_000) if date else None
    except (ValueError, OverflowError):
        return None


def _clock(offset_ms: int) -> str:
    return f"The clock of this machine is {round(abs(offset_ms) / 60_000)} minutes"
