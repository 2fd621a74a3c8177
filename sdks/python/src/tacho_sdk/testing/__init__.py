"""A client for your tests: the whole SDK, with a service in memory. Nothing leaves the process, and no key is needed."""

from .fake import FakeTacho, RecordedDecision, RecordedRun, fake_tacho
from .replay import replay, replaying
from .service import ApprovalAnswer, Approver, RecordedEvent, RecordedIssue, RequestedApproval

__all__ = [
    "ApprovalAnswer",
    "Approver",
    "FakeTacho",
    "RecordedDecision",
    "RecordedEvent",
    "RecordedIssue",
    "RecordedRun",
    "RequestedApproval",
    "fake_tacho",
    "replay",
    "replaying",
]
