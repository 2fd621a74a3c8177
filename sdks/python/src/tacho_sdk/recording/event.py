"""
Makes an event. Its payload is captured when it is recorded, so later changes have no effect. The sender's thread masks,
bounds and serialises it, because a record call must not wait for that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..delivery.queue import QueuedItem, Recorder
from ..limits import EVENT_TYPE_CHARS, LABEL_CHARS, RUN_ID_CHARS, TEXT_CHARS
from .context import RunScope, Span
from .plain import Plain, dump
from .text import cut_text, well_formed

OUTCOME = "SESSION_OUTCOME"
PROTECTED_TYPES = frozenset({OUTCOME, "POLICY_DECISION", "APPROVAL_WITHDRAWN", "SCORE"})


# Approximate size of the fields around a payload.
_FIELDS_BYTES = 400


def make_event(
    event_id: str,
    event_type: str,
    label: str,
    scope: RunScope,
    span: Span,
    timestamp: int,
    payload: Plain,
    number: str,
    recorder: Recorder,
    masked: Callable[[str], str],
    written: Callable[[Plain], str],
) -> QueuedItem:
    """
    `timestamp`: Unix time in milliseconds. `number`: the recorder's number of the event; empty if the host chose the id.
    `masked` masks the label, and `written` masks and serialises the payload, both when the event is written.
    """
    # A nested function would give the garbage collector a dozen more objects for each queued event.
    write = partial(_json_of, event_id, event_type, label, scope.json, span, timestamp, payload, number, masked, written)
    told_by = recorder if number else None
    return QueuedItem(event_id, write, payload.bytes + _FIELDS_BYTES, event_type in PROTECTED_TYPES, told_by)


def _json_of(
    event_id: str,
    event_type: str,
    label: str,
    scope_fields: str,
    span: Span,
    timestamp: int,
    payload: Plain,
    number: str,
    masked: Callable[[str], str],
    written: Callable[[Plain], str],
) -> str:
    parent = "" if span.parent_span_id is None else f',"parentSpanId":{dump(span.parent_span_id)}'
    n = f',"n":"{number}"' if number else ""
    return (
        f'{{"eventId":{dump(event_id)},{scope_fields},"eventType":{_field(event_type, EVENT_TYPE_CHARS)}'
        f',"label":{_field(masked(label), LABEL_CHARS)},"timestamp":{timestamp}'
        f',"spanId":{dump(span.span_id)}{parent}{n},"payload":{written(payload)}}}'
    )


def scope_json(fields: dict[str, str | None]) -> str:
    """The fields that all events of a run share."""
    return ",".join(
        f'"{name}":{_field(value, RUN_ID_CHARS if name == "runId" else TEXT_CHARS)}'
        for name, value in fields.items()
        if value is not None
    )


def _field(text: str, max_chars: int) -> str:
    return dump(well_formed(cut_text(text, max_chars)))
