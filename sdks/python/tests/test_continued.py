"""Calls that outlive their process: the next process finds the approval request, and one approval runs the tool once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tacho_sdk as tacho
from tacho_sdk.core import Core
from tacho_sdk.delivery.transport import NoReply, Reply
from tacho_sdk.testing.service import FakeService

INPUT = {"order": "1007", "amount": 25}


def policy(action: str = "REQUIRE_APPROVAL", version: str = "1") -> tacho.Policy:
    names = {"policy_id": "p", "name": "p", "version": version}
    return tacho.Policy(**names, condition='tool.name == "refund"', severity="HIGH", action=action)


class Outliving(FakeService):
    """A service that outlives its clients, which are processes of their own."""

    def __init__(self) -> None:
        super().__init__("approve")
        self.policies = [policy()]
        self.is_decided = False
        self.receipt: Any = None
        self.lost_claims = 0
        self.knows_own_claims = True

    def request(self, method: str, path: str, **more: Any) -> Reply | NoReply:
        if path == "/issue-records" and self.receipt is not None:
            return Reply(202, {}, self.receipt)
        if path == "/issue-records" and b'"run-' in more["body"]:
            reply = super().request(method, path, **more)
            if self.lost_claims > 0:
                self.lost_claims -= 1
                return NoReply("network", "the connection closed")
            if not self.knows_own_claims:
                assert isinstance(reply, Reply) and isinstance(reply.json, dict)
                reply.json.pop("isSame", None)
            return reply
        approval = path.partition("?")[0].removeprefix("/firewall-approvals/")
        if method == "GET" and path.startswith("/firewall-approvals/") and not self.is_decided:
            return Reply(200, {}, {"id": approval, "status": "PENDING", "expiresAt": "2099-01-01T00:00:00Z"})
        return super().request(method, path, **more)

    def decide(self) -> None:
        """A person decides all requests."""
        self.is_decided = True
        for approval in list(self.approvals):
            self.request("GET", f"/firewall-approvals/{approval}", timeout=1)


class Process(tacho.Tacho):
    def __init__(self, service: Outliving, client_id: str, **guard: Any) -> None:
        self._service = service
        waits: dict[str, Any] = {"configuration_wait": 60, "approval_wait": 0, **guard}
        super().__init__(api_key="k", client_id=client_id, guard=tacho.GuardDefaults(**waits), on_diagnostic=lambda _: None)
        self.ran: list[Any] = []

        @self.guard
        def refund(order: str, *, amount: int) -> int:
            self.ran.append((order, amount))
            return len(self.ran)

        self.refund = refund

    def _make_core(self, given: dict[str, Any]) -> Core:
        return Core(given, self._service.request)


Start = Callable[..., Process]


@pytest.fixture
def service() -> Outliving:
    return Outliving()


@pytest.fixture
def start(service: Outliving) -> Iterator[Start]:
    made: list[Process] = []

    def process(client_id: str, **guard: Any) -> Process:
        made.append(Process(service, client_id, **guard))
        return made[-1]

    yield process
    for one in made:
        one.shutdown(0)


def result_of(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except tacho.ToolBlockedError as error:
        return error.code


def pending_of(act: Callable[[], Any]) -> tuple[tacho.ToolBlockedError, dict[str, Any]]:
    with pytest.raises(tacho.ToolBlockedError) as raised:
        act()
    handle = raised.value.to_handle()
    assert raised.value.pending is not None and handle is not None
    return raised.value, json.loads(json.dumps(handle))


def proceed(process: Process, handle: dict[str, Any], approval_id: str) -> Any:
    with process.resume(handle).within():
        return result_of(lambda: process.continue_call(approval_id, process.refund))


def call(process: Process, handle: dict[str, Any]) -> Any:
    with process.resume(handle).within():
        return result_of(lambda: process.refund("1007", amount=25))


def test_a_pending_call_is_json_for_a_request_and_its_handle_is_not_shown(start: Start) -> None:
    error, _ = pending_of(lambda: start("one").refund("hush", amount=25))
    assert error.pending is not None and error.code == "approval_pending"
    assert set(error.pending.to_json()) == {"status", "approvalId", "toolName", "expiresAt"}
    assert "hush" not in f"{error!r} {error} {vars(error)}"


def test_the_next_process_continues_the_call_in_the_name_of_the_first_client(start: Start, service: Outliving) -> None:
    error, handle = pending_of(lambda: start("one").refund("1007", amount=25))
    approval_id = str(error.approval_id)
    following = start("two")
    assert proceed(following, handle, approval_id) == "approval_pending"
    service.decide()
    assert proceed(following, handle, approval_id) == 1
    assert following.ran == [("1007", 25)]
    assert proceed(following, handle, approval_id) == "approval_used"
    assert len(service.approvals) == 1 and service.issues == []
    following.flush(120)
    assert [event.event_type for event in service.events].count("TOOL_CALL") == 1


def test_an_async_tool_is_continued(start: Start, service: Outliving) -> None:
    async def main() -> tuple[object, list[dict[str, int]]]:
        first = start("one")
        ran: list[dict[str, int]] = []

        async def act(given: dict[str, int]) -> str:
            ran.append(given)
            return "done"

        with pytest.raises(tacho.ToolBlockedError) as raised:
            await first.guard(name="refund")(act)({"amount": 1})
        await asyncio.to_thread(service.decide)
        following = start("two")
        handle = raised.value.to_handle()
        assert handle is not None
        with following.resume(handle).within():
            tool = following.guard(name="refund")(act)
            return await following.acontinue_call(str(raised.value.approval_id), tool), ran

    assert asyncio.run(main()) == ("done", [{"amount": 1}])


def test_a_method_is_continued_on_its_object(start: Start, service: Outliving) -> None:
    class Shop:
        def __init__(self, process: Process) -> None:
            self.process = process
            self.ran: list[str] = []
            self.refund = process.guard(name="refund")(self._refund)

        def _refund(self, order: str) -> str:
            self.ran.append(order)
            return order

    error, handle = pending_of(lambda: Shop(start("one")).refund("7"))
    service.decide()
    shop = Shop(start("two"))
    with shop.process.resume(handle).within():
        assert shop.process.continue_call(str(error.approval_id), shop.refund) == "7"
    assert shop.ran == ["7"]


def test_two_processes_that_continue_at_once_run_the_tool_once(start: Start, service: Outliving) -> None:
    error, handle = pending_of(lambda: start("one").refund("1007", amount=25))
    service.decide()
    both, results = [start("two"), start("three")], []
    gate = threading.Barrier(2)

    def act(process: Process) -> None:
        gate.wait()
        results.append(proceed(process, handle, str(error.approval_id)))

    threads = [threading.Thread(target=act, args=(process,)) for process in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results, key=str) == [1, "approval_used"]
    assert [*both[0].ran, *both[1].ran] == [("1007", 25)]


def test_a_claim_whose_answer_is_lost_is_found_again_and_the_tool_runs(start: Start, service: Outliving) -> None:
    error, handle = pending_of(lambda: start("one").refund("1007", amount=25))
    service.decide()
    service.lost_claims = 1
    assert proceed(start("two"), handle, str(error.approval_id)) == 1
    assert proceed(start("three"), handle, str(error.approval_id)) == "approval_used"


def test_a_claim_of_which_nobody_knows_whose_it_is_runs_nothing_and_says_so(start: Start, service: Outliving) -> None:
    error, handle = pending_of(lambda: start("one").refund("1007", amount=25))
    service.decide()
    service.lost_claims, service.knows_own_claims = 1, False
    two = start("two")
    with two.resume(handle).within(), pytest.raises(tacho.ToolBlockedError) as raised:
        two.continue_call(str(error.approval_id), two.refund)
    assert raised.value.code == "approval_used" and two.ran == []
    assert "or may have" in raised.value.model_text


def test_a_process_that_makes_the_same_call_again_finds_the_first_request(start: Start, service: Outliving) -> None:
    first = start("one")
    # The first process was killed, so the handle was made before the call.
    handle = first.start_run().to_handle()
    assert call(first, handle) == "approval_pending"
    service.decide()
    following = start("two")
    assert call(following, handle) == 1
    assert len(service.approvals) == 1
    # A further call needs its own approval, here and after the next handover.
    assert call(following, handle) == "approval_pending"
    assert len(service.approvals) == 2
    assert call(start("three"), following.resume(handle).to_handle()) == "approval_pending"
    assert len(service.approvals) == 2


def test_an_approval_counts_only_for_the_policy_version_that_required_it(start: Start, service: Outliving) -> None:
    error, handle = pending_of(lambda: start("one").refund("1007", amount=25))
    service.decide()
    service.policies = [policy(version="2")]
    service.is_decided = False
    following = start("two")
    assert proceed(following, handle, str(error.approval_id)) == "approval_pending"
    assert len(service.approvals) == 2 and following.ran == []
    service.policies = [policy("BLOCK")]
    assert proceed(start("three"), handle, str(error.approval_id)) == "policy"


def test_what_is_deployed_while_a_person_decides_holds(start: Start, service: Outliving) -> None:
    """A newer version of the policy needs its own approval."""
    approved: list[str] = []

    def approve(request: Any) -> Any:
        approved.append(request.id)
        service.policies = [policy(version="2")]
        return "approve"

    service.approver = approve
    service.is_decided = True
    process = start("one", approval_wait=None)
    assert result_of(lambda: process.refund("1007", amount=25)) == 1
    assert len(approved) == 2


def test_with_a_key_of_the_caller_a_call_is_asked_for_once(start: Start, service: Outliving) -> None:
    def keyed(process: Process, key: str) -> Any:
        handle = {"runId": "r", "agentName": "a", "parentSpanId": "s", "clientId": "one"}
        with process.resume(handle).within():
            return result_of(lambda: process.call_guarded("refund", INPUT, lambda: "ran", key=key))

    assert keyed(start("one"), "call-1") == "approval_pending"
    service.decide()
    assert keyed(start("two"), "call-1") == "ran"
    assert keyed(start("three"), "call-1") == "approval_used"
    service.is_decided = False
    assert keyed(start("four"), "call-2") == "approval_pending"
    assert len(service.approvals) == 2


def test_in_the_process_that_used_an_approval_the_next_call_with_its_key_asks_anew(start: Start, service: Outliving) -> None:
    handle = {"runId": "r", "agentName": "a", "parentSpanId": "s", "clientId": "one"}

    def keyed(process: Process, run: Any) -> Any:
        with run.within():
            return result_of(lambda: process.call_guarded("refund", INPUT, lambda: "ran", key="id"))

    one, two, three = start("one"), start("two"), start("three")
    first = one.resume(handle)
    assert keyed(one, first) == "approval_pending"
    service.decide()
    assert keyed(one, first) == "ran" and len(service.approvals) == 1
    # A second call with the same key, for example from a tool that pauses after its approval, or a model that repeats an id.
    assert keyed(one, first) == "approval_pending" and len(service.approvals) == 2
    service.decide()
    assert keyed(one, first) == "ran"
    assert keyed(two, two.resume(json.loads(json.dumps(first.to_handle())))) == "approval_pending"
    # This process has a handle from before the calls, so it cannot know that this is a further call.
    assert keyed(three, three.resume(handle)) == "approval_used" and len(service.approvals) == 3


def test_no_text_is_the_key_that_the_sdk_makes_of_another_one(start: Start, service: Outliving) -> None:
    service.decide()
    one = start("one", approval_wait=60)
    run = one.start_run()
    keys: list[Any] = ["x", "x", "x (2)", "x", "x,1", '["x",1]', "__proto__", "", "", None, 0, 1, 1, "1"]
    ran: list[Any] = []

    def keyed(key: Any) -> None:
        with run.within():
            result_of(lambda: one.call_guarded("refund", INPUT, lambda: ran.append(key), key=key))

    for key in keys:
        keyed(key)
    assert ran == keys and len(service.approvals) == len(keys)


def test_a_key_that_was_continued_after_its_first_approval_was_used_is_used_up_again(start: Start, service: Outliving) -> None:
    def keyed(process: Process) -> Any:
        def refund(order: str, *, amount: int) -> str:
            return f"{order} {amount}"

        return process.guard(key=lambda order, amount: "id")(refund)

    one, two = start("one"), start("two")
    run, refund = one.start_run(), keyed(one)
    with run.within():
        pending_of(lambda: refund("1007", amount=25))
        service.decide()
        assert refund("1007", amount=25) == "1007 25"
        error, handle = pending_of(lambda: refund("1007", amount=25))
    service.decide()
    with two.resume(handle).within():
        # This tool sets no key: the waiting call has it.
        assert two.continue_call(str(error.approval_id), two.refund) == 1
        assert result_of(lambda: keyed(two)("1007", amount=25)) == "approval_pending"
    assert len(service.approvals) == 3


def test_a_run_with_many_approvals_of_one_input_keeps_their_count(start: Start) -> None:
    state = start("one").start_run()._scope.state
    state.take_number("slot", 0)
    for _ in range(1_000):
        state.spend_number("slot", state.next_number("slot"))
    state.free_number("slot", 0)
    for _ in range(100_000):
        state.spend_number("slot", state.next_number("slot"))
    numbers = state.numbers["slot"]
    assert (numbers.waiting, numbers.spent, numbers.spent_later) == (set(), 101_000, set())


def test_after_a_call_was_continued_an_equal_call_asks_for_itself(start: Start, service: Outliving) -> None:
    error, handle = pending_of(lambda: start("one").refund("1007", amount=25))
    service.decide()
    following = start("two")
    with following.resume(handle).within():
        assert following.continue_call(str(error.approval_id), following.refund) == 1
        assert result_of(lambda: following.refund("1007", amount=25)) == "approval_pending"
    assert len(service.approvals) == 2


def test_a_rejection_holds_in_the_next_process(start: Start, service: Outliving) -> None:
    _, handle = pending_of(lambda: start("one").refund("1007", amount=25))
    service.approver = "reject"
    service.decide()
    assert call(start("two"), handle) == "approval_rejected"
    assert len(service.approvals) == 1


@pytest.mark.parametrize("receipt", [{"recordId": "r"}, {"recordId": "r", "isNew": "true"}, {}, []])
def test_if_the_service_does_not_say_that_the_record_is_new_nothing_runs(
    start: Start, service: Outliving, receipt: Any
) -> None:
    error, handle = pending_of(lambda: start("one").refund("1007", amount=25))
    service.decide()
    service.receipt = receipt
    following = start("two")
    code = proceed(following, handle, str(error.approval_id))
    assert code in ("approval_used", "approval_unavailable") and following.ran == []


def test_arguments_that_json_would_change_are_not_carried(start: Start, service: Outliving) -> None:
    process = start("one")

    @process.guard(name="refund")
    def tool(given: dict[str, Any]) -> object:
        return given

    error, handle = pending_of(lambda: tool({"pair": (1, 2)}))
    assert "args" not in handle["approvals"][0]
    with process.resume(handle).within(), pytest.raises(LookupError):
        process.continue_call(str(error.approval_id), tool)


def test_what_a_run_used_travels_in_its_handle_and_resumes_of_one_process_count_together(
    start: Start, service: Outliving
) -> None:
    service.policies = []
    budget = tacho.Budget(tool_calls=2, action="BLOCK")
    first = start("one", budget=budget)
    run = first.start_run()
    run.llm_call(usage={"totalTokens": 7}, cost=0.5)
    with run.within():
        first.refund("1007", amount=25)
    handle = json.loads(json.dumps(run.to_handle()))
    assert {**handle["used"], "seconds": 0} == {"toolCalls": 1, "totalTokens": 7, "cost": 0.5, "seconds": 0}
    following = start("two", budget=budget)
    assert [call(following, handle) for _ in range(3)] == [1, "budget_exceeded", "budget_exceeded"]


def test_a_loop_that_spans_processes_is_found(start: Start, service: Outliving) -> None:
    service.policies = []
    handle: dict[str, Any] = {"runId": "loop", "agentName": "a", "parentSpanId": "s"}
    results = []
    for number in range(4):
        process = start(str(number), loop=tacho.Loop(calls=4, action="BLOCK"))
        run = process.resume(handle)
        with run.within():
            results.append(result_of(lambda process=process: process.refund("1007", amount=25)))  # type: ignore[misc]
        handle = run.to_handle()
    assert results == [1, 1, 1, "loop_detected"]


def test_a_run_that_ends_with_a_pending_call_stays_open(start: Start, service: Outliving) -> None:
    process = start("one")
    with pytest.raises(tacho.ToolBlockedError), process.run():
        process.refund("1007", amount=25)
    process.flush(120)
    types = [event.event_type for event in service.events]
    assert types == ["POLICY_DECISION", "AGENT_STEP"]


def test_a_handle_of_another_shape_does_no_harm(start: Start) -> None:
    odd = {"clientId": 5, "used": {"toolCalls": "x"}, "recentCalls": 7, "spentApprovals": {"a": 1, "b": "c"}}
    handle = {"runId": "r", "agentName": "a", "parentSpanId": "s", **odd, "approvals": [None, 3, {}]}
    process = start("one")
    assert call(process, handle) == "approval_pending"
    with process.resume(handle).within(), pytest.raises(LookupError):
        process.continue_call("unknown", process.refund)
