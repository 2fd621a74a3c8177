"""Guarded tools: policies, detectors, approvals, and what is recorded about them."""

from __future__ import annotations

import asyncio
import enum
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service, refuse

Make = Callable[..., Client]
APPROVAL = {"id": "a1", "expiresAt": "2030-01-01T00:00:00Z", "decidedAt": "2026-01-01T00:00:00Z", "decisionReason": None}


def created(_: Any) -> Any:
    return 201, {**APPROVAL, "status": "PENDING", "decidedAt": None}, {}


def answer(status: str, **given: Any) -> Any:
    return lambda _: (200, {**APPROVAL, "status": status, **given}, {})


def ask(service: Service, *answers: Any) -> None:
    service.deploy('tool.name == "refund"', "REQUIRE_APPROVAL")
    service.script("/firewall-approvals", created)
    service.script("/firewall-approvals/id", *answers)


def guarded(client: Client, is_async: bool, **options: Any) -> Callable[..., Any]:
    if not is_async:

        @client.tacho.guard(name="refund", **options)
        def refund(order: str, amount: float = 10) -> str:
            return f"refunded {amount}"

        return refund

    @client.tacho.guard(name="refund", **options)
    async def refund_async(order: str, amount: float = 10) -> str:
        await asyncio.sleep(0)
        return f"refunded {amount}"

    return lambda *args, **named: asyncio.run(refund_async(*args, **named))


both = pytest.mark.parametrize("is_async", [False, True])


@both
def test_an_allowed_call_runs_and_is_recorded(make: Make, service: Service, is_async: bool) -> None:
    service.deploy("tool.input.amount > 100.0", "BLOCK")
    client = make()
    refund = guarded(client, is_async)
    with client.tacho.run():
        assert refund("1007", amount=25) == "refunded 25"
    client.tacho.flush(120)
    start, call = service.events[:2]
    facts = {"toolName": "refund", "input": {"order": "1007", "amount": 25}, "inputHash": call["payload"]["inputHash"]}
    assert (start["eventType"], start["label"], start["payload"]) == ("TOOL_START", "refund", facts)
    assert (start["spanId"], start["parentSpanId"]) == (call["spanId"], service.events[2]["spanId"])
    payload = call["payload"]
    assert payload.pop("latency") >= 0 and len(payload["inputHash"]) == 64
    assert payload == {**facts, "outcome": "returned", "output": "refunded 25", "startEventId": start["eventId"]}


@both
def test_a_blocked_call_does_not_run_and_becomes_an_issue(make: Make, service: Service, is_async: bool) -> None:
    service.deploy("tool.input.amount > 100.0", "BLOCK")
    client = make()
    refund = guarded(client, is_async)
    with client.tacho.run(run_id="r"), pytest.raises(tacho.ToolBlockedError) as blocked:
        refund("1007", 500)
    error = blocked.value
    assert (error.code, error.tool_name, error.policy_ids) == ("policy", "refund", ("p",))
    assert "was not run. A policy forbids this call." in error.model_text and "500" not in str(error)
    client.tacho.flush(120)
    decision = service.events[0]
    assert decision["eventType"] == "POLICY_DECISION" and decision["payload"]["input"] == {"order": "1007", "amount": 500}
    record = service.of("/issue-records")[0]
    assert (record["detectionType"], record["policyId"], record["runId"]) == ("TOOL_BLOCKED", "p", "r")
    assert record["payload"] == {"toolName": "refund", "reasonCode": "policy"}


@both
def test_an_approved_call_runs_and_operators_see_its_input_first(make: Make, service: Service, is_async: bool) -> None:
    def approve(_: Any) -> Any:
        service.until(lambda: len(service.batches) > 0)
        return answer("APPROVED")(_)

    ask(service, answer("PENDING"), approve)
    client = make()
    refund = guarded(client, is_async)
    with client.tacho.run(run_id="r"):
        assert refund("1007", 25) == "refunded 25"
    request = service.of("/firewall-approvals")[0]
    assert (request["toolName"], request["policyId"], request["runId"]) == ("refund", "p", "r")
    assert "1007" not in str(request)
    client.tacho.flush(120)
    decision, call = service.events[0]["payload"], service.events[2]["payload"]
    assert decision["approvalId"] == call["approvalId"] == "a1"
    assert decision["inputHash"] == call["inputHash"] == request["inputHash"]
    assert decision["input"] == {"order": "1007", "amount": 25}
    headers = [sent for path, _, sent in service.requests if path.startswith("/firewall")]
    assert {sent["x-service-client-id"] for sent in headers} == {"c"}


