"""
A queue of events or issue records, bounded in number and bytes. A full queue drops the oldest first, and outcomes and policy
decisions last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import count

from ..recording.text import utf8_length

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Recorder:
    """Numbers this client's events in a run, so that the service can count how many arrived."""

    def __init__(self, owner: object, span_id: str) -> None:
        """`owner`: the client in this process. `span_id`: the root span of the run here, in hexadecimal."""
        self.owner = owner
        # Five characters in base 36 make an event 13 to 16 bytes longer, and distinguish 60 million recorders of a run.
        self.id = base36(int(span_id[:13], 16))[-5:].rjust(5, "0")
        # Safe for threads.
        self.next_number = count(1).__next__
        self.dropped: dict[str, tuple[int, int]] = {}
        """By reason: the number of dropped events, and the time of the last drop, as Unix time in milliseconds."""

    def drop(self, reason: str, now: int) -> None:
        self.dropped[reason] = (self.dropped.get(reason, (0, 0))[0] + 1, now)


def base36(number: int) -> str:
    text = ""
    while number > 0:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text


class QueuedItem:
    __slots__ = ("_json", "_write", "attempts", "bytes", "id", "is_protected", "recorder", "sequence")

    def __init__(
        self, event_id: str, write: Callable[[], str], size: int, is_protected: bool, recorder: Recorder | None = None
    ) -> None:
        self.id = event_id
        """The item's `eventId` or `clientRecordId`."""
        self.bytes = size
        """UTF-8 bytes of `json`; an estimate until it is written."""
        self.is_protected = is_protected
        """An outcome or a policy decision. Dropped only when nothing else is left."""
        self.sequence = 0
        """Order of recording."""
        self.attempts = 0
        """Number of sends."""
        self.recorder = recorder
        """Recorder that counts this item if it is dropped."""
        self._json = ""
        self._write: Callable[[], str] | None = write

    @property
    def json(self) -> str:
        """The event as JSON. Written when it is first read: by the sender's thread, or in the record call."""
        write = self._write
        if write is not None:
            # Two threads may do this at once: both write the same.
            self._json = write()
            self.bytes = utf8_length(self._json)
            self._write = None
        return self._json


class Queue:
    """A queue that is not thread-safe: the sender holds its lock."""

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._ordinary: deque[QueuedItem] = deque()
        self._protected: deque[QueuedItem] = deque()
        self.bytes = 0
        # Events in a request still count, because they return if it fails.
        self._taken = 0
        self._taken_bytes = 0

    def __len__(self) -> int:
        """Queued events, without those taken."""
        return len(self._ordinary) + len(self._protected)

    @property
    def held(self) -> int:
        """Queued events, plus those taken and not yet finished."""
        return len(self._ordinary) + len(self._protected) + self._taken

    @property
    def held_bytes(self) -> int:
        return self.bytes + self._taken_bytes

    def add(self, event: QueuedItem) -> list[QueuedItem]:
        """Adds an event. Returns the events that were dropped to make room, perhaps the new one."""
        self._lane(event).append(event)
        self.bytes += event.bytes
        return self._bound()

    def _bound(self) -> list[QueuedItem]:
        dropped: list[QueuedItem] = []
        while self.held > self._max_events or self.bytes + self._taken_bytes > self._max_bytes:
            lane = self._ordinary or self._protected
            if not lane:  # Everything else is in a request.
                break
            dropped.append(lane.popleft())
            self.bytes -= dropped[-1].bytes
        return dropped

    def take(self, max_events: int, max_bytes: int) -> list[QueuedItem]:
        """Takes the oldest events, as many as fit. Each must be finished or put back."""
        batch: list[QueuedItem] = []
        size = 0
        while len(batch) < max_events:
            lane = self._older()
            if not lane or (batch and size + lane[0].bytes + 1 > max_bytes):
                break
            event = lane.popleft()
            batch.append(event)
            size += event.bytes + 1
            self.bytes -= event.bytes
            self._taken_bytes += event.bytes
            self._taken += 1
        return batch

    def weigh(self, events: Sequence[QueuedItem], before: int) -> list[QueuedItem]:
        """Corrects the bytes of taken events once they are written. Returns the events that were dropped to make room."""
        self._taken_bytes += sum(event.bytes for event in events) - before
        return self._bound()

    def finish(self, events: Sequence[QueuedItem]) -> None:
        """Call this for taken events that were accepted, rejected or dropped."""
        self._taken -= len(events)
        self._taken_bytes -= sum(event.bytes for event in events)

    def put_back(self, events: Sequence[QueuedItem]) -> None:
        """Call this for taken events to send again, in the order they were taken."""
        self.finish(events)
        for event in reversed(events):
            self._lane(event).appendleft(event)
            self.bytes += event.bytes

    def clear(self) -> list[QueuedItem]:
        """Empties the queue and returns its events. Taken events stay taken."""
        events = [*self._ordinary, *self._protected]
        self._ordinary.clear()
        self._protected.clear()
        self.bytes = 0
        return events

    def _lane(self, event: QueuedItem) -> deque[QueuedItem]:
        return self._protected if event.is_protected else self._ordinary

    def _older(self) -> deque[QueuedItem]:
        ordinary, protected = self._ordinary, self._protected
        if protected and (not ordinary or protected[0].sequence < ordinary[0].sequence):
            return protected
        return ordinary
