"""A judged call, and what is recorded of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..exact import class_name, exact_number, exact_text
from ..policy.decide import Decision
from ..policy.input_hash import input_hash
from ..policy.plain_json import NotPlainJson
from ..recording.plain import read_safely
from .rules import Call, CallDecision
from .snapshot import snapshot
from .verdict import Verdict


@dataclass(frozen=True)
class Judged:
    call: Call
    decision: CallDecision
    verdict: Verdict
    failures: tuple[dict[str, str], ...]
    snapshot: object
    """Copy of an input that cannot be hashed; None if the input has a hash."""


def hash_of(call: Call) -> str | None:
    try:
        return input_hash(call.tool_name, call.input)
    except (NotPlainJson, RecursionError):
        return None


def snapshot_of(call: Call) -> object:
    return read_safely(lambda: ("input", snapshot(call.input)), None)


def failures_of(decision: Decision) -> tuple[dict[str, str], ...]:
    return tuple({"policyId": failure.policy_id, "message": failure.message} for failure in decision.failures)


def facts_of(judged: Judged, approval_id: str | None, start: float) -> dict[str, object]:
    call, digest = judged.call, judged.decision.input_hash
    return {
        "toolName": call.tool_name,
        "input": {} if call.input is None else call.input,
        **({"riskSignals": list(call.risk_signals)} if call.risk_signals else {}),
        "latency": round((time.monotonic() - start) * 1_000),
        **({"inputHash": digest} if digest is not None else {}),
        **({"approvalId": approval_id} if approval_id is not None else {}),
    }


def reason_code_of(error: BaseException) -> str:
    """Stays the same from one failure to the next, unlike a message."""
    code = read_safely(lambda: getattr(error, "code", None), None)
    number = exact_number(code)
    # A very long int has no text.
    text = exact_text(code) if number is None else read_safely(lambda: str(number), None)
    return text or class_name(error)
