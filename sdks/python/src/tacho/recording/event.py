"""Makes an event. It is masked, bounded and serialised when it is recorded, so later changes have no effect."""

from __future__ import annotations

from ..delivery.queue import QueuedEvent
from ..limits import EVENT_TYPE_CHARS, LABEL_CHARS, RUN_ID_CHARS, TEXT_CHARS
from .context import RunScope, Span
from .plain import dump
from .text import cut_text, utf8_length, well_formed

PROTECTED_TYPES = frozenset({"SESSION_OUTCOME", "POLICY_DECISION"})


def make_event(
    event_id: str, event_type: str, label: str, scope: RunScope, span: Span, timestamp: int, payload_json: str
) -> QueuedEvent:
    """`payload_json`: masked and bounded. `timestamp`: Unix time in milliseconds."""
    parent = "" if span.parent_span_id is None else f',"parentSpanId":{dump(span.parent_span_id)}'
    json = (
        f'{{"eventId":"{event_id}",{scope.json},"eventType":{_field(event_type, EVENT_TYPE_CHARS)}'
        f',"label":{_field(label, LABEL_CHARS)},"timestamp":{timestamp}'
        f',"spanId":{dump(span.span_id)}{parent},"payload":{payload_json}}}'
    )
    return QueuedEvent(event_id, json, utf8_length(json), event_type in PROTECTED_TYPES)


def scope_json(fields: dict[str, str | None]) -> str:
    """The fields that all events of a run share."""
    return ",".join(
        f'"{name}":{_field(value, RUN_ID_CHARS if name == "runId" else TEXT_CHARS)}'
        for name, value in fields.items()
        if value is not None
    )


def _field(text: str, max_chars: int) -> str:
    return dump(well_formed(cut_text(text, max_chars)))
