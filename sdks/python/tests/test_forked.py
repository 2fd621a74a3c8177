"""Deployed policies apply in every process: after a fork at any stage of a client's life, and after a sleep."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service, refuse
from tacho_sdk.delivery import process_end
from tacho_sdk.integrations.model_call import ModelCall

Make = Callable[..., Client]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

STAGES = {
    "before its first use": "",
    "while it loads": "client.configuration.start()",
    "after ready": "assert client.configuration.ready(60)",
    "after a prompt": "client.prompt('p', 'x')",
    "after a guarded call": "client.call_guarded('refund', {}, lambda: 1)",
    "in a run": "run = client.start_run(); run.step('s'); client.configuration.ready(60); client.flush(60)",
    "while a call is held": """
        threading.Thread(target=lambda: client.call_guarded('held', {}, lambda: 1), daemon=True).start()
        until(lambda: client.core.leaving_callers.of(None))
    """,
    "while its locks are held": """
        client.configuration.ready(60)
        client.configuration._loading.acquire()
        client.guarding.lock.acquire()
    """,
    "twice": """
        client.configuration.ready(60)
        pid = os.fork()
        if pid:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """,
}


@forks
@pytest.mark.parametrize("uses", ["calls", "reads"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_policy_that_is_deployed_after_a_fork_is_in_force_in_the_child(service: Service, stage: str, uses: str) -> None:
    service.deploy('tool.name == "held"', "REQUIRE_APPROVAL")
    pending = {"id": "a", "status": "PENDING", "decidedAt": None, "expiresAt": "2099-01-01T00:00:00Z"}
    service.script("/firewall-approvals", lambda _: (201, pending, {}))
    service.script("/firewall-approvals/id", lambda _: (200, pending, {}))
    code = f"""
        import os, sys, threading, time, tacho_sdk as tacho

        def until(condition):
            end = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < end, "timeout"
                time.sleep(0.05)

        client = tacho.configure(refresh_interval=1, request_timeout=60, guard=tacho.GuardDefaults(configuration_wait=60))
{textwrap.indent(textwrap.dedent(STAGES[stage]), "        ")}
        pid = os.fork()
        if pid:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        client.call_guarded("refund", {{}}, lambda: 1)
        print("ready", flush=True)
        sys.stdin.readline()

        def is_blocked():
            try:
                client.call_guarded("refund", {{}}, lambda: 1)
            except tacho.ToolBlockedError as error:
                return error.code == "policy"

        until(is_blocked if {uses == "calls"} else lambda: client.configuration.current.revision == "r2")
        print("in force", flush=True)
        run = client.start_run(run_id="child")
        run.step("child")
        os._exit(client.flush(60).left)
    """
    variables = {**os.environ, "TACHO_URL": service.url, "TACHO_API_KEY": "key", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(command, env=variables, text=True, **pipes)
    assert child.stdout is not None
    said = child.stdout.readline()
    service.deploy('tool.name == "refund"', "BLOCK")
    service.revision = "r2"
    out, written = child.communicate("\n", timeout=120)
    assert (said, out, child.returncode) == ("ready\n", "in force\n", 0), written
    assert [event["label"] for event in service.events if event["runId"] == "child"] == ["child"]


@forks
def test_a_fork_without_hooks_is_noticed_by_the_id_of_the_process(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    client, seen = make().tacho, []
    monkeypatch.setattr(client, "after_fork", lambda: seen.append(1))
    monkeypatch.setattr(process_end, "_pid", -1)
    client.record("X", "x")
    client.record("X", "x")
    assert seen == [1]


@pytest.mark.parametrize("is_async", [False, True])
def test_after_a_sleep_the_first_call_is_judged_by_policies_of_now(
    make: Make, service: Service, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    client = make(refresh_interval=3_600).tacho
    assert client.configuration.ready(60)
    service.deploy("true", "BLOCK")
    service.revision = "r2"
    now = time.time
    # The monotonic clock stands still.
    monkeypatch.setattr(time, "time", lambda: now() + 7_200)
    with pytest.raises(tacho.ToolBlockedError) as raised:
        if is_async:
            asyncio.run(client.acall_guarded("refund", {}, lambda: asyncio.sleep(0)))
        else:
            client.call_guarded("refund", {}, lambda: 1)
    assert raised.value.code == "policy"


def test_in_an_outage_one_wait_is_enough_and_old_policies_say_so(
    make: Make, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = make(refresh_interval=3_600, guard=tacho.GuardDefaults(configuration_wait=60))
    assert client.tacho.configuration.ready(60)
    service.script("/runtime-config", refuse(503))
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 7_200)
    with client.tacho.run():
        for n in range(5):
            client.tacho.call_guarded("refund", {"n": n}, lambda: 1)
    client.tacho.flush(60)
    assert client.codes.count("policies_old") == 1
    decisions = [event["payload"] for event in service.events if event["eventType"] == "POLICY_DECISION"]
    assert len(decisions) == 5
    assert all(one["action"] == "ALLOW" and one["policyAgeMs"] > 7_100_000 for one in decisions)


def test_the_first_prompt_waits_and_a_fallback_is_said_once_and_shown(make: Make, service: Service) -> None:
    content = "Hello {{größe}} {{1name}} {{ who }} {{list}} {{left}} {{#if x}}"
    digest = hashlib.sha256(content.encode()).hexdigest()
    ids = {"promptId": "i", "name": "p", "versionId": "v", "version": "1"}
    service.prompts.append({**ids, "content": content, "contentHash": digest})
    client = make()
    with client.tacho.run() as run:
        prompt = client.tacho.prompt("p", "fallback")
        given: dict[str, Any] = {"größe": 5, "1name": "Ada", "who": {"a": None, "b": [True]}, "list": (1, "x")}
        assert prompt.render(**given) == 'Hello 5 Ada {"a":null,"b":[true]} [1,"x"] {{left}} {{#if x}}'
        run.step("deployed")
    assert not prompt.is_fallback and client.codes == ["prompt_variable_missing"]
    service.script("/runtime-config", refuse(503))
    other = make()
    with other.tacho.run() as run:
        assert other.tacho.prompt("p", "fallback").is_fallback and other.tacho.prompt("p", "fallback").is_fallback
        run.step("fallback")
    client.tacho.flush(60)
    other.tacho.flush(60)
    payloads = {event["label"]: event["payload"] for event in service.events}
    assert payloads["deployed"] == {"promptVersionId": "v"} and payloads["fallback"] == {"promptFallback": True}
    assert other.codes.count("prompt_fallback") >= 1


@forks
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_model_call_that_is_open_at_a_fork_is_recorded_once(make: Make, service: Service) -> None:
    client = make().tacho
    with client.run():
        call = ModelCall(client, lambda: {"model": "m"})
        pid = os.fork()
        if pid == 0:
            # The child aborts the call, as when it drops the stream.
            call.abort(dict)
            client.flush(60)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        call.end(dict)
    client.flush(60)
    assert [event["eventType"] for event in service.events] == ["LLM_CALL", "SESSION_OUTCOME"]
