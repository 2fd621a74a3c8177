"""The handle with which a run is continued elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..exact import exact_text
from ..limits import CLIENT_ID_CHARS
from .context import RunScope
from .open_telemetry import active_trace
from .plain import read_safely
from .scope import create_scope

if TYPE_CHECKING:
    from ..core import Core

_HANDLE = {
    "run_id": "runId",
    "session_id": "sessionId",
    "agent_id": "agentId",
    "agent_name": "agentName",
    "parent_span_id": "parentSpanId",
    "traceparent": "traceparent",
}


def handle_of(core: Core, scope: RunScope) -> dict[str, Any]:
    core.shared_states.share(scope.run_id, scope.state)
    handle = {"runId": scope.run_id, "sessionId": scope.session_id, "agentId": scope.agent_id}
    handle |= {"agentName": scope.agent_name, "parentSpanId": core.span_of(scope).span_id}
    trace = active_trace() or scope.trace
    handle |= {"clientId": scope.approval_client_id, "traceparent": trace.traceparent if trace else None}
    return {**{name: value for name, value in handle.items() if value is not None}, **scope.state.carried()}


def resumed_scope(core: Core, handle: Mapping[str, Any]) -> RunScope:
    """The scope of a run that began elsewhere. A run that this process knows keeps its state."""
    nothing: dict[str, Any] = {}
    carried = read_safely(lambda: dict(handle), nothing)
    scope = create_scope(core, {name: carried.get(key) for name, key in _HANDLE.items()})
    scope.state = core.shared_states.of(scope.run_id) or scope.state
    core.shared_states.share(scope.run_id, scope.state)
    scope.state.add(carried)
    client_id = exact_text(carried.get("clientId"))
    if client_id is not None and 0 < len(client_id) <= CLIENT_ID_CHARS:
        scope.approval_client_id = client_id
    return scope
