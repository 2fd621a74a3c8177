"""The run and the span that the host's code is currently in."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

from .usage import RunUsage


@dataclass(frozen=True)
class Span:
    span_id: str
    parent_span_id: str | None


@dataclass(eq=False)
class RunScope:
    """What all events of a run share."""

    run_id: str
    session_id: str | None
    agent_id: str | None
    agent_name: str
    is_sampled: bool
    """Whether all its events are recorded, or only its outcome and policy decisions."""
    json: str
    """The shared event fields, as JSON without braces."""
    span: Span
    """Its root span."""
    usage: RunUsage
    annotations: dict[str, object] = field(default_factory=dict)
    """Added to each event payload that lacks the key, for example `promptVersionId`."""
    watch: object = None
    """The detectors of this run, kept by the guard."""


@dataclass(frozen=True, eq=False)
class Context:
    owner: object
    """The client: clients do not share runs."""
    scope: RunScope
    span: Span
    outer: Context | None


CURRENT: ContextVar[Context | None] = ContextVar("tacho", default=None)


def current_of(owner: object) -> Context | None:
    """The innermost run of this client, also inside a run of another one."""
    context = CURRENT.get()
    while context is not None and context.owner is not owner:
        context = context.outer
    return context