@both
def test_a_policy_speaks_to_the_model_the_approver_and_the_record(make: Make, service: Service, is_async: bool) -> None:
    said = "over 500 needs finance: ask ada"
    ask(service, answer("REJECTED", decisionReason="no"))
    service.policies.clear()
    service.deploy("true", "REQUIRE_APPROVAL", description=f"Large refunds.\nMessage: {said}")
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        guarded(client, is_async)("1007")
    assert f"The policy says: {said} They said: no" in blocked.value.model_text
    assert blocked.value.policy_message == said
    client.tacho.flush(120)
    assert service.of("/firewall-approvals")[0]["reason"] == f'policy "p": {said}'
    decision = next(event for event in service.events if event["eventType"] == "POLICY_DECISION")
    assert decision["payload"]["reason"] == f'policy "p": {said}'


@both
@pytest.mark.parametrize(
    ("status", "code"), [("REJECTED", "approval_rejected"), ("EXPIRED", "approval_expired"), ("DONE", "approval_unavailable")]
)
def test_every_other_answer_means_no(make: Make, service: Service, is_async: bool, status: str, code: str) -> None:
    ask(service, answer(status, decisionReason="too much"))
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        guarded(client, is_async)("1007")
    assert blocked.value.code == code and blocked.value.approval_id == "a1"
    assert ("They said: too much" in blocked.value.model_text) is (status == "REJECTED")


@pytest.mark.parametrize(
    "named",
    [{"inputHash": "0" * 64}, {"toolName": "other"}, {"decidedAt": None}, {"decidedAt": ""}],
    ids=["another input", "another tool", "no time", "an empty time"],
)
@pytest.mark.parametrize("is_creation", [False, True])
def test_an_approval_of_something_else_or_without_a_time_means_no(
    make: Make, service: Service, named: dict[str, Any], is_creation: bool
) -> None:
    ask(service, answer("APPROVED", **named))
    if is_creation:
        service.script("/firewall-approvals", lambda _: (201, {**APPROVAL, "status": "APPROVED", **named}, {}))
    client = make()
    ran: list[int] = []
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        client.tacho.guard(name="refund")(ran.append)(1)
    assert (blocked.value.code, ran) == ("approval_unavailable", [])


def test_an_approval_without_a_time_at_all_means_no(make: Make, service: Service) -> None:
    def timeless(_: Any) -> Any:
        return 200, {name: value for name, value in {**APPROVAL, "status": "APPROVED"}.items() if name != "decidedAt"}, {}

    ask(service, timeless)
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        guarded(client, False)("1007")
    assert blocked.value.code == "approval_unavailable"


def test_an_approval_that_names_this_input_and_tool_counts(make: Make, service: Service) -> None:
    def named(given: Any) -> Any:
        asked = service.of("/firewall-approvals")[0]
        return answer("APPROVED", inputHash=asked["inputHash"], toolName="refund")(given)

    ask(service, named)
    client = make()
    with client.tacho.run():
        assert guarded(client, False)("1007") == "refunded 10"


@both
def test_the_wait_ends_at_the_deadline(make: Make, service: Service, is_async: bool) -> None:
    ask(service, answer("PENDING"))
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        guarded(client, is_async, rules=tacho.Rules(approval_timeout=1))("1007")
    assert blocked.value.code == "approval_timeout"


def test_a_cancelled_task_ends_the_wait_and_the_event_loop_never_blocks(make: Make, service: Service) -> None:
    def slow(_: Any) -> Any:
        time.sleep(5)
        return answer("PENDING")(_)

    ask(service, slow)
    client = make()
    ran = False

    @client.tacho.guard(name="refund")
    async def refund() -> None:
        nonlocal ran
        ran = True

    async def main() -> int:
        ticks = 0
        task = asyncio.create_task(refund())
        while not service.of("/firewall-approvals") or ticks < 20:
            await asyncio.sleep(0.01)
            ticks += 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ticks

    start = time.monotonic()
    assert asyncio.run(main()) >= 20
    service.until(lambda: not any(thread.name == "tacho-wait" for thread in threading.enumerate()))
    assert not ran and time.monotonic() - start < 200


