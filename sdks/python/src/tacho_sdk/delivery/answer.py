"""Interprets an answer for each of the items that were sent. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeGuard

from ..inner_class import inner_class
from .transport import NoReply, Reply

_CODE = re.compile(r"[a-z_]{1,40}\Z")


@dataclass(frozen=True)
class PerEvent:
    """The verdict on each event. An event in neither set was accepted."""

    retry: frozenset[str] = frozenset()
    rejected: dict[str, str] = field(default_factory=dict)
    at_once: bool = False
    """Retry without a backoff, because the events were corrected."""


@inner_class
class RetryAll:
    """Send all events again later."""

    retry_after: str | None
    why: str


@inner_class
class Split:
    """The whole batch was too large or not understood. Smaller batches show which event is at fault."""


@inner_class
class Stop:
    """The service refuses the key. Ask again only after a long time."""

    reason: Literal["unauthorized", "forbidden"]


Verdict = PerEvent | RetryAll | Split | Stop


def verdict_of(
    result: Reply | NoReply, ids: Sequence[str], read: Callable[[object, Sequence[str]], PerEvent | None] | None = None
) -> Verdict:
    """`read` reads the JSON of a 2xx answer; None if it is not from Tacho. Default: the answer to a batch of events."""
    if isinstance(result, NoReply):
        return RetryAll(None, result.message)
    if result.ok:
        verdict = (read or _read_batch_answer)(result.json, ids)
        return verdict or RetryAll(result.header("retry-after"), "the answer is not from Tacho")
    refusal = key_refusal_of(result)
    if refusal is not None:
        return Stop(refusal)
    if result.status in (400, 413):
        return Split()
    # 429 and 5xx are temporary. Any other status means a wrong address or a proxy, which an operator can fix.
    return RetryAll(result.header("retry-after"), f"status {result.status}")


def key_refusal_of(reply: Reply) -> Literal["unauthorized", "forbidden"] | None:
    """Only Tacho's own answer counts as a refused key: a proxy or firewall may answer 401 and 403 too."""
    media = (reply.header("content-type") or "").split(";")[0].strip().lower()
    kind = reply.json.get("type") if isinstance(reply.json, dict) else None
    if media != "application/problem+json" or not isinstance(kind, str) or not kind.startswith("urn:tacho:error:"):
        return None
    return "unauthorized" if reply.status == 401 else "forbidden" if reply.status == 403 else None


def _read_batch_answer(json: object, event_ids: Sequence[str]) -> PerEvent | None:
    if not isinstance(json, dict):
        return None
    accepted, retryable, refused = (json.get(key) for key in ("accepted", "retryableEventIds", "rejectedEventIds"))
    if type(accepted) is not int or not _are_texts(retryable) or not _are_texts(refused):
        return None
    retry = set(retryable)
    rejections = json.get("rejections")
    codes = dict(map(_code_of, rejections)) if isinstance(rejections, list) else {}
    refused_ids = set(refused)
    # Read only ids of this batch: an answer may contain others.
    rejected = {id_: codes.get(id_, "rejected") for id_ in event_ids if id_ in refused_ids and id_ not in retry}
    unnamed = [id_ for id_ in event_ids if id_ not in retry and id_ not in rejected]
    # The counts do not add up: some events were not stored, and the answer does not name them.
    if accepted < len(unnamed):
        retry.update(unnamed)
    return PerEvent(frozenset(retry), rejected)


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _code_of(rejection: object) -> tuple[str, str]:
    fields = rejection if isinstance(rejection, dict) else {}
    code = str(fields.get("code"))
    return str(fields.get("eventId")), code if _CODE.match(code) else "rejected"
