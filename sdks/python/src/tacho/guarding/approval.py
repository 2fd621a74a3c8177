"""
Asks people whether one call may run.

  creating --201--> asking --APPROVED--> approved
     |  ^             |  ^
     v  | no answer,  v  | PENDING; no answer, 429, 5xx
   (backoff)        (pause of at least 1 s between requests)
  any --REJECTED, EXPIRED, another answer, the local deadline, the signal--> a refusal

Only one path leads to `approved`; every other path is a refusal.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ..delivery.retry import wait_seconds
from ..delivery.transport import NoReply, Reply, StopSignal
from ..recording.plain import Json, dump
from ..recording.text import cut_text

if TYPE_CHECKING:
    from ..core import Core

# Longest `wait` that the service accepts.
_WAIT_SECONDS_MAX = 30
_POLL_INTERVAL = 1.0
_POLL_SPREAD = 0.5
# Extra time for an answer, in addition to the requested wait.
_ANSWER_SECONDS = 10
# An id becomes part of a path: `..` would name another one.
_ID = re.compile(r"\w[\w-]{0,254}\Z", re.ASCII)
# A model reads the reason.
_REASON_CHARS = 2_000


@dataclass(frozen=True)
class ApprovalOutcome:
    outcome: Literal["approved", "rejected", "expired", "timeout", "unavailable", "aborted"]
    approval_id: str | None
    """None when none was created."""
    decision_reason: str | None = None
    detail: str | None = None
    """For a diagnostic: how the service answered. Holds no content."""


@dataclass(frozen=True)
class _Approval:
    id: str
    status: str
    decision_reason: str | None


class _Refused(Exception):
    def __init__(self, outcome: ApprovalOutcome) -> None:
        self.outcome = outcome


def ask_approval(
    core: Core,
    request: dict[str, Json],
    timeout: float,
    on_created: Callable[[str], None],
    stop: StopSignal,
) -> ApprovalOutcome:
    """
    Waits for the decision, at most `timeout` seconds. `request`: the body of POST /firewall-approvals, with the same
    `clientRequestId` in every retry. `on_created` is called once with the approval's id, before the first wait. `stop`
    ends the wait with the outcome `aborted`.
    """
    asking = _Asking(core, request, time.monotonic() + timeout, stop)
    try:
        return asking.ask(on_created)
    except _Refused as refused:
        return replace(refused.outcome, approval_id=asking.approval_id)


class _Asking:
    def __init__(self, core: Core, request: dict[str, Json], deadline: float, stop: StopSignal) -> None:
        self._core = core
        self._request = request
        self._deadline = deadline
        self._stop = stop
        self.approval_id: str | None = None

    def ask(self, on_created: Callable[[str], None]) -> ApprovalOutcome:
        settings = self._core.settings
        if not settings.enabled:
            raise self._refusal("unavailable", "the client is disabled")
        body = dump(self._request).encode()
        created = self._answered("POST", "/firewall-approvals", settings.request_timeout, body)
        approval = self._read(created, None) if created.status == 201 else None
        if approval is None:
            raise self._refusal("unavailable", f"status {created.status}")
        self.approval_id = approval.id
        on_created(approval.id)
        path = f"/firewall-approvals/{approval.id}?wait={_WAIT_SECONDS_MAX}"
        while True:
            if approval.status == "APPROVED":
                return ApprovalOutcome("approved", approval.id, approval.decision_reason)
            if approval.status == "REJECTED":
                return ApprovalOutcome("rejected", approval.id, approval.decision_reason)
            if approval.status == "EXPIRED":
                raise self._refusal("expired", None)
            if approval.status != "PENDING":
                raise self._refusal("unavailable", "unknown status")
            reply = self._answered("GET", path, _WAIT_SECONDS_MAX + _ANSWER_SECONDS)
            following = self._read(reply, approval.id) if reply.status == 200 else None
            if following is None:
                raise self._refusal("unavailable", f"status {reply.status}")
            approval = following

    def _refusal(self, outcome: Literal["expired", "timeout", "unavailable", "aborted"], detail: str | None) -> _Refused:
        return _Refused(ApprovalOutcome(outcome, None, None, detail))

    def _answered(self, method: str, path: str, timeout: float, body: bytes | None = None) -> Reply:
        """The first answer that is not "try again". Raises if none arrives before the deadline."""
        detail: str | None = None
        failures = 0
        headers = {"x-service-client-id": self._core.settings.client_id}
        while True:
            start = time.monotonic()
            left = self._deadline - start
            if self._stop.is_set:
                raise self._refusal("aborted", detail)
            if left <= 0:
                raise self._refusal("timeout", detail)
            limit = min(timeout, left)
            reply = self._core.request(method, path, body=body, headers=headers, timeout=limit, stop=self._stop)
            # Count from the answer. Then the service sees the whole interval, even if the request arrived late.
            interval = _POLL_INTERVAL + random.random() * _POLL_SPREAD if method == "GET" else 0.0
            if isinstance(reply, Reply) and not _is_temporary(reply.status):
                # A long poll that the service held open already was the pause.
                is_quick = time.monotonic() - start < 2 * _POLL_INTERVAL
                if is_quick and isinstance(reply.json, dict) and reply.json.get("status") == "PENDING":
                    self._sleep(interval)
                return reply
            # An end of the wait says nothing about the service.
            if isinstance(reply, Reply):
                detail = f"status {reply.status}"
            elif reply.reason != "aborted" and time.monotonic() < self._deadline:
                detail = reply.message
            failures += 1
            retry_after = None if isinstance(reply, NoReply) else reply.header("retry-after")
            self._sleep(max(interval, wait_seconds(failures, retry_after, time.time(), random.random())))

    def _sleep(self, seconds: float) -> None:
        """Also ends at the deadline."""
        self._stop.wait(min(seconds, self._deadline - time.monotonic()))

    def _read(self, reply: Reply, approval_id: str | None) -> _Approval | None:
        """None unless it is the requested approval. An answer that names a tool or a hash must name the request's."""
        given = reply.json
        if not isinstance(given, dict):
            return None
        for name in ("toolName", "inputHash"):
            if given.get(name) not in (None, self._request[name]):
                return None
        id_, status, reason = given.get("id"), given.get("status"), given.get("decisionReason")
        if not isinstance(id_, str) or not _ID.match(id_) or approval_id not in (None, id_):
            return None
        if not isinstance(status, str):
            return None
        # A decision has a time (interface: Firewall approval).
        if status == "APPROVED" and not given.get("decidedAt"):
            return None
        return _Approval(id_, status, cut_text(reason, _REASON_CHARS) if isinstance(reason, str) else None)


def _is_temporary(status: int) -> bool:
    return status in (408, 429) or status >= 500
