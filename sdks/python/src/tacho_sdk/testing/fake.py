"""A client whose service is in memory, and what it recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any, Literal, TypeVar

import tacho_sdk as tacho

from ..client import Tacho
from ..configuration.configuration import Policy
from ..core import Core
from ..guarding.rules import GuardDefaults
from .service import Approver, FakeService, RecordedEvent, RecordedIssue, RequestedApproval

T = TypeVar("T")
# On a busy machine, policies in memory may take longer than a call of the service.
_CONFIGURATION_WAIT = 60.0
_FLUSH_SECONDS = 60.0


@dataclass(frozen=True)
class RecordedRun:
    """A run, built from its events."""

    run_id: str
    agent_name: str
    agent_id: str | None
    status: Literal["RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
    events: Sequence[RecordedEvent]


@dataclass(frozen=True)
class RecordedDecision:
    """A policy decision."""

    action: str
    tool_name: str
    policy_ids: Sequence[str]
    event: RecordedEvent


class FakeTacho:
    """
    Made by `fake_tacho`. Inside `with`, it is also the client of the functions of the module `tacho`; at its end, it is closed.
    Without `with`, pass `tacho` to the code under test.
    """

    tacho: Tacho

    def __init__(self, service: FakeService, made: Tacho) -> None:
        self.tacho = made
        self._service = service
        self._before: list[Tacho | None] = []

    def events(self) -> list[RecordedEvent]:
        """Everything recorded so far, in order."""
        self.tacho.flush(_FLUSH_SECONDS)
        return list(self._service.events)

    def runs(self) -> list[RecordedRun]:
        by_run: dict[str, list[RecordedEvent]] = {}
        for event in self.events():
            by_run.setdefault(event.run_id, []).append(event)
        return [_run_of(run_id, events) for run_id, events in by_run.items()]

    def decisions(self) -> list[RecordedDecision]:
        return [_decision_of(event) for event in self.events() if event.event_type == "POLICY_DECISION"]

    def approvals(self) -> list[RequestedApproval]:
        return list(self._service.approvals.values())

    def issues(self) -> list[RecordedIssue]:
        self.tacho.flush(_FLUSH_SECONDS)
        return list(self._service.issues)

    def deploy_policies(self, policies: Iterable[Policy]) -> None:
        """Deploys other policies."""
        self.set_policies(policies)
        self.tacho.configuration.refresh()

    def set_policies(self, policies: Iterable[Policy]) -> None:
        """Changes the deployed policies; the client does not know yet."""
        self._service.policies = tuple(policies)

    def deploy_prompts(self, prompts: Mapping[str, str]) -> None:
        """Deploys other prompts: their contents, by name."""
        self._service.prompts = dict(prompts)
        self.tacho.configuration.refresh()

    def answer_approvals(self, approver: Approver) -> None:
        """Decides later approval requests."""
        self._service.approver = approver

    def set_down(self, is_down: bool) -> None:
        """True: the service is down from now on."""
        self._service.is_down = is_down

    def assert_event(self, event_type: str, payload: Mapping[str, object] | None = None) -> RecordedEvent:
        """Raises AssertionError unless there is an event of this type whose payload contains this one."""
        return _found(self.events(), {"event_type": event_type, "payload": payload or {}}, "event")

    def assert_no_event(self, event_type: str, payload: Mapping[str, object] | None = None) -> None:
        """Raises AssertionError if there is such an event."""
        for event in self.events():
            if _holds(event, {"event_type": event_type, "payload": payload or {}}):
                raise AssertionError(f"Expected no such event, but found {event}")

    def assert_run(self, **fields: object) -> RecordedRun:
        """Raises AssertionError unless a run has these fields, for example `status="FAILED"`."""
        return _found(self.runs(), fields, "run")

    def assert_decision(self, **fields: object) -> RecordedDecision:
        """Raises AssertionError unless a decision has these fields, for example `action="BLOCK"`."""
        return _found(self.decisions(), fields, "decision")

    def close(self) -> None:
        """Stops its threads."""
        self.tacho.shutdown(_FLUSH_SECONDS)

    def __enter__(self) -> FakeTacho:
        self._before.append(tacho._client)
        tacho._client = self.tacho
        return self

    def __exit__(self, *_: object) -> None:
        tacho._client = self._before.pop()
        self.close()


def fake_tacho(
    *,
    deployed_policies: Iterable[Policy] = (),
    deployed_prompts: Mapping[str, str] | None = None,
    approvals: Approver = "reject",
    **options: Any,
) -> FakeTacho:
    """
    Makes a client whose service is in memory, with the options of `Tacho`. `deployed_prompts`: their contents, by name.
    `approvals`: how approval requests are decided.
    """
    service = FakeService(approvals)
    service.policies = tuple(deployed_policies)
    service.prompts = dict(deployed_prompts or {})
    guard: GuardDefaults = options.pop("guard", None) or GuardDefaults()
    if guard.configuration_wait is None:
        guard = replace(guard, configuration_wait=_CONFIGURATION_WAIT)
    fixed: dict[str, Any] = {"api_key": "fake", "base_url": "http://localhost", "guard": guard}
    return FakeTacho(service, _FakeClient(service, {"client_id": "fake", "flush_interval": 0, **options, **fixed}))


class _FakeClient(Tacho):
    def __init__(self, service: FakeService, options: dict[str, Any]) -> None:
        self._service = service
        super().__init__(**options)

    def _make_core(self, options: dict[str, Any]) -> Core:
        return Core(options, self._service.request)


def _run_of(run_id: str, events: list[RecordedEvent]) -> RecordedRun:
    outcome = next((event for event in events if event.event_type == "SESSION_OUTCOME"), None)
    status: Any = outcome.payload["status"] if outcome else "RUNNING"
    return RecordedRun(run_id, events[0].agent_name, events[0].agent_id, status, tuple(events))


def _decision_of(event: RecordedEvent) -> RecordedDecision:
    payload = event.payload
    return RecordedDecision(payload["action"], payload["toolName"], tuple(payload["policyIds"]), event)


def _found(all_: Sequence[T], wanted: Mapping[str, object], noun: str) -> T:
    for one in all_:
        if _holds(one, wanted):
            return one
    had = "".join(f"\n  {one}" for one in all_) or " none."
    raise AssertionError(f"Found no {noun} with {dict(wanted)}. Found:{had}")


def _holds(value: object, wanted: object) -> bool:
    """Mappings must contain at least the wanted keys. Lists and all other values must be equal."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(key in value and _holds(value[key], each) for key, each in wanted.items())
    if isinstance(wanted, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(wanted):
            return False
        return all(map(_holds, value, wanted))
    # In Python, True equals 1.
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted
