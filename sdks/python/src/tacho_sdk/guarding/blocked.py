"""Errors that a caller receives when a guarded tool did not run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..shared import one_class

BlockCode = Literal[
    "policy",
    "loop_detected",
    "budget_exceeded",
    "approval_rejected",
    "approval_expired",
    "approval_timeout",
    "approval_pending",
    "approval_used",
    "approval_unavailable",
    "aborted",
    "caller_gone",
    "call_cut",
    "input_changed",
    "input_not_json",
    "not_configured",
    "guard_failed",
]
"""docs/sdk/guarding-tools.md explains each."""

_MODEL_TEXTS: dict[str, str] = {
    "policy": "A policy forbids this call. Do not try it again; find another way or tell the user that it is not possible.",
    "loop_detected": "The same call was made too often. Do not repeat it; use what you know or ask the user.",
    "budget_exceeded": "The budget of this run is used up. Call no more tools and finish with what you have.",
    "approval_rejected": "A person rejected this call. Do not try it again.",
    "approval_expired": "This call needs a person's approval and got none in time. Do not try it again; tell the user.",
    "approval_timeout": "This call needs a person's approval and got none in time. Do not try it again; tell the user.",
    "approval_pending": "This call waits for a person's approval. Do not make it again; tell the user that it waits.",
    "approval_used": "Its approval by a person is used up: it ran already with these arguments, or may have. "
    "Tell the user; if it must run again, ask them first.",
    "approval_unavailable": "This call needs a person's approval, but it could not be requested. Tell the user; try later.",
    "aborted": "The call was cancelled before it was approved.",
    "caller_gone": "The caller stopped waiting before a person decided.",
    "call_cut": "Your answer ended before its arguments were complete. Make the call again with all of its arguments, and "
    "shorter if you can.",
    "input_changed": "The arguments changed after they were checked. Make the call again with the final arguments.",
    "input_not_json": "The arguments are not plain JSON, so the call could not be checked. Use plain JSON.",
    "not_configured": "The rules for this tool are not available. Tell the user; try later.",
    "guard_failed": "The call could not be checked. Tell the user; try later.",
}

# Codes of faults that were found before the policies, so the message mentions no policy.
_OTHER_CODES = ("input_changed", "input_not_json", "aborted", "caller_gone", "call_cut", "guard_failed", "approval_used")


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for a person: without any input, so that a request can return it. See `to_json`."""

    approval_id: str
    tool_name: str
    expires_at: str | None
    """ISO 8601; None if the service did not say."""

    def to_json(self) -> dict[str, str | None]:
        """JSON that each SDK writes and reads."""
        names = {"approvalId": self.approval_id, "toolName": self.tool_name, "expiresAt": self.expires_at}
        return {"status": "pending", **names}


@one_class
class ToolBlockedError(Exception):
    """
    A guarded tool did not run. You can give `model_text` to a model as the tool's answer; it holds no input values.
    """

    # The public name of the class, which tracebacks and recordings show.
    __module__ = "tacho_sdk"

    def __init__(
        self,
        code: BlockCode,
        tool_name: str,
        *,
        input_hash: str | None = None,
        policy_ids: tuple[str, ...] = (),
        approval_id: str | None = None,
        decision_reason: str | None = None,
        reason: str | None = None,
        policy_message: str | None = None,
        pending: PendingCall | None = None,
        handle: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(f"The tool {tool_name} was not run ({code}){'' if reason is None else f': {reason}'}")
        self.code = code
        self.tool_name = tool_name
        self.input_hash = input_hash
        """None if the input is not plain JSON."""
        self.policy_ids = policy_ids
        self.approval_id = approval_id
        self.decision_reason = decision_reason
        """The comment of the person who decided."""
        self.reason = reason
        """The rule that applied, in a few words."""
        reason_text = f" They said: {decision_reason}" if decision_reason else ""
        self.policy_message = policy_message
        """Message of the policy; None if it has none or something else held the call up."""
        self.pending = pending
        """The call continues after a person decides: see `continue_call`. None unless `code` is approval_pending."""
        # A closure, so that no printed error shows the arguments.
        self._handle: Callable[[], dict[str, Any] | None] = lambda: handle
        rule = f" The policy says: {policy_message}" if policy_message and code not in _OTHER_CODES else ""
        self.model_text = f"The tool {tool_name} was not run. {_MODEL_TEXTS[code]}{rule}{reason_text}"

    def to_handle(self) -> dict[str, Any] | None:
        """Handle with which another process can continue the run of a pending call."""
        return self._handle()