def test_a_changed_input_means_no(make: Make, service: Service) -> None:
    given = {"amount": 1}

    def change(_: Any) -> Any:
        given["amount"] = 999
        return answer("APPROVED")(_)

    ask(service, change)
    client = make()
    # A closure reads the changed value, so the call must be refused. A function with parameters would get the approved value.
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        client.tacho.call_guarded("refund", given, lambda: given["amount"])
    assert blocked.value.code == "input_changed"


def test_an_input_that_is_no_json_cannot_be_approved(make: Make, service: Service) -> None:
    ask(service, answer("APPROVED"))
    client = make()
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as blocked:
        guarded(client, False)(b"1007")
    assert blocked.value.code == "input_not_json" and service.of("/firewall-approvals") == []


def test_recording_fails_open_and_approvals_fail_closed(make: Make, service: Service) -> None:
    ask(service, answer("APPROVED"))
    service.script("/firewall-approvals", refuse(409))
    service.script("/events/batch", refuse(500))
    client = make()
    assert client.tacho.configuration.ready(120)
    with client.tacho.run():
        assert client.tacho.guard(lambda: 1)() == 1
        with pytest.raises(tacho.ToolBlockedError) as blocked:
            guarded(client, False)("1007")
    assert blocked.value.code == "approval_unavailable"


def test_without_policies_a_tool_does_not_run_unless_it_may(make: Make, service: Service) -> None:
    service.script("/runtime-config", refuse(503))
    client = make()
    with pytest.raises(tacho.ToolBlockedError) as blocked:
        guarded(client, False)("1007")
    assert blocked.value.code == "not_configured"
    assert "guard_unconfigured" in client.codes
    assert guarded(client, False, rules=tacho.Rules(when_unconfigured="allow"))("1007") == "refunded 10"


def test_a_failing_tool_becomes_an_issue_and_its_success_a_recovery(make: Make, service: Service) -> None:
    client = make(agent_id="agent")
    fails = [True, True, False, False]

    @client.tacho.guard
    def flaky() -> str:
        if fails.pop(0):
            raise TimeoutError("no")
        return "ok"

    with client.tacho.run():
        for _ in range(2):
            with pytest.raises(TimeoutError):
                flaky()
        assert (flaky(), flaky()) == ("ok", "ok")
    client.tacho.flush(120)
    records = [(one["recordKind"], one["detectionType"], one["payload"]) for one in service.of("/issue-records")]
    facts = {"toolName": "flaky", "reasonCode": "TimeoutError"}
    assert records == [("DETECTION", "TOOL_FAILED", facts)] * 2 + [("RECOVERY", "TOOL_FAILED", facts)]
    calls = [event for event in service.events if event["eventType"] == "TOOL_CALL"]
    assert calls[0]["payload"]["error"] == "TimeoutError: no"
    assert service.of("/issue-records")[2]["eventId"] == calls[2]["eventId"]


def test_loops_and_budgets_are_detected_once_and_act_each_time(make: Make, service: Service) -> None:
    rules = tacho.GuardDefaults(loop=tacho.Loop(calls=3, action="BLOCK"), budget=tacho.Budget(total_tokens=10))
    client = make(guard=rules)

    @client.tacho.guard(name="t")
    def tool(n: int) -> int:
        return n

    with client.tacho.run() as run:
        assert (tool(1), tool(1), tool(2)) == (1, 1, 2)
        for _ in range(2):
            with pytest.raises(tacho.ToolBlockedError, match="loop_detected"):
                tool(1)
        run.llm_call(usage={"promptTokens": 8, "completionTokens": 3})
        assert (tool(4), tool(5)) == (4, 5)
    client.tacho.flush(120)
    kinds = [one["detectionType"] for one in service.of("/issue-records")]
    assert kinds.count("LOOP_DETECTED") == 1 and kinds.count("BUDGET_EXCEEDED") == 1


