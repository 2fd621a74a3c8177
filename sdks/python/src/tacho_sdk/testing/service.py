"""A service in memory, in place of the network. It stores what it receives and answers like a real service."""

from __future__ import annotations

import datetime
import gzip
import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..configuration.configuration import Policy
from ..delivery.transport import REPLY_BYTES_MAX, NoReply, Reply, StopSignal


@dataclass(frozen=True)
class RecordedEvent:
    event_id: str
    client_id: str
    run_id: str
    agent_name: str
    event_type: str
    label: str
    timestamp: int
    """Unix time in milliseconds."""
    payload: Mapping[str, Any]
    session_id: str | None = None
    agent_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None


@dataclass(frozen=True)
class RecordedIssue:
    client_record_id: str
    record_kind: Literal["DETECTION", "RECOVERY"]
    detection_type: str
    agent_id: str
    payload: Mapping[str, Any]
    evidence: Mapping[str, Any]
    run_id: str | None = None
    event_id: str | None = None
    policy_id: str | None = None
    prompt_version_id: str | None = None


@dataclass(frozen=True)
class RequestedApproval:
    id: str
    client_request_id: str
    tool_name: str
    input_hash: str
    timeout_ms: int
    status: Literal["PENDING", "APPROVED", "REJECTED", "EXPIRED"]
    run_id: str | None = None
    agent_id: str | None = None
    policy_id: str | None = None
    reason: str | None = None


ApprovalAnswer = Literal["approve", "reject", "expire"]
Approver = ApprovalAnswer | Callable[[RequestedApproval], ApprovalAnswer]

_STATUSES: dict[ApprovalAnswer, Literal["APPROVED", "REJECTED", "EXPIRED"]] = {
    "approve": "APPROVED",
    "reject": "REJECTED",
    "expire": "EXPIRED",
}


class FakeService:
    def __init__(self, approver: Approver) -> None:
        self.events: list[RecordedEvent] = []
        self.issues: list[RecordedIssue] = []
        self.approvals: dict[str, RequestedApproval] = {}
        self.approver = approver
        self.policies: Sequence[Policy] = ()
        self.prompts: Mapping[str, str] = {}
        self.is_down = False
        self._ids: set[tuple[str, str]] = set()
        self._records: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = threading.Lock()

    def request(
        self,
        method: str,
        path: str,
        *,
        timeout: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
        max_reply_bytes: int = REPLY_BYTES_MAX,
    ) -> Reply | NoReply:
        """Replaces `Connections.request`."""
        if self.is_down:
            return NoReply("network", "the fake service is down")
        given_headers = headers or {}
        data = gzip.decompress(body) if body and given_headers.get("content-encoding") == "gzip" else body
        sent: Any = json.loads(data) if data else None
        noun, _, rest_of_path = path.partition("?")[0].lstrip("/").partition("/")
        if (method, noun) == ("POST", "events"):
            return self._record(sent)
        if (method, noun) == ("POST", "issue-records"):
            return self._report(sent)
        if (method, noun) == ("GET", "runtime-config"):
            return self._configuration(given_headers.get("if-none-match"))
        if (method, noun) == ("POST", "firewall-approvals"):
            return self._ask(sent)
        if (method, noun) == ("GET", "firewall-approvals"):
            return self._answer(rest_of_path)
        return _reply(404, {"status": 404, "code": "not_found"})

    def _record(self, events: list[dict[str, Any]]) -> Reply:
        with self._lock:
            for event in events:
                key = (event["runId"], event["eventId"])
                if key not in self._ids:
                    self._ids.add(key)
                    self.events.append(RecordedEvent(**_fields(RecordedEvent, event)))
        return _reply(200, {"success": True, "accepted": len(events), "retryableEventIds": [], "rejectedEventIds": []})

    def _report(self, issue: dict[str, Any]) -> Reply:
        key = (issue["sdkInstanceId"], issue["clientRecordId"])
        with self._lock:
            is_new = key not in self._records
            same = self._records.setdefault(key, issue) == issue
            # A record that claims an approved call is not an issue.
            if is_new and issue["detectionType"] != "APPROVAL_PENDING":
                self.issues.append(RecordedIssue(**_fields(RecordedIssue, issue)))
        more = {"isSame": same} if key[1].startswith("run-") and not is_new else {}
        return _reply(202, {"recordId": str(uuid.uuid4()), "status": "RECEIVED", "isNew": is_new, **more})

    def _configuration(self, known: str | None) -> Reply:
        prompts = []
        for name, content in self.prompts.items():
            digest = _digest(content)
            ids = {"promptId": _id_of(name), "name": name, "versionId": _id_of(content), "version": "1"}
            prompts.append({**ids, "content": content, "contentHash": digest})
        policies = [{_camel(name): value for name, value in asdict(policy).items()} for policy in self.policies]
        served: dict[str, Any] = {"prompts": prompts, "policies": policies}
        revision = _digest(json.dumps(served))
        etag = f'W/"{revision}"'
        headers = {"etag": etag}
        return _reply(304, None, headers) if known == etag else _reply(200, {"revision": revision, **served}, headers)

    def _ask(self, request: dict[str, Any]) -> Reply:
        with self._lock:
            same = [one for one in self.approvals.values() if one.client_request_id == request["clientRequestId"]]
            fields = _fields(RequestedApproval, request)
            approval = same[0] if same else RequestedApproval(id=str(uuid.uuid4()), status="PENDING", **fields)
            self.approvals[approval.id] = approval
        return _reply(201, _shown(approval))

    def _answer(self, approval_id: str) -> Reply:
        approval = self.approvals.get(approval_id)
        if approval is None:
            return _reply(404, {"status": 404, "code": "not_found"})
        if approval.status == "PENDING":
            answer = self.approver(approval) if callable(self.approver) else self.approver
            approval = replace(approval, status=_STATUSES[answer])
            with self._lock:
                self.approvals[approval_id] = approval
        return _reply(200, _shown(approval))


def _shown(approval: RequestedApproval) -> dict[str, object]:
    now = time.time()
    return {
        "id": approval.id,
        "status": approval.status,
        "expiresAt": _iso(now + approval.timeout_ms / 1_000),
        "decidedAt": _iso(now) if approval.status in ("APPROVED", "REJECTED") else None,
        "decisionReason": None,
    }


def _fields(kind: type, given_fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a class, by their names in JSON."""
    return {name: given_fields[_camel(name)] for name in kind.__annotations__ if _camel(name) in given_fields}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(name_part.capitalize() for name_part in others)


def _iso(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _id_of(text: str) -> str:
    return str(uuid.UUID(_digest(text)[:32]))


def _reply(status: int, body: object, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, {"content-type": "application/json", **(headers or {})}, body)
