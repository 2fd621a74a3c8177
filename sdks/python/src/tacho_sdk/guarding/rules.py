"""How calls are decided: what users configure and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..configuration.configuration import Policy, ToolLabels
from .detectors import Budget, Detection, Loop

Action = Literal["ALLOW", "WARN", "REQUIRE_APPROVAL", "BLOCK"]
"""From least to most strict."""


@dataclass(frozen=True)
class Rules:
    """Options for all tools (on the client) or one tool (on `guard`). None: the client's, else the default."""

    policies: Sequence[Policy] = ()
    """Policies in your own code, in addition to those of the service."""
    when_unconfigured: Literal["allow", "block"] | None = None
    """
    What happens if no policies were ever loaded. `allow` runs the tool unchecked. Default: block; allow for a client with
    `enabled=False`."""
    configuration_wait: float | None = None
    """Longest wait for the first policies, in seconds. Default: 2."""
    approval_timeout: float | None = None
    """Longest wait for a person, in seconds, from 1 to 86,400. Default: 300."""
    approval_wait: float | None = None
    """
    Longest time that this process waits for a person, in seconds. After it, the call is pending: another process, or a later
    call, continues it. 0: do not wait. Default: `approval_timeout`."""


@dataclass(frozen=True)
class GuardDefaults(Rules):
    """How guarded calls of a client are decided."""

    loop: Loop | None = field(default_factory=Loop)
    """Detects repeated calls with the same input in one run; None disables it."""
    budget: Budget = field(default_factory=Budget)
    """The most one run may use. Default: no budget."""
    labels: Sequence[ToolLabels] = ()
    """Labels of your tools, in addition to those of the service: what they do, and what their outputs are."""


@dataclass(frozen=True)
class CallDecision:
    """The decision about a call, before a person is asked."""

    action: Action
    policy_ids: tuple[str, ...]
    """Policies that matched, strictest first."""
    reason: str | None
    input_hash: str | None
    """Binds an approval to this tool and input; None if the input is not plain JSON."""
    detections: tuple[Detection, ...]
    """Detectors with a finding."""
    revision: str | None
    """Revision of the configuration that was used; None if none was ever loaded."""


@dataclass(frozen=True)
class Authorization(CallDecision):
    """The decision about a call that may run."""

    approval_id: str | None
    """The approval of a person; None if no policy required one."""
