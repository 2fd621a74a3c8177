"""Builds the fields that the events of a run share from the host's options."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..delivery.queue import Recorder
from ..exact import exact_text
from ..limits import RUN_ID_CHARS, TEXT_CHARS
from .context import RunScope, Span
from .event import scope_json
from .open_telemetry import trace_of
from .run_state import RunState
from .sampling import is_sampled
from .text import cut_text, well_formed
from .usage import RunUsage

if TYPE_CHECKING:
    from ..core import Core


def create_scope(core: Core, options: Mapping[str, Any]) -> RunScope:
    """Never drops a run for a faulty id: it replaces or cuts the id, and reports it."""
    settings = core.settings

    def text(name: str, default: str | None) -> str | None:
        value = options.get(name)
        exact = exact_text(default if value is None else value)
        cut = default if exact is None else cut_text(exact, TEXT_CHARS)
        if value is not None and (exact is None or cut != exact):
            message = f"{name} must be a text of at most {TEXT_CHARS} characters."
            core.diagnostics.report("warning", "text_cut", message)
        # Return the text as recorded, so that a stop of an agent by its recorded name also matches here.
        return None if cut is None else well_formed(cut)

    run_id = _run_id_of(core, options.get("run_id"))
    session_id = text("session_id", None)
    agent_id = text("agent_id", settings.agent_id)
    agent_name = text("agent_name", settings.agent_name) or settings.agent_name
    fields = {"clientId": settings.client_id, "runId": run_id, "sessionId": session_id, "agentId": agent_id}
    span_id = core.ids.span()
    return RunScope(
        run_id=run_id,
        session_id=session_id,
        agent_id=agent_id,
        agent_name=agent_name,
        is_sampled=is_sampled(run_id, settings.sample_rate),
        json=scope_json({**fields, "agentName": agent_name, "schemaVersion": settings.schema_version}),
        span=Span(span_id, text("parent_span_id", None)),
        state=RunState(RunUsage(since=time.monotonic())),
        approval_client_id=settings.client_id,
        recorder=Recorder(core.process, span_id),
        trace=trace_of(options.get("traceparent")),
    )


def _run_id_of(core: Core, raw_id: object) -> str:
    """A run id that is too long is not cut, because two runs could become one."""
    if raw_id is None:
        return core.ids.uuid()
    text = exact_text(raw_id)
    if text is not None and 0 < len(text) <= RUN_ID_CHARS:
        return well_formed(text)
    run_id = core.ids.uuid()
    message = f"run_id must have 1 to {RUN_ID_CHARS} characters: the run is recorded as {run_id}."
    core.diagnostics.report("error", "invalid_run_id", message)
    return run_id
