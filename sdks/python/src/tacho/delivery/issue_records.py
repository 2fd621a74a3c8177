"""
Delivers issue records: detections and recoveries.

  idle --report--> sending --accepted, refused--> sending the next, or idle
                      |  ^
                      v  | backoff, Retry-After
                    waiting              any --close--> closed: queued records are dropped
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..limits import TEXT_CHARS
from ..recording.context import RunScope, prompt_version_of
from ..recording.plain import Json, dump
from ..recording.text import cut_text, utf8_length, well_formed
from .answer import key_refusal_of
from .lock import QueueLock
from .retry import wait_seconds
from .spool import Keeper, SpoolUser
from .transport import NoReply, Reply
from .worker import Worker

if TYPE_CHECKING:
    from ..core import Core

RecordKind = Literal["DETECTION", "RECOVERY"]
IssueDropReason = Literal["queue_full", "closed", "failed"]

# With the other fields, a record stays below the 256 KiB of the interface.
_PAYLOAD_BYTES = 131_072
_EVIDENCE_BYTES = 65_536
_QUEUED_MAX = 1_000
# How often a key is tried that Tacho refused.
_REFUSED_SECONDS = 300.0
_STOP_SECONDS = 0.2
_QUEUED_BYTES_MAX = 4 * 1_048_576


@dataclass(frozen=True)
class IssueReport:
    """A detection or a recovery. Keep the names of detectors and tools stable, because the service groups by them."""

    detection_type: str
    """For example TOOL_BLOCKED, TOOL_FAILED, LOOP_DETECTED, BUDGET_EXCEEDED, or your own."""
    record_kind: RecordKind = "DETECTION"
    policy_id: str | None = None
    event_id: str | None = None
    """Id of a related event in the same run."""
    prompt_version_id: str | None = None
    payload: Mapping[str, object] | None = None
    """Structured facts: `toolName`, `tools`, `riskSignals`, `reasonCode`."""
    evidence: Mapping[str, object] | None = None
    """Supporting facts, for example `decision`."""


@dataclass(frozen=True)
class IssueRecordCounters:
    """Always: recorded = accepted + rejected + every `dropped` + queued."""

    recorded: int
    """Reports, and records recovered from the spool."""
    recovered: int
    """Records that a dead process left in the spool; counted in `recorded` too."""
    accepted: int
    rejected: int
    dropped: Mapping[str, int]
    queued: int
    retried: int


@dataclass(eq=False)
class _Queued:
    id: str
    """Its `clientRecordId`."""
    json: str
    bytes: int
    attempts: int = 0


class IssueRecords:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._is_closed = not core.settings.enabled
        self._worker = Worker("tacho-issues", self._step)
        self._keeper: Keeper | None = None
        self.reset()
        if core.spool is not None:
            user = SpoolUser(".issues", lambda: not self._is_closed, self._has_room, _id_of, self._restore)
            self._keeper = core.spool.keep(user)

    def reset(self) -> None:
        """Empties the queue: in a forked process, its records are the parent's to deliver."""
        self._changed = QueueLock(self._core.diagnostics)
        self._queue: deque[_Queued] = deque()
        self._bytes = 0
        self._sending: _Queued | None = None
        self._failures = 0
        self._not_before = 0.0
        self._is_refused = False
        self._counts = {"recorded": 0, "recovered": 0, "accepted": 0, "rejected": 0, "retried": 0}
        self._dropped: dict[str, int] = {}
        self._worker.reset()

    @property
    def counters(self) -> IssueRecordCounters:
        with self._changed:
            return IssueRecordCounters(**self._counts, dropped=dict(self._dropped), queued=len(self._queue))

    def report(self, scope: RunScope | None, report: IssueReport) -> str | None:
        """
        Queues one record; never raises and never waits. Returns its `clientRecordId`, the same in every attempt; None
        if the record is dropped.
        """
        with self._changed:
            self._counts["recorded"] += 1
            if self._is_closed:
                self._drop("closed")
                return None
        try:
            record_id = self._core.ids.uuid()
            text = self._text_of(record_id, scope, report)
            record = _Queued(record_id, text, utf8_length(text))
            if self._keeper is not None:
                self._keeper.append(record)
        except Exception:
            with self._changed:
                self._drop("failed")
            return None
        self._add(record)
        return record_id

    def go_on(self) -> None:
        """After a refused key: the client has another one."""
        with self._changed:
            self._is_refused = False
            self._not_before = 0.0
        self._worker.wake()

    def _add(self, record: _Queued) -> None:
        with self._changed:
            self._queue.append(record)
            self._bytes += record.bytes
            while len(self._queue) > _QUEUED_MAX or self._bytes > _QUEUED_BYTES_MAX:
                # The first one may be in a request.
                oldest = self._queue[1 if self._sending else 0]
                self._remove(oldest)
                self._drop("queue_full")
        self._worker.wake()

    def _has_room(self) -> bool:
        with self._changed:
            return len(self._queue) < _QUEUED_MAX / 2 and self._bytes < _QUEUED_BYTES_MAX / 2

    def _restore(self, id_: str, json: str, _fields: dict[str, Any]) -> None:
        with self._changed:
            self._counts["recorded"] += 1
            self._counts["recovered"] += 1
        self._add(_Queued(id_, json, utf8_length(json)))

    def flush(self, timeout: float) -> int:
        """Waits until the queue is empty or the time is up. Returns how many records are left."""
        deadline = time.monotonic() + timeout
        if len(self._queue) == 0:
            return 0
        is_working = self._worker.wake()
        if not is_working:
            self._worker.drain(lambda: len(self._queue) == 0 or self._is_refused, deadline)
        with self._changed:
            while is_working and self._queue and not self._is_refused and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
            return len(self._queue)

    def flush_at_end(self, timeout: float) -> int:
        """The last flush of the process."""
        left = self.flush(timeout)
        self._worker.stop(_STOP_SECONDS)
        return left

    def close(self, reason: IssueDropReason = "closed") -> None:
        with self._changed:
            self._is_closed = True
            if self._keeper is not None:
                self._keeper.close()
            for _ in self._queue:
                self._drop(reason)
            self._queue.clear()
            self._bytes = 0
            self._changed.notify_all()

    def _text_of(self, record_id: str, scope: RunScope | None, report: IssueReport) -> str:
        settings = self._core.settings
        payload = self._core.payloads.write({**settings.released, **(report.payload or {})}, _PAYLOAD_BYTES)
        evidence = self._core.payloads.write(report.evidence, _EVIDENCE_BYTES)
        version = report.prompt_version_id or (prompt_version_of(self._core, scope) if scope else None)
        # The interface requires an agent id. The name identifies an agent without one.
        agent = (scope.agent_id or scope.agent_name) if scope else settings.agent_id or settings.agent_name
        record: dict[str, Json] = {
            "sdkInstanceId": settings.client_id,
            "clientRecordId": record_id,
            "recordKind": report.record_kind,
            "detectionType": _text(report.detection_type),
            "runId": scope.run_id if scope else None,
            "sessionId": _text(scope.session_id) if scope else None,
            "eventId": _text(report.event_id),
            "agentId": _text(agent),
            "policyId": _text(report.policy_id),
            "promptVersionId": version if isinstance(version, str) else None,
            "detectedAt": time.time_ns() // 1_000_000,
        }
        text = dump({name: value for name, value in record.items() if value is not None})
        return f'{text[:-1]},"payload":{payload},"evidence":{evidence}}}'

    def _step(self) -> float | None:
        with self._changed:
            if not self._queue or self._is_closed:
                return None
            wait = self._not_before - time.monotonic()
            if wait > 0:
                return wait
            record = self._sending = self._queue[0]
            record.attempts += 1
            if record.attempts > 1:
                self._counts["retried"] += 1
        timeout = self._core.settings.request_timeout
        reply = self._core.request("POST", "/issue-records", body=record.json.encode(), timeout=timeout)
        with self._changed:
            self._sending = None
            if record in self._queue:  # Not closed meanwhile.
                self._conclude(record, reply)
        return 0.0

    def _conclude(self, record: _Queued, reply: Reply | NoReply) -> None:
        diagnostics = self._core.diagnostics
        status = None if isinstance(reply, NoReply) else reply.status
        refusal = None if isinstance(reply, NoReply) else key_refusal_of(reply)
        self._is_refused = refusal is not None
        if refusal is not None:
            message = f"The service refuses the API key for issue records: {status}. They stay queued."
            diagnostics.report("error", f"issue_records_{refusal}", message)
            self._not_before = time.monotonic() + _REFUSED_SECONDS
            self._changed.notify_all()
        elif status is not None and 200 <= status < 300 and _is_receipt(getattr(reply, "json", None)):
            self._counts["accepted"] += 1
            self._done(record)
        elif status is not None and 400 <= status < 500 and status not in (401, 403, 407, 408, 429):
            self._counts["rejected"] += 1
            diagnostics.report("warning", "issue_record_rejected", f"The service rejected an issue record: {status}.")
            self._done(record)
        else:
            retry_after = getattr(reply, "headers", {}).get("retry-after")
            self._failures += 1
            wait = wait_seconds(self._failures, retry_after, time.time(), random.random())
            self._not_before = time.monotonic() + wait

    def _done(self, record: _Queued) -> None:
        self._failures = 0
        self._not_before = 0.0
        self._remove(record)
        self._changed.notify_all()

    def _remove(self, record: _Queued) -> None:
        self._queue.remove(record)
        self._bytes -= record.bytes
        if self._keeper is not None:
            self._keeper.finish([record])

    def _drop(self, reason: IssueDropReason) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + 1
        message = f"An issue record was dropped: {reason}."
        self._core.diagnostics.report("warning", "issue_record_dropped", message)


def _text(value: str | None) -> str | None:
    return None if value is None else cut_text(well_formed(value), TEXT_CHARS)


def _id_of(fields: dict[str, Any]) -> object:
    return fields.get("clientRecordId")


def _is_receipt(json: object) -> bool:
    """A 2xx from something else, such as a proxy's page, confirms nothing."""
    return isinstance(json, dict) and "recordId" in json
