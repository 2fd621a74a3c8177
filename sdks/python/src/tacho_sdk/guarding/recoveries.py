"""Remembers which tools fail, so that a later success reports a recovery of the same issue."""

from __future__ import annotations

import threading

from ..delivery.issue_records import IssueReport

_REMEMBERED = 1_000
_REPORTS = 20


class Recoveries:
    """Bounded: forgets the tool that has failed for the longest time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str], dict[tuple[object, ...], IssueReport]] = {}

    def troubled(self, agent: str, tool_name: str, report: IssueReport) -> None:
        """Call it after a tool was blocked or failed."""
        with self._lock:
            reports = self._open.pop((agent, tool_name), {})
            self._open[(agent, tool_name)] = reports
            # The service groups by these facts: equal facts are one issue and need one recovery.
            if len(reports) < _REPORTS:
                facts = (report.payload or {}).get("reasonCode")
                reports[(report.detection_type, report.policy_id, facts)] = report
            if len(self._open) > _REMEMBERED:
                del self._open[next(iter(self._open))]

    def recovered(self, agent: str, tool_name: str) -> list[IssueReport]:
        """Call it after a tool ran. Returns the reports that need a recovery."""
        if not self._open:
            return []
        with self._lock:
            return list(self._open.pop((agent, tool_name), {}).values())
