"""Combines policies, detectors and the configuration's state into one decision about a call. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ..inner_class import inner_class
from ..policy.decide import ACTIONS, Decision
from .detectors import Detection
from .rules import Action

Cause = Literal["policy", "loop_detected", "budget_exceeded", "not_configured"]


@inner_class
class Verdict:
    action: Action
    """The strictest action of policies and detectors."""
    cause: Cause | None
    """Reason why the call is held up; None if nothing holds it up."""
    policy_ids: tuple[str, ...]
    """Policies that matched, strictest first."""
    policy_id: str | None
    """From the strictest policy; None if the decision does not come from a policy."""
    policy_version: str | None
    reason: str | None
    """A sentence without any input value; None if nothing matched."""
    policy_message: str | None = None
    """Message of the deciding policy for the model; None if it has none."""
    policy_versions: tuple[tuple[str, str], ...] = ()
    """Versions of every policy that matched."""

    @property
    def basis(self) -> tuple[Cause | None, str | None, str | None]:
        """An approval is valid for one version of a policy, or for one detector."""
        return self.cause, self.policy_id, self.policy_version


def judge(decision: Decision, detections: Sequence[Detection], is_configured: bool) -> Verdict:
    """`is_configured` False: policies were never loaded, and the guard must fail closed."""
    policy_ids = tuple(match.policy_id for match in decision.matched)
    versions = tuple((match.policy_id, match.version) for match in decision.matched)
    if not is_configured:
        reason = "no policies are loaded yet, and this tool must not run without them"
        return Verdict("BLOCK", "not_configured", policy_ids, None, None, reason, policy_versions=versions)
    if decision.matched:
        first = decision.matched[0]
        failed = "" if first.failure is None else f" (its condition could not be evaluated: {first.failure})"
        strictest = (match.message for match in decision.matched if match.effect == decision.action)
        message = next(filter(None, strictest), None)
        # Replace quotes in the name, because the name is in quotes.
        name = first.name.replace('"', "'")
        reason = f'policy "{name}"{failed}{"" if message is None else f": {message}"}'
        verdict = Verdict(decision.action, "policy", policy_ids, first.policy_id, first.version, reason, message, versions)
    else:
        verdict = Verdict(decision.action, None, policy_ids, None, None, None)
    for detection in detections:
        if ACTIONS.index(detection.action) > ACTIONS.index(verdict.action):
            cause: Cause = "loop_detected" if detection.type == "LOOP_DETECTED" else "budget_exceeded"
            none = {"policy_id": None, "policy_version": None, "policy_message": None}
            verdict = replace(verdict, action=detection.action, cause=cause, reason=detection.message, **none)  # type: ignore[arg-type]
    return verdict
