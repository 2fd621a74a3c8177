"""The fake for tests, and its fixture. The same cases as packages/sdk/test/testing/fake-tacho.test.ts."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tacho_sdk as tacho
from tacho_sdk.testing import FakeTacho, RequestedApproval, fake_tacho

LARGE = tacho.Policy("large", "Large refunds", 'tool.name == "refund" && tool.input.amount > 100.0', "REQUIRE_APPROVAL")


@tacho.guard
def refund(amount: int) -> str:
    return f"refunded {amount}"


@tacho.run(agent_name="Support agent")
def agent(amount: int) -> str:
    tacho.current_run().user_input(f"Refund {amount}")  # type: ignore[union-attr]
    return refund(amount)


def test_code_that_uses_the_functions_of_the_module_is_recorded_guarded_and_approved() -> None:
    with fake_tacho(deployed_policies=[LARGE], approvals="approve") as fake:
        assert agent(250) == "refunded 250"
        fake.assert_decision(action="REQUIRE_APPROVAL", tool_name="refund", policy_ids=["large"])
        fake.assert_event("TOOL_CALL", {"toolName": "refund", "input": {"amount": 250}})
        assert fake.assert_run(agent_name="Support agent", status="COMPLETED").events[0].event_type == "USER_INPUT"
        [approval] = fake.approvals()
        assert (approval.tool_name, approval.status) == ("refund", "APPROVED")

        fake.answer_approvals("reject")
        with pytest.raises(tacho.ToolBlockedError):
            agent(300)
        fake.assert_no_event("TOOL_CALL", {"input": {"amount": 300}})
        fake.assert_run(status="FAILED")
        assert [issue.detection_type for issue in fake.issues()] == ["TOOL_BLOCKED"]


def test_an_approver_can_be_a_function_and_expire() -> None:
    asked: list[RequestedApproval] = []

    def approver(request: RequestedApproval) -> str:
        asked.append(request)
        return "approve" if request.policy_id == "large" and len(asked) == 1 else "expire"

    with fake_tacho(deployed_policies=[LARGE], approvals=approver) as fake:  # type: ignore[arg-type]
        assert agent(250) == "refunded 250"
        with pytest.raises(tacho.ToolBlockedError) as blocked:
            agent(251)
        assert blocked.value.code == "approval_expired"
        assert [one.status for one in fake.approvals()] == ["APPROVED", "EXPIRED"]


def test_policies_and_prompts_are_deployed_and_a_fake_can_be_passed_on() -> None:
    fake = fake_tacho(deployed_prompts={"greeting": "Hello {{name}}"}, agent_name="Passed")
    assert fake.tacho.configuration.ready(60)
    with fake.tacho.run() as run:
        assert fake.tacho.prompt("greeting", "Hi").render(name="Ada") == "Hello Ada"
        run.step("greeted")
    fake.deploy_prompts({"greeting": "Good day"})
    fake.deploy_policies([tacho.Policy("no", "No", "true", "BLOCK")])
    assert fake.tacho.prompt("greeting", "Hi").render() == "Good day"
    assert fake.tacho.decide("anything").action == "BLOCK"
    event = fake.assert_event("AGENT_STEP")
    assert event.payload["promptVersionId"] and event.agent_name == "Passed"
    fake.close()


def test_a_service_that_is_down_answers_nothing_and_nothing_is_lost() -> None:
    with fake_tacho() as fake:
        assert fake.tacho.configuration.ready(60)
        fake.set_down(True)
        assert agent(1) == "refunded 1"
        assert fake.tacho.flush(0).left > 0
        fake.set_down(False)
        assert fake.assert_run(status="COMPLETED")


def test_a_failed_assertion_lists_what_was_recorded() -> None:
    with fake_tacho() as fake:
        with tacho.run(run_id="one") as run:
            run.step("step", {"n": 1, "list": [1, 2]})
        fake.assert_event("AGENT_STEP", {"list": [1, 2]})
        for wanted in ({"n": True}, {"n": 2}, {"list": [1]}, {"other": None}):
            with pytest.raises(AssertionError, match="Found no event"):
                fake.assert_event("AGENT_STEP", wanted)
        with pytest.raises(AssertionError, match="run_id='one'"):
            fake.assert_run(status="FAILED")
        with pytest.raises(AssertionError, match="Expected no such event"):
            fake.assert_no_event("AGENT_STEP")


def test_the_client_of_before_is_back_after_the_fake() -> None:
    before = tacho._client
    with fake_tacho() as outer:
        with fake_tacho() as inner:
            assert tacho.client() is inner.tacho
        assert tacho.client() is outer.tacho
    assert tacho._client is before


def test_the_fixture_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tacho_sdk.testing.fixtures"]\n')
    program = """
        import tacho_sdk as tacho

        def test_one(fake_tacho):
            with tacho.run():
                tacho.record("X", "one")
            assert [event.label for event in fake_tacho.events()] == ["one", "completed"]

        def test_another_one_begins_empty(fake_tacho):
            assert fake_tacho.events() == []
    """
    (tmp_path / "test_it.py").write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "2 passed" in ended.stdout, ended.stdout


def test_the_fake_needs_no_pytest() -> None:
    program = "import sys, tacho_sdk.testing; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    assert FakeTacho.__doc__
