"""Everything a client consists of, built once from its options. Only `request` holds the key."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .delivery import process_end
from .delivery.diagnostics import Diagnostics
from .delivery.kind import EVENTS
from .delivery.queue import Recorder, base36
from .delivery.rotating_key import RotatingKey
from .delivery.sender import Sender, SenderSettings
from .delivery.spool import Spool
from .delivery.transport import Connections, Request
from .exact import class_name, exact_text
from .guarding.asked_calls import AskedCalls
from .guarding.leaving_caller import LeavingCallers
from .options import Settings, resolve
from .policy.input_hash import input_hash
from .policy.sealed_input import seal_key, sealed_input
from .recording.context import RunScope, Span, acting, current_of, here_in, prompt_facts_of
from .recording.event import OUTCOME, PROTECTED_TYPES, make_event
from .recording.ids import Ids
from .recording.mask import Mask
from .recording.moment import Moment, unix_seconds
from .recording.open_runs import OpenRuns
from .recording.open_telemetry import active_trace
from .recording.payload import Payload, Payloads
from .recording.plain import dump, read_safely
from .recording.run_state import SharedStates
from .recording.score import score_payload
from .recording.text import well_formed

RUN_STARTED_MS = 500
"""
A run begins at its first event. If that comes at least this long after the host entered the run, an event records the start
first.
"""


class Core:
    settings: Settings

    def __init__(self, options: Mapping[str, Any], request: Request | None = None) -> None:
        """`request` replaces the network."""
        self.ids = Ids(now_ms)
        self.process = object()
        # Clients do not share runs, unless one continues as another.
        self.lineage = object()
        resolved = resolve(options, self.ids.uuid())
        self.settings, api_key, problems = resolved.settings, resolved.api_key, resolved.problems
        listener = options.get("on_diagnostic")
        self.diagnostics = Diagnostics(listener if callable(listener) else None)
        # One message for all problems: without a listener, each code is shown only once.
        if problems:
            self.diagnostics.report("error", "invalid_option", " ".join(problems))
        settings = self.settings
        self._rotating = None if isinstance(api_key, str) else RotatingKey(api_key)
        # Closures, so that no printable object holds the key.
        key_of = self._rotating.current if self._rotating else lambda: str(api_key)
        self.identity = lambda: f"{settings.base_url}\n{hash_of(key_of)}"
        self._seal_key: bytes | None = None
        self._key_of: Callable[[], str] = key_of
        self.connections = Connections(settings.base_url, key_of)
        send: Request = self.connections.request
        self.request: Request = request or (self._rotating.sending(send) if self._rotating else send)
        self.mask = Mask(settings.masking)
        self.open_runs = OpenRuns()
        self.leaving_callers = LeavingCallers()
        self.asked_calls = AskedCalls()
        self.shared_states = SharedStates()
        self.on_run: Callable[[], None] = lambda: None
        # Called before masking, for histories.
        self.observe: Callable[[RunScope, str, Payload | None], None] = lambda _scope, _type, _payload: None
        self.payloads = Payloads(settings.capture, settings.metadata_keys, self.mask, self.diagnostics)
        self.sender = Sender(
            EVENTS,
            SenderSettings(
                settings.base_url,
                settings.max_queued_events,
                settings.max_queued_bytes,
                settings.flush_interval,
                settings.request_timeout,
                settings.compress,
            ),
            self.request,
            self.diagnostics,
        )
        self.spool: Spool | None = None
        if not settings.enabled:
            self.sender.close("disabled")
        elif note := os.environ.get("TACHO_RECORDED_BY"):
            # Tell `tacho record` that an SDK records this program.
            read_safely(Path(note).touch, None)
        if settings.enabled and settings.spool is not None:
            self.spool = Spool(settings.spool, 2 * settings.max_queued_bytes, self.ids, self.diagnostics)
            self.sender.keep_in(self.spool)

    def go_on_as(self, other: Core) -> None:
        """From now on, sends with the other client's key, and shares this client's open runs with it."""
        self.request = other.request
        self.sender.go_on_with(other.request)
        other.lineage, other.process = self.lineage, self.process
        other.open_runs, other.shared_states = self.open_runs, self.shared_states
        other.leaving_callers = self.leaving_callers

    def record(
        self,
        scope: RunScope | None,
        event_type: str,
        label: str,
        payload: Payload | None = None,
        *,
        at: Moment | None = None,
        span: Span | None = None,
        is_counted: bool = False,
        is_last: bool = False,
        event_id: str | None = None,
    ) -> str | None:
        """
        Records one event of a run. Never raises and never waits. Returns the event's id; None if it was dropped.
        `is_counted`: its use was counted before, when the call was admitted.
        `is_last`: this process records nothing more of the run.
        `event_id`: default: a new id. A repeated id counts once.
        """
        process_end.notice_fork()
        self.diagnostics.count("recorded")
        if scope is None:
            self.diagnostics.report("warning", "no_run", "An event outside a run was dropped.")
            self.diagnostics.drop("no_run")
            return None
        recorder = self._recorder_of(scope)
        number = 0
        try:
            problem = _problem_of(event_type, label, payload)
            if problem is not None:
                self.diagnostics.report("warning", "invalid_call", problem)
            text = exact_text(event_type)
            kind = str.__str__(str(event_type)) if text is None else text
            if not is_counted:
                scope.usage.count(kind, payload)
            self.observe(scope, kind, payload)
            if not scope.is_sampled and kind not in PROTECTED_TYPES:
                self.diagnostics.drop("sampled")
                return None
            around = here_in(self, scope)
            prompt, agent = prompt_facts_of(around, scope), None if around is None else around.agent
            trace = active_trace() or scope.trace
            released = self.settings.released
            if scope.annotations or prompt is not None or agent is not None or trace is not None or released:
                noted: dict[str, object] = {**released, **(prompt or {})}
                if agent is not None and kind != OUTCOME:
                    noted["agent"] = agent
                if trace is not None:
                    noted |= {"traceId": trace.trace_id, "traceSpanId": trace.span_id}
                payload = {**noted, **scope.annotations, **(payload or {})}
            when = now_ms() if at is None else round(unix_seconds(at) * 1_000)
            entered_at, scope.entered_at = scope.entered_at, None
            if scope.is_sampled and entered_at is not None and when - entered_at >= RUN_STARTED_MS:
                self.record(scope, "AGENT_STEP", "run started", at=entered_at / 1_000, span=scope.span)
            own_id = None if event_id is None else well_formed(str.__str__(str(event_id)))
            # An event with a repeated id is stored once, so the number of the second one would seem to be missing.
            if not own_id:
                number = recorder.next_number()
            event_id = own_id or self.ids.uuid()
            where = span or (scope.span if around is None else around.span)
            captured = self.payloads.capture(payload, kind)
            text = self._label(label)
            end = "." if is_last or kind == OUTCOME else ""
            numbered = f"{recorder.id}{base36(number)}{end}" if number > 0 else ""
            event = make_event(
                event_id, kind, text, scope, where, when, captured, numbered, recorder, self._masked, self.payloads.written
            )
            if self.settings.masking.custom is not None:
                event.json  # noqa: B018 - a function of the host runs inside its record call.
            return event_id if self.sender.add(event) else None
        except Exception as error:
            name = class_name(error)
            self.diagnostics.report("error", "record_failed", f"An event could not be recorded: {name}.")
            self.diagnostics.drop("failed")
            if number == 0:
                recorder.next_number()
            recorder.drop("failed", now_ms())
            return None

    def hash_input(self, tool_name: str, form: object, shown: object) -> tuple[str, dict[str, str] | None]:
        """
        The hash that an approval is bound to, and the seals by which people can check a masked input against it. Raises
        NotPlainJson.
        """
        if self.settings.capture == "full":
            sealed = read_safely(lambda: self._sealed(tool_name, form, shown), None)
            if sealed is not None:
                return sealed[1], sealed[0]
        return input_hash(tool_name, form), None

    def _sealed(self, tool_name: str, form: object, shown: object) -> tuple[dict[str, str], str] | None:
        payload: dict[str, Any] = {"input": shown}
        if not self.mask.touches(dump(payload)):
            return None
        masked: Any = self.mask.value(payload)
        if masked == payload:
            return None
        # The seal key stays the same for the life of the client, even if the API key changes.
        api_key = self._key_of()
        if self._seal_key is None and not api_key:
            return None  # Without a key, anybody could guess the masked values.
        self._seal_key = self._seal_key or seal_key(api_key)
        return sealed_input(self._seal_key, tool_name, form, masked["input"])

    def score(
        self,
        scope: RunScope,
        name: object,
        value: object,
        comment: object,
        event_id: object,
        author: object,
        own_id: str | None,
        is_late: bool = False,
    ) -> str | None:
        """Records a score of a run. `is_late`: this process does not record the run, so the event has no number."""
        score_facts = score_payload(name, value, comment, event_id, author)
        if isinstance(score_facts, str):
            self.diagnostics.report("warning", "invalid_score", f"A score was left out: {score_facts}.")
            return None
        label, payload = score_facts
        late_id = self.ids.uuid() if is_late else None
        return self.record(scope, "SCORE", label, payload, event_id=exact_text(own_id) or late_id)

    def _recorder_of(self, scope: RunScope) -> Recorder:
        if scope.recorder.owner is not self.process:
            # A forked process needs a recorder of its own.
            scope.recorder = Recorder(self.process, self.ids.span())
        return scope.recorder

    def span_of(self, scope: RunScope) -> Span:
        around = here_in(self, scope)
        return scope.span if around is None else around.span

    def hand_over(self, scope: RunScope, giver: str, taker: str, call_id: object = None) -> None:
        """Records that an agent of the run hands over to another one."""
        scope.team.hand_over(giver, taker)
        names = {"from": giver, "to": taker, **({"toolCallId": call_id} if exact_text(call_id) else {})}
        # Record it as the giver's event, because the taker may act already.
        with acting(self, giver):
            self.record(scope, "HANDOFF", f"{giver} to {taker}", names)

    def current_scope(self) -> RunScope | None:
        current = current_of(self)
        return current.scope if current else None

    def reset(self) -> None:
        """Begins anew in a forked process: the parent delivers what was queued before."""
        self.ids.reset()
        self.process = object()
        self.open_runs.reset()
        self.leaving_callers.reset()
        self.asked_calls.reset()
        self.diagnostics.reset()
        self.connections.reset()
        self.payloads.reset()
        if self._rotating is not None:
            self._rotating.reset()
        self.sender.reset()
        if self.spool is not None:
            self.spool.reset()

    def _label(self, label: object) -> str:
        exact_label = exact_text(label)
        return well_formed(read_safely(lambda: str.__str__(str(label)), "[unreadable]") if exact_label is None else exact_label)

    def _masked(self, text: str) -> str:
        try:
            return self.mask.label(text)
        except Exception:
            self.diagnostics.report("error", "masking_failed", "Masking failed: a label was dropped.")
            return "[masked:error]"


def _problem_of(event_type: object, label: object, payload: object) -> str | None:
    """Why the members of an event are invalid. The event is recorded as far as possible."""
    if type(event_type) is str and event_type and type(label) is str and label and (payload is None or type(payload) is dict):
        return None
    for name, named_text in (("event_type", event_type), ("label", label)):
        if not exact_text(named_text):
            return f"The {name} of an event is missing or no text: record(event_type, label, payload)."
    if payload is not None and not issubclass(type(payload), Mapping):
        return "The payload of an event must be a mapping: its members are recorded by name."
    return None


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def hash_of(api_key: Callable[[], str]) -> str:
    """A digest of the key, so that files of one environment are not used for another."""
    import hashlib

    return hashlib.sha256(api_key().encode()).hexdigest()
