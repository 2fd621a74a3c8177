"""Issue records: detections and recoveries. Their own sender delivers them one by one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from ..limits import TEXT_CHARS
from ..recording.context import RunScope, prompt_version_of
from ..recording.plain import Json, dump
from ..recording.text import cut_text, utf8_length, well_formed
from .answer import PerEvent, Verdict, verdict_of
from .diagnostics import Diagnostics, DropReason, Level
from .kind import Kind
from .queue import QueuedItem
from .sender import Sender, SenderSettings
from .transport import NoReply, Reply

if TYPE_CHECKING:
    from ..core import Core

RecordKind = Literal["DETECTION", "RECOVERY"]

# With these limits, a whole record stays below the 256 KiB of the interface.
_PAYLOAD_BYTES = 131_072
_EVIDENCE_BYTES = 65_536
_QUEUED_MAX = 1_000
_QUEUED_BYTES_MAX = 4 * 1_048_576
# Reported codes of the sender, by its own name. All other codes are left to the sender of events.
_CODES = {
    "event_rejected": "issue_record_rejected",
    "events_dropped": "issue_record_dropped",
    "unauthorized": "issue_records_unauthorized",
    "forbidden": "issue_records_forbidden",
}
# Statuses that do not make a record faulty: a proxy may answer 401, 403 or 407.
_TEMPORARY = frozenset({401, 403, 407, 408, 429})


@dataclass(frozen=True)
class IssueReport:
    """A detection or a recovery. Keep the names of detectors and tools stable, because the service groups by them."""

    detection_type: str
    """Type of the detection: TOOL_BLOCKED, TOOL_FAILED, LOOP_DETECTED, BUDGET_EXCEEDED, or your own."""
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


class _Counts(Diagnostics):
    """Counts records, and passes problems on to the client's diagnostics."""

    def __init__(self, client: Diagnostics) -> None:
        super().__init__(None)
        self._client = client

    def report(self, level: Level, code: str, message: str) -> None:
        code_fault = _CODES.get(code)
        if code_fault is not None:
            self._client.report(level, code_fault, message)

    def hold_messages(self) -> None:
        self._client.hold_messages()

    def release(self) -> None:
        self._client.release()


class IssueRecords:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._counts = _Counts(core.diagnostics)
        settings = core.settings
        bounds = SenderSettings(settings.base_url, _QUEUED_MAX, _QUEUED_BYTES_MAX, 0, settings.request_timeout, compress=False)
        self.sender = Sender(_RECORDS, bounds, core.request, self._counts)
        if not settings.enabled:
            self.sender.close()
        elif core.spool is not None:
            self.sender.keep_in(core.spool)

    def reset(self) -> None:
        """Empties the queue in a forked process: its parent delivers these records."""
        self._counts.reset()
        self.sender.reset()

    @property
    def counters(self) -> IssueRecordCounters:
        all_of_them = vars(self.sender.counters)
        return IssueRecordCounters(**{field.name: all_of_them[field.name] for field in fields(IssueRecordCounters)})

    def report(self, scope: RunScope | None, report: IssueReport, *, own_id: str | None = None) -> str | None:
        """
        Queues one record; never raises and never waits. Returns its `clientRecordId`, the same in every attempt;
        None if the record is dropped. With `own_id`, another process can find the record by this id. The record then has the
        client id that requests the run's approvals.
        """
        self._counts.count("recorded")
        if not self.sender.is_open:
            self._drop("closed")
            return None
        try:
            record_id = own_id or self._core.ids.uuid()
            client_id = scope.approval_client_id if own_id and scope else self._core.settings.client_id
            text = self._text_of(record_id, client_id, scope, report)
            self.sender.add(QueuedItem(record_id, lambda: text, utf8_length(text), is_protected=False))
        except Exception:
            self._drop("failed")
            return None
        return record_id

    def _drop(self, reason: DropReason) -> None:
        self._counts.drop(reason)
        self._counts.report("warning", "events_dropped", f"1 issue records were dropped: {reason}.")

    def _text_of(self, record_id: str, client_id: str, scope: RunScope | None, report: IssueReport) -> str:
        settings = self._core.settings
        payload = self._core.payloads.write({**settings.released, **(report.payload or {})}, _PAYLOAD_BYTES)
        evidence = self._core.payloads.write(report.evidence, _EVIDENCE_BYTES)
        version = report.prompt_version_id or (prompt_version_of(self._core, scope) if scope else None)
        # The interface requires an agent id. The name identifies an agent without one.
        agent = (scope.agent_id or scope.agent_name) if scope else settings.agent_id or settings.agent_name
        record: dict[str, Json] = {
            "sdkInstanceId": client_id,
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


def _text(value: str | None) -> str | None:
    return None if value is None else cut_text(well_formed(value), TEXT_CHARS)


def _receipt_of(json: object, _ids: Sequence[str]) -> PerEvent | None:
    """A 2xx from something else, such as a proxy's page, confirms nothing."""
    return PerEvent() if isinstance(json, dict) and "recordId" in json else None


CLAIM_PREFIX = "run-"
"""Prefix of the id of a record that claims an approval."""


def _verdict_of(result: Reply | NoReply, ids: Sequence[str]) -> Verdict:
    verdict = verdict_of(result, ids, _receipt_of)
    status = 0 if isinstance(result, NoReply) else result.status
    if status == 409 and all(one.startswith(CLAIM_PREFIX) for one in ids):
        # 409: the caller has left, so nothing runs under its approval. The claim has no other purpose.
        return PerEvent()
    is_at_fault = 400 <= status < 500 and status not in _TEMPORARY
    return PerEvent(rejected=dict.fromkeys(ids, f"status {status}")) if is_at_fault else verdict


_RECORDS = Kind(
    noun="issue records",
    path="/issue-records",
    max_batch=1,
    body_of=lambda batch, _: batch[0].json,
    verdict_of=_verdict_of,
    suffix=".issues",
    id_of=lambda fields: fields.get("clientRecordId"),
)
