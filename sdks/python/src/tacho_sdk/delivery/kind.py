"""Kinds of items that a sender delivers: events here, and issue records in issue_records.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..inner_class import inner_class
from ..limits import BATCH_EVENTS
from .answer import Verdict, verdict_of
from .queue import QueuedItem, Recorder
from .transport import NoReply, Reply


@inner_class
class Kind:
    noun: str
    """Noun in messages."""
    path: str
    max_batch: int
    """Most items in a request."""
    body_of: Callable[[Sequence[QueuedItem], Callable[[str], str]], str]
    """Makes the body of a request. Its second parameter corrects the time of an event."""
    verdict_of: Callable[[Reply | NoReply, Sequence[str]], Verdict]
    suffix: str
    """Ending of its files in the spool."""
    id_of: Callable[[dict[str, Any]], object]
    """Finds the id in the fields of a spooled line. The result is no `str` if the line is not an item."""


def _body_of(batch: Sequence[QueuedItem], corrected: Callable[[str], str]) -> str:
    """The first event of each recorder in the batch reports the drops so far."""
    told_recorders: set[Recorder] = set()
    texts: list[str] = []
    for event in batch:
        recorder, text = event.recorder, corrected(event.json)
        if recorder and recorder.dropped and recorder not in told_recorders:
            told_recorders.add(recorder)
            texts.append(f'{text[:-1]},"dropped":{json.dumps(dict(recorder.dropped))}}}')
        else:
            texts.append(text)
    return f"[{','.join(texts)}]"


def _id_of(fields: dict[str, Any]) -> object:
    return fields.get("eventId") if isinstance(fields.get("eventType"), str) else None


EVENTS = Kind("events", "/events/batch", BATCH_EVENTS, _body_of, verdict_of, ".events", _id_of)
