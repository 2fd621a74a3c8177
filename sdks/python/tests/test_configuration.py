"""Prompts and policies are validated, replaced as a whole, and stay in use while the service does not answer."""

from __future__ import annotations

import asyncio
import enum
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service, refuse
from tacho_sdk.configuration.prompt import prompt_of

Make = Callable[..., Client]


def prompt(name: str, content: str) -> dict[str, Any]:
    digest = hashlib.sha256(content.encode()).hexdigest()
    ids = {"promptId": "p", "versionId": f"v-{digest[:8]}", "version": "1"}
    return {**ids, "name": name, "content": content, "contentHash": digest}


def test_a_prompt_is_rendered_once_and_its_version_is_recorded(make: Make, service: Service) -> None:
    service.prompts = [prompt("greeting", "Hello {{ name }}, {{other}} {{name}}!")]
    client = make()
    assert client.tacho.configuration.ready(120)
    with client.tacho.run() as run:
        deployed = client.tacho.prompt("greeting", "Hi")
        assert not deployed.is_fallback
        assert deployed.render(name="{{other}}", unused=1) == "Hello {{other}}, {{other}} {{other}}!"
        run.step("with the version")
        assert client.tacho.prompt("missing", "Hi {{name}}").render(name=1) == "Hi 1"
        run.step("without")
    client.tacho.flush(120)
    versions = [event["payload"].get("promptVersionId") for event in service.events]
    assert versions == [deployed.version_id, None, None]


def test_prompts_of_parallel_tasks_and_spans_keep_their_versions(make: Make, service: Service) -> None:
    service.prompts = [prompt("a", "A"), prompt("b", "B")]
    client = make().tacho
    assert client.configuration.ready(120)
    versions = {one["name"]: one["versionId"] for one in service.prompts}

    async def use(name: str) -> None:
        for _ in range(3):
            client.prompt(name, "")
            await asyncio.sleep(0)
            client.record("LLM_CALL", name)

    async def main() -> None:
        async with client.run() as run:
            await asyncio.gather(use("a"), use("b"))
            # Two versions are in use, but this task has rendered no prompt.
            client.record("LLM_CALL", "none")
            client.prompt("a", "")
            async with run.span("inner"):
                client.record("LLM_CALL", "a")
                client.prompt("b", "")
                client.record("LLM_CALL", "b")
            client.record("LLM_CALL", "a")
            client.prompt("fallback", "")
            client.record("LLM_CALL", "none")

    asyncio.run(main())
    with client.run():
        # A helper in a thread renders the prompt. It is the only version of the run.
        asyncio.run(asyncio.to_thread(client.prompt, "b", ""))
        client.record("LLM_CALL", "b")
    client.flush(120)
    calls = [event for event in service.events if event["eventType"] == "LLM_CALL"]
    assert len(calls) == 12
    for call in calls:
        assert call["payload"].get("promptVersionId") == versions.get(call["label"]), call["label"]


def test_a_prompt_is_its_fallback_until_one_is_loaded(make: Make, service: Service) -> None:
    service.script("/runtime-config", refuse(503))
    client = make()
    used = client.tacho.prompt("greeting", "Hi {{name}}")
    assert used.is_fallback and used.version_id is None and used.render() == "Hi {{name}}"
    assert not client.tacho.configuration.ready(120)
    service.until(lambda: "configuration_unavailable" in client.codes)


def test_changes_are_told_and_an_unchanged_answer_is_confirmed(make: Make, service: Service) -> None:
    client = make()
    seen: list[tuple[str, str | None]] = []
    stop = client.tacho.configuration.on_change(
        lambda current, before: seen.append((current.revision, before.revision if before else None))
    )
    client.tacho.configuration.on_change(lambda *_: 1 / 0)
    assert client.tacho.configuration.ready(120)
    service.script("/runtime-config", lambda _: (304, None, {}), service.scripts["/runtime-config"][0])
    assert client.tacho.configuration.refresh()
    service.revision = "r2"
    assert client.tacho.configuration.refresh()
    stop()
    service.revision = "r3"
    assert client.tacho.configuration.refresh()
    assert seen == [("r1", None), ("r2", "r1")]
    state = client.tacho.configuration.state
    assert state.current and state.current.revision == "r3" and state.age is not None and state.source == "service"


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_stops_refreshing_and_keeps_what_is_loaded(make: Make, service: Service, status: int) -> None:
    client = make()
    assert client.tacho.configuration.refresh()
    service.script("/runtime-config", refuse(status))
    assert not client.tacho.configuration.refresh()
    assert not client.tacho.configuration.refresh()
    assert len(service.of("/runtime-config")) == 2
    assert client.tacho.configuration.current is not None
    assert client.codes.count("configuration_refused") == 1


def test_the_file_serves_while_the_service_is_down_but_only_for_the_same_key(
    make: Make, service: Service, tmp_path: Path
) -> None:
    file = str(tmp_path / "configuration.json")
    service.prompts = [prompt("greeting", "Hello")]
    service.deploy("true", "BLOCK")
    assert make(configuration_file=file).tacho.configuration.refresh()
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert "key" not in Path(file).read_text().replace('"apiKey"', "")
    service.script("/runtime-config", refuse(503))
    client = make(configuration_file=file).tacho
    assert client.configuration.ready(120)
    assert client.prompt("greeting", "Hi").content == "Hello"
    assert client.decide("t").action == "BLOCK"
    assert client.configuration.state.source == "disk"
    other = make(configuration_file=file, api_key="other")
    assert not other.tacho.configuration.ready(120)
    changed = json.loads(Path(file).read_text())
    changed["body"]["policies"] = []
    Path(file).write_text(json.dumps(changed))
    assert not make(configuration_file=file).tacho.configuration.ready(120)


