"""
Asks people whether one call may run.

  creating --201--> asking --APPROVED--> approved
     |  ^             |  ^
     v  | no answer,  v  | PENDING; no answer, 429, 5xx
   (backoff)        (pause of at least 1 s between requests)
  any --REJECTED, EXPIRED, another answer, the local deadline, the signal--> a refusal

Only one path leads to `approved`; every other path is a refusal. Several processes may ask for one call: each gets the same
approval, and `claim_approval` lets one of them run the tool.
"""

from __future__ import annotations

import datetime
import math
import random
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal

from ..delivery.issue_records import CLAIM_PREFIX
from ..delivery.retry import wait_seconds
from ..delivery.transport import NoReply, Reply, StopSignal
from ..inner_class import inner_class
from ..recording.plain import Json, dump, read_safely
from ..recording.text import cut_text

if TYPE_CHECKING:
    from ..core import Core

# Longest `wait` that the service accepts.
_WAIT_SECONDS_MAX = 30
_POLL_INTERVAL = 1.0
_POLL_SPREAD = 0.5
# Timeout of a request, in addition to its `wait`.
_ANSWER_SECONDS = 10
# An id becomes part of a path, where `..` would lead elsewhere.
_ID = re.compile(r"\w[\w-]{0,254}\Z", re.ASCII)
# Longest reason: a model reads it.
_REASON_CHARS = 2_000
_TIME_CHARS = 40
# Only one claim can create this record: the others get `isNew: false`.
CLAIM_TYPE = "APPROVAL_PENDING"
_CLAIMS_MAX = 4
_CLAIM_WAIT_MAX = 5.0


@inner_class
class ApprovalOutcome:
    outcome: Literal["approved", "pending", "rejected", "expired", "timeout", "unavailable", "aborted", "used"]
    """`used`: the tool ran, or another process runs it."""
    approval_id: str | None
    """None if no approval was created."""
    decision_reason: str | None = None
    detail: str | None = None
    """The service's answer for a diagnostic, without content."""
    expires_at: str | None = None
    is_old: bool = False
    """An earlier call created the request, and it ended before the present call asked."""
    until: float = math.inf
    """When the approval ends, by this machine's clock. After that, nothing runs under it."""


@inner_class
class _Approval:
    id: str
    status: str
    decision_reason: str | None
    expires_at: str | None
    until: float


class _Refused(Exception):
    def __init__(self, outcome: ApprovalOutcome) -> None:
        self.outcome = outcome


@inner_class
class Asking:
    request: dict[str, Json]
    """The body of POST /firewall-approvals, with the same `clientRequestId` in every retry and every process."""
    client_id: str
    """The service shows an approval only to the client that requested it."""
    timeout: float
    wait: float
    """Longest wait, in seconds. An approval that is undecided then is pending."""
    on_created: Callable[[str, str | None], None]
    """Called once with the approval's id and its end, before the first wait."""
    stop: StopSignal
    """Ends the wait with the outcome `aborted`."""
    before_poll: Callable[[], object]


def ask_approval(core: Core, asking: Asking) -> ApprovalOutcome:
    """Waits for the decision, at most `timeout` seconds."""
    waiting = _Waiting(core, asking)
    try:
        return waiting.ask()
    except _Refused as refused:
        return replace(refused.outcome, approval_id=waiting.approval_id)


def claim_id(approval_id: str) -> str:
    return f"{CLAIM_PREFIX}{approval_id}"


def claim_approval(core: Core, asking: Asking, approval_id: str) -> Literal["claimed", "used", "unavailable"]:
    """
    Claims the approval for this process: the service stores an issue record once for each client and id, and reports `isNew` to
    one request only (interface: Issue record). The record is a recovery, so it opens no issue. `used`: the tool ran, or another
    process runs it. After a lost answer, `claimId` shows whether the stored record is this call's own.
    """
    settings, request = core.settings, asking.request
    shared = {name: request.get(name) for name in ("runId", "sessionId", "policyId")}
    record: dict[str, Json] = {
        "sdkInstanceId": asking.client_id,
        "clientRecordId": claim_id(approval_id),
        "recordKind": "RECOVERY",
        "detectionType": CLAIM_TYPE,
        **{name: value for name, value in shared.items() if value is not None},
        "agentId": request.get("agentId") or settings.agent_id or settings.agent_name,
        "detectedAt": time.time_ns() // 1_000_000,
        "payload": {"toolName": request["toolName"]},
        "evidence": {
            "decision": "APPROVED",
            "approvalId": approval_id,
            "inputHash": request["inputHash"],
            "claimId": str(uuid.uuid4()),
        },
    }
    body = dump(record).encode()
    for failures in range(1, _CLAIMS_MAX + 1):
        reply = core.request("POST", "/issue-records", body=body, timeout=settings.request_timeout)
        if isinstance(reply, Reply) and reply.ok and isinstance(reply.json, dict) and "recordId" in reply.json:
            # If `isSame` is missing, the owner is unknown, so the tool does not run.
            is_own = reply.json.get("isNew") is True or reply.json.get("isSame") is True
            return "claimed" if is_own else "used"
        if isinstance(reply, Reply) and not _is_temporary(reply.status):
            return "unavailable"
        retry_after = None if isinstance(reply, NoReply) else reply.header("retry-after")
        if failures < _CLAIMS_MAX:
            seconds = wait_seconds(failures, retry_after, time.time(), random.random())
            time.sleep(min(seconds, _CLAIM_WAIT_MAX))
    return "unavailable"


