"""What guarded tools do without the service: each row of the table in docs/sdk/python.md."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service, refuse
from test_guard import answer, ask

Make = Callable[..., Client]
DOWN = refuse(503)


def outcome(client: Client, tool_name: str = "refund") -> str:
    try:
        client.tacho.call_guarded(tool_name, {}, lambda: None)
    except tacho.ToolBlockedError as error:
        return error.code
    return "ran"


@pytest.fixture
def file(make: Make, service: Service, tmp_path: Path) -> str:
    """A configuration file of an earlier process, with a policy that blocks `refund`. The service is down now."""
    service.deploy('tool.name == "refund"', "BLOCK")
    path = str(tmp_path / "configuration.json")
    assert make(configuration_file=path).tacho.configuration.refresh()
    service.script("/runtime-config", DOWN)
    return path


def test_policies_of_the_service_decide(make: Make, service: Service) -> None:
    service.deploy('tool.name == "refund"', "BLOCK")
    client = make()
    assert (outcome(client), outcome(client, "search")) == ("policy", "ran")


def test_without_policies_and_file_tools_do_not_run(make: Make, service: Service) -> None:
    service.script("/runtime-config", DOWN)
    assert outcome(make()) == "not_configured"
    service.script("/runtime-config", refuse(401))
    assert outcome(make()) == "not_configured"


def test_a_file_decides_until_the_service_answers(make: Make, service: Service, file: str) -> None:
    client = make(configuration_file=file)
    assert (outcome(client), outcome(client, "search")) == ("policy", "ran")
    assert client.tacho.configuration.state.source == "disk"
    service.policies.clear()
    service.revision = "r2"
    service.script("/runtime-config", service._configuration)
    assert client.tacho.configuration.refresh() and outcome(client) == "ran"


def test_a_file_that_is_too_old_is_not_used(make: Make, file: str) -> None:
    time.sleep(1.2)
    assert outcome(make(configuration_file=file, configuration_max_age=1)) == "not_configured"
    assert outcome(make(configuration_file=file, configuration_max_age=3_600)) == "policy"


@pytest.mark.parametrize(
    "change", [{"confirmedAt": time.time()}, {"confirmedAt": None}, {"etag": "x"}, {"signature": "0" * 64}]
)
def test_a_file_that_somebody_changed_is_not_used(make: Make, file: str, change: dict[str, Any]) -> None:
    Path(file).write_text(json.dumps({**json.loads(Path(file).read_text()), **change}))
    assert outcome(make(configuration_file=file)) == "not_configured"


def test_a_file_of_another_key_is_not_used(make: Make, file: str) -> None:
    assert outcome(make(configuration_file=file, api_key="other")) == "not_configured"


def test_an_unchanged_configuration_makes_the_file_younger(make: Make, service: Service, tmp_path: Path) -> None:
    path = tmp_path / "configuration.json"
    client = make(configuration_file=str(path), configuration_max_age=1)
    assert client.tacho.configuration.refresh()
    before = json.loads(path.read_text())["confirmedAt"]
    service.script("/runtime-config", lambda _: (304, None, {}))
    time.sleep(0.1)
    assert client.tacho.configuration.refresh()
    assert json.loads(path.read_text())["confirmedAt"] > before


def test_tools_that_may_run_unchecked_run_but_own_policies_decide(make: Make, service: Service) -> None:
    service.script("/runtime-config", DOWN)
    own = tacho.Policy("own", "own", 'tool.name == "refund"', "BLOCK")
    client = make(guard=tacho.GuardDefaults(when_unconfigured="allow", policies=[own], configuration_wait=120))
    assert (outcome(client), outcome(client, "search")) == ("policy", "ran")


@pytest.mark.parametrize("status", [503, 401])
def test_the_last_policies_stay_in_force(make: Make, service: Service, status: int) -> None:
    service.deploy('tool.name == "refund"', "BLOCK")
    client = make()
    assert client.tacho.configuration.ready(120)
    service.script("/runtime-config", refuse(status))
    assert not client.tacho.configuration.refresh()
    assert (outcome(client), outcome(client, "search")) == ("policy", "ran")


def test_approvals_need_the_service(make: Make, service: Service) -> None:
    ask(service, answer("APPROVED"))
    service.script("/firewall-approvals", DOWN)
    assert outcome(make(guard=tacho.GuardDefaults(approval_timeout=1, configuration_wait=120))) == "approval_timeout"
    service.script("/firewall-approvals", refuse(404))
    assert outcome(make()) == "approval_unavailable"


def test_a_client_that_is_turned_off_runs_its_tools(make: Make) -> None:
    own = tacho.Policy("own", "own", 'tool.name == "refund"', "BLOCK")
    client = make(enabled=False, guard=tacho.GuardDefaults(policies=[own]))
    assert (outcome(client), outcome(client, "search")) == ("policy", "ran")


def test_a_budget_of_cost_counts_the_cost_of_model_calls(make: Make, service: Service) -> None:
    client = make(guard=tacho.GuardDefaults(budget=tacho.Budget(cost=1, action="BLOCK"), configuration_wait=120))
    with client.tacho.run() as run:
        run.llm_call(usage={"totalTokens": 1_000_000})
        assert outcome(client) == "ran"
        run.llm_call(cost=1)
        assert outcome(client) == "ran"
        run.llm_call(cost=0.001)
        assert outcome(client) == "budget_exceeded"


def test_a_client_says_that_it_records_a_program_of_tacho_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "sdk"
    monkeypatch.setenv("TACHO_RECORDED_BY", str(note))
    tacho.Tacho(api_key="key", base_url="http://127.0.0.1:9", enabled=False)
    assert not note.exists()
    tacho.Tacho(api_key="key", base_url="http://127.0.0.1:9").shutdown(0)
    assert note.exists()
    monkeypatch.setenv("TACHO_RECORDED_BY", str(tmp_path / "no" / "folder"))
    tacho.Tacho(api_key="key", base_url="http://127.0.0.1:9").shutdown(0)