def test_decide_records_without_running_and_sees_risks_and_local_policies(make: Make, service: Service) -> None:
    service.deploy('"injection" in risk.signals', "WARN")
    local = tacho.Policy("own", "own", "run.toolCalls >= 1", "BLOCK")
    client = make(guard=tacho.GuardDefaults(policies=[local], configuration_wait=120))
    with client.tacho.run():
        assert client.tacho.decide("t", {"a": 1}).action == "ALLOW"
        decision = client.tacho.decide("t", {"a": 1}, risk_signals=["injection"])
        assert (decision.action, decision.policy_ids, decision.reason) == ("WARN", ("p",), 'policy "p"')
        client.tacho.guard(lambda: 1)()
        assert asyncio.run(client.tacho.adecide("t")).action == "BLOCK"
    client.tacho.flush(120)
    kinds = [event["eventType"] for event in service.events]
    assert kinds == ["POLICY_DECISION", "TOOL_START", "TOOL_CALL", "POLICY_DECISION", "SESSION_OUTCOME"]


def test_the_module_uses_the_client_at_the_time_of_the_call(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tacho, "_client", None)

    @tacho.guard
    def before_configure() -> int:
        return 1

    @tacho.run(agent_name="module")
    def agent() -> int:
        return before_configure()

    waits = tacho.GuardDefaults(configuration_wait=120)
    tacho.configure(api_key="key", base_url=service.url, request_timeout=120, guard=waits)
    assert agent() == 1
    tacho.shutdown(120)
    assert len(service.events) == 3
    assert {event["agentName"] for event in service.events} == {"module"}


class Name(str, enum.Enum):
    REFUND = "refund"


@both
def test_a_tool_named_by_an_enum_is_blocked_and_recorded_like_its_text(make: Make, service: Service, is_async: bool) -> None:
    service.deploy('tool.name == "refund"', "BLOCK")
    client = make()
    with client.tacho.run(session_id=Name.REFUND), pytest.raises(tacho.ToolBlockedError):

        @client.tacho.guard(name=Name.REFUND)
        def tool() -> None: ...

        tool()
    client.tacho.flush(120)
    decision = service.events[0]
    assert (decision["label"], decision["payload"]["toolName"]) == ("BLOCK refund", "refund")
    assert decision["sessionId"] == "refund"


@pytest.mark.parametrize("opaque", [2**53 + 1, "\ud800", b"x", object()])
def test_an_input_without_a_hash_runs_only_unchanged(make: Make, service: Service, opaque: object) -> None:
    service.deploy('tool.name == "other"', "BLOCK")
    client = make()
    given = {"amount": 1, "opaque": opaque}
    amounts = itertools.count(2)
    ran = []
    with client.tacho.run():
        client.tacho.call_guarded("refund", given, lambda: ran.append(given["amount"]))

        def growing() -> object:
            given["amount"] = next(amounts)
            return given

        with pytest.raises(tacho.ToolBlockedError) as blocked:
            client.tacho.call_guarded("refund", growing, lambda: ran.append(given["amount"]))
    assert (blocked.value.code, ran) == ("input_changed", [1])


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failing_tool_raises_its_own_error_whatever_that_does(
    make: Make, service: Service, kind: type[BaseException]
) -> None:
    class Hostile(Exception):
        def __getattribute__(self, _: str) -> object:
            raise kind("no attributes")

        def __str__(self) -> str:
            raise kind("no text")

    client = make()

    def fail() -> None:
        raise Hostile

    raised: type | None = None
    try:
        with client.tacho.run():
            client.tacho.call_guarded("refund", {}, fail)
    except Exception as error:
        raised = type(error)
    assert raised is Hostile


def test_an_approval_is_not_used_after_its_end(make: Callable[..., Client], service: Service) -> None:
    service.deploy("true", "REQUIRE_APPROVAL")
    approval = {"id": "a", "status": "APPROVED", "decidedAt": "2020-01-01T00:00:00Z", "expiresAt": "2020-01-01T00:05:00Z"}
    newer = {**approval, "id": "b", "status": "PENDING", "decidedAt": None, "expiresAt": "2099-01-01T00:00:00Z"}
    service.script("/firewall-approvals", lambda _: (201, approval, {}), lambda _: (201, newer, {}))
    client, ran = make(), []
    with client.tacho.run(), pytest.raises(tacho.ToolBlockedError) as raised:
        client.tacho.call_guarded("refund", {}, lambda: ran.append(1), rules=tacho.Rules(approval_wait=0))
    assert raised.value.code == "approval_pending" and ran == []
    first, second = service.of("/firewall-approvals")
    assert first["clientRequestId"] != second["clientRequestId"]