class _Waiting:
    def __init__(self, core: Core, asking: Asking) -> None:
        self._core = core
        self._asking = asking
        self._request = asking.request
        self._stop = asking.stop
        self._begun = time.monotonic()
        self._is_patient = asking.wait >= asking.timeout
        # Without a wait for a person, the deadline bounds the request.
        most = asking.timeout if self._is_patient else max(asking.wait, core.settings.request_timeout)
        self._deadline = self._begun + most
        self.approval_id: str | None = None

    def ask(self) -> ApprovalOutcome:
        settings = self._core.settings
        if not settings.enabled:
            raise self._refusal("unavailable", "the client is disabled")
        body = dump(self._request).encode()
        created = self._answered("POST", "/firewall-approvals", settings.request_timeout, body)
        approval = self._read(created, None) if created.status == 201 else None
        if approval is None:
            raise self._refusal("unavailable", f"status {created.status}")
        first = approval
        self.approval_id = approval.id
        self._asking.on_created(approval.id, approval.expires_at)
        if not self._is_patient:
            self._deadline = self._begun + self._asking.wait
        path = f"/firewall-approvals/{approval.id}?wait={_WAIT_SECONDS_MAX}"
        while True:
            if approval.status == "APPROVED":
                if time.time() >= approval.until:
                    return ApprovalOutcome("expired", approval.id, is_old=approval is first)
                return ApprovalOutcome("approved", approval.id, approval.decision_reason, until=approval.until)
            if approval.status == "REJECTED":
                return ApprovalOutcome("rejected", approval.id, approval.decision_reason)
            if approval.status == "EXPIRED":
                return ApprovalOutcome("expired", approval.id, is_old=approval is first)
            if approval.status != "PENDING":
                raise self._refusal("unavailable", "unknown status")
            if not self._is_patient and time.monotonic() >= self._deadline and not self._stop.is_set:
                return ApprovalOutcome("pending", approval.id, expires_at=approval.expires_at)
            self._asking.before_poll()
            try:
                reply = self._answered("GET", path, _WAIT_SECONDS_MAX + _ANSWER_SECONDS)
            except _Refused as refused:
                if self._is_patient or refused.outcome.outcome != "timeout":
                    raise
                return ApprovalOutcome("pending", approval.id, expires_at=approval.expires_at)
            following = self._read(reply, approval.id) if reply.status == 200 else None
            if following is None:
                raise self._refusal("unavailable", f"status {reply.status}")
            approval = following

    def _refusal(self, outcome: Literal["timeout", "unavailable", "aborted"], detail: str | None) -> _Refused:
        return _Refused(ApprovalOutcome(outcome, None, None, detail))

    def _answered(self, method: str, path: str, timeout: float, body: bytes | None = None) -> Reply:
        """The first conclusive answer, after retries. Raises if none arrives before the deadline."""
        detail: str | None = None
        failures = 0
        headers = {"x-service-client-id": self._asking.client_id}
        while True:
            start = time.monotonic()
            left = self._deadline - start
            if self._stop.is_set:
                raise self._refusal("aborted", detail)
            if left <= 0:
                raise self._refusal("timeout", detail)
            limit = min(timeout, left)
            reply = self._core.request(method, path, body=body, headers=headers, timeout=limit, stop=self._stop)
            # Measure from the last answer, so that the service sees the whole interval even if a request arrived late.
            interval = _POLL_INTERVAL + random.random() * _POLL_SPREAD if method == "GET" else 0.0
            if isinstance(reply, Reply) and not _is_temporary(reply.status):
                # A long poll that the service held open counts as the pause.
                is_quick = time.monotonic() - start < 2 * _POLL_INTERVAL
                if is_quick and isinstance(reply.json, dict) and reply.json.get("status") == "PENDING":
                    self._sleep(interval)
                return reply
            # If the wait ended, the service did not fail.
            if isinstance(reply, Reply):
                detail = f"status {reply.status}"
            elif reply.reason != "aborted" and time.monotonic() < self._deadline:
                detail = reply.message
            failures += 1
            retry_after = None if isinstance(reply, NoReply) else reply.header("retry-after")
            self._sleep(max(interval, wait_seconds(failures, retry_after, time.time(), random.random())))

    def _sleep(self, seconds: float) -> None:
        """Waits, at most until the deadline."""
        self._stop.wait(min(seconds, self._deadline - time.monotonic()))

    def _read(self, reply: Reply, approval_id: str | None) -> _Approval | None:
        """None unless the reply is the requested approval. A tool or hash in it must be the request's."""
        fields = reply.json
        if not isinstance(fields, dict):
            return None
        for name in ("toolName", "inputHash"):
            if fields.get(name) not in (None, self._request[name]):
                return None
        id_, status, reason = fields.get("id"), fields.get("status"), fields.get("decisionReason")
        if not isinstance(id_, str) or not _ID.match(id_) or approval_id not in (None, id_):
            return None
        if not isinstance(status, str):
            return None
        # Every decision has a time (interface: Firewall approval).
        if status == "APPROVED" and not fields.get("decidedAt"):
            return None
        expires_at = fields.get("expiresAt")
        return _Approval(
            id_,
            status,
            cut_text(reason, _REASON_CHARS) if isinstance(reason, str) else None,
            cut_text(expires_at, _TIME_CHARS) if isinstance(expires_at, str) else None,
            _until(expires_at, reply.header("date")),
        )


def _until(expires_at: object, date: str | None) -> float:
    """The end of the approval by this machine's clock, which may differ from the service's."""

    def read() -> float:
        end = datetime.datetime.fromisoformat(str(expires_at).replace("Z", "+00:00")).timestamp()
        server_time = parsedate_to_datetime(date).timestamp() if date else time.time()
        # Smaller differences between the clocks are ignored: the Date header has whole seconds.
        return end + (time.time() - server_time if abs(time.time() - server_time) > 1 else 0)

    return read_safely(read, math.inf)


def _is_temporary(status: int) -> bool:
    return status in (408, 429) or status >= 500