def test_ready_for_asyncio_and_without_a_key(make: Make) -> None:
    import asyncio

    assert asyncio.run(make().tacho.configuration.aready(120))
    assert not tacho.Tacho(enabled=False).configuration.ready(120)


def test_a_value_of_a_prompt_is_a_text_that_a_model_can_read() -> None:
    class Size(enum.Enum):
        BIG = "big"

    class Order:
        def __init__(self, number: int) -> None:
            self.number = number

    prompt = prompt_of(None, "p", "{{ x }}")
    objects = [Order(7), [Order(7)], object()]
    assert [prompt.render(x=one) for one in objects] == ['{"number":7}', '[{"number":7}]', "[object: object]"]
    values = [Size.BIG, b"ab", float("nan"), float("-inf"), {1}, True]
    assert [prompt.render(x=one) for one in values] == ["big", "[binary: 2 bytes]", "NaN", "-Infinity", "[1]", "true"]


def test_a_value_of_a_prompt_that_cannot_be_read_leaves_the_prompt_to_the_host() -> None:
    class Hostile:
        def __str__(self) -> str:
            raise ValueError("no text")

    class Guarded(Hostile):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(name)

    prompt = prompt_of(None, "p", "{{ x }}")
    # Python refuses to write an integer of more than 4,300 digits.
    assert {prompt.render(x=one) for one in (Hostile(), Guarded(), 10**5_000)} == {"[unreadable]"}
    assert prompt.render(x=memoryview(bytes(8)).cast("I")) == "[binary: 8 bytes]"


SHARES = Path(__file__).parents[3] / "packages" / "sdk-conformance" / "vectors" / "prompt-shares.json"


def test_a_session_gets_the_same_version_of_a_shared_prompt_in_every_process_and_sdk(make: Make, service: Service) -> None:
    """The TypeScript SDK reads the same file."""
    vectors = json.loads(SHARES.read_text())
    other = {name: value for name, value in prompt("", "other").items() if name not in ("promptId", "name")}
    for index, vector in enumerate(vectors):
        for percent in (vector["percent"] - 1, vector["percent"]):
            share = {"percent": percent, "salt": vector["salt"], **other}
            service.prompts.append({**prompt(f"{index} {percent}", "stable"), "share": share})
    client = make().tacho
    assert client.configuration.ready(120)

    def contents(index: int, first: int) -> list[str]:
        return [client.prompt(f"{index} {percent}", "").content for percent in (first - 1, first)]

    for index, vector in enumerate(vectors):
        session, first = vector["session"], vector["percent"]
        assert contents(index, first) == ["stable", "stable"], "outside of runs"
        with client.run(session_id=session) as run:
            assert contents(index, first) == ["stable", "other"], session
            run.step("last")
        if len(session) <= 255:
            with client.run(run_id=session):
                assert contents(index, first) == ["stable", "other"], session
    client.flush(120)
    steps = [event["payload"] for event in service.events if event["eventType"] == "AGENT_STEP"]
    assert {step["promptVersionId"] for step in steps} == {other["versionId"]}


def test_a_share_of_another_form_is_left_out_and_a_wrong_hash_in_one_rejects_the_configuration(
    make: Make, service: Service
) -> None:
    other = {name: value for name, value in prompt("", "other").items() if name not in ("promptId", "name")}
    share = {"percent": 100, "salt": "s", **other}
    client = make().tacho

    def content(form: object, revision: str) -> str:
        service.prompts, service.revision = [{**prompt("greeting", "stable"), "share": form}], revision
        client.configuration.refresh()
        with client.run():
            return client.prompt("greeting", "fallback").content

    assert content({**share, "contentHash": "ab" * 32}, "r1") == "fallback"
    forms: list[object] = ["x", [], {}, {**share, "percent": "100"}, {**share, "percent": True}, {**share, "salt": 1}, None]
    assert [content(form, f"r{at}") for at, form in enumerate(forms, 2)] == ["stable"] * len(forms)
    assert content(share, "last") == "other"


def test_the_file_keeps_shares_and_labels_of_tools(make: Make, service: Service, tmp_path: Path) -> None:
    file = str(tmp_path / "configuration.json")
    other = {name: value for name, value in prompt("", "other").items() if name not in ("promptId", "name")}
    service.prompts = [{**prompt("greeting", "stable"), "share": {"percent": 100, "salt": "s", **other}}]
    labels = [{"tool": "read_*", "output": ["untrusted"], "when": "true"}]
    body = {"revision": "r2", "prompts": service.prompts, "policies": [], "toolLabels": labels}
    service.script("/runtime-config", lambda _: (200, body, {"etag": '"r2"'}))
    loaded = make(configuration_file=file).tacho.configuration
    assert loaded.refresh()
    service.script("/runtime-config", refuse(503))
    client = make(configuration_file=file).tacho
    assert client.configuration.ready(120) and client.configuration.state.source == "disk"
    assert client.configuration.current == loaded.current
    with client.run():
        assert client.prompt("greeting", "").content == "other"
