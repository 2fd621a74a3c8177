"""A judged call, and what is recorded about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..exact import class_name, exact_number, exact_text
from ..inner_class import inner_class
from ..policy.decide import Decision
from ..policy.plain_json import NotPlainJson
from ..recording.plain import Json, read_of_error, read_safely
from .json_form import is_readable, json_form, shown
from .rules import CallDecision
from .verdict import Verdict

_CALL_ID = re.compile(r"[\x21-\x7e]{1,255}\Z")


@inner_class
class Call:
    """A call that has not run yet."""

    tool_name: str
    form: Any
    """The judged input: the JSON form of the arguments, detached from them."""
    shown: Json
    """The judged input as it is recorded."""
    input_hash: str | None
    """None if a part of the input has no JSON form."""
    input_seals: dict[str, str] | None
    """Seals in place of values that masking changes in `shown`."""
    risk_signals: tuple[str, ...]
    tool_call_id: str | None
    """Id by which the model names the call."""


def form_of(value: object) -> Any:
    """JSON form of an input; no input counts as {}."""
    return json_form({} if value is None else value)


HashInput = Callable[[str, object, object], tuple[str, "dict[str, str] | None"]]


def take(
    hash_input: HashInput,
    tool_name: str,
    raw_input: object,
    risk_signals: tuple[str, ...],
    tool_call_id: str | None = None,
) -> Call:
    form = form_of(raw_input)
    visible = shown(form)
    digest, seals = None, None
    if is_readable(form):
        try:
            digest, seals = hash_input(tool_name, form, visible)
        except (NotPlainJson, RecursionError):
            pass
    return Call(tool_name, form, visible, digest, seals, risk_signals, tool_call_id)


@inner_class
class Judged:
    decision: CallDecision
    verdict: Verdict
    failures: tuple[dict[str, str], ...]
    policy_age: float | None = None
    """In seconds; None unless the policies are older than the limit."""


def failures_of(decision: Decision) -> tuple[dict[str, str], ...]:
    return tuple({"policyId": failure.policy_id, "message": failure.message} for failure in decision.failures)


def key_of(call_id: object) -> str | None:
    """
    The key of a call in approvals: the model's id of the call, so that the next process finds the call's approval too. None for
    an id that no provider makes.
    """
    return call_id if isinstance(call_id, str) and _CALL_ID.match(call_id) else None


def named_of(call: Call) -> dict[str, object]:
    """Payload members of every event of a call."""
    named: dict[str, object] = {"toolName": call.tool_name}
    return named if call.tool_call_id is None else {**named, "toolCallId": call.tool_call_id}


def facts_of(call: Call, approval_id: str | None) -> dict[str, object]:
    """Payload members of TOOL_START and TOOL_CALL."""
    return {
        **named_of(call),
        "input": call.shown,
        **({"riskSignals": list(call.risk_signals)} if call.risk_signals else {}),
        **({"inputHash": call.input_hash} if call.input_hash is not None else {}),
        **({"approvalId": approval_id} if approval_id is not None else {}),
    }


def reason_code_of(error: BaseException) -> str:
    """The error's code or name: unlike the message, it is the same for each failure of one kind."""
    code = read_of_error(lambda: getattr(error, "code", None), None)
    number = exact_number(code)
    # A very long int cannot be converted to text.
    text = exact_text(code) if number is None else read_safely(lambda: str(number), None)
    return text or class_name(error)
