"""The scene that every integration must pass: three tool calls at once, of which one is blocked and one is approved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Client, Service
from tacho_sdk.policy.input_hash import input_hash

from .model_server import CALLS, FINAL, ModelServer


@pytest.fixture(autouse=True, scope="package")
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Skips certifi's certificates. Each of hundreds of clients would parse them, a third of its time, and none uses TLS."""
    certifi: Any = pytest.importorskip("certifi")
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    file = tmp_path_factory.mktemp("certificate") / "first.pem"
    file.write_text(first + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    server = ModelServer()
    yield server
    server.close()


class Scene:
    """Policies, an approval and the tool of the scene, and checks of what is recorded."""

    def __init__(self, client: Client, service: Service) -> None:
        self.client = client
        self.tacho = client.tacho
        self.ran: list[int] = []
        self._service = service
        service.deploy('tool.name == "refund" && tool.input.amount > 100', "BLOCK")
        service.deploy('tool.name == "refund" && tool.input.amount > 40', "REQUIRE_APPROVAL")
        approval = {
            "id": "a1",
            "expiresAt": "2030-01-01T00:00:00Z",
            "decidedAt": "2026-01-01T00:00:00Z",
            "decisionReason": None,
        }
        service.script("/firewall-approvals", lambda _: (201, {**approval, "status": "PENDING", "decidedAt": None}, {}))
        service.script("/firewall-approvals/id", lambda _: (200, {**approval, "status": "APPROVED"}, {}))

    def refund(self, order: int, amount: int) -> str:
        """Refunds an order."""
        self.ran.append(order)
        return f"refunded {amount} for {order}"

    def check(
        self,
        *,
        provider: str | None,
        answer: object,
        messages: list[Any],
        is_stream: bool = False,
        prompt: str | None = "Refund 1, 2 and 3",
        has_call_ids: bool = True,
    ) -> None:
        """
        `messages`: the tools' answers, as the model received them. `prompt`: None if the framework adds text to it.
        `has_call_ids`: whether the framework gives a tool the model's id of the call.
        """
        assert answer == FINAL
        assert sorted(self.ran) == [1, 3]
        said = [str(message) for message in messages]
        assert len(said) == 3
        assert "refunded 10 for 1" in said[0]
        assert "A policy forbids this call" in said[1]
        assert "refunded 50 for 3" in said[2]
        self.tacho.flush(120)
        events = self._service.events
        assert self.tacho.counters().dropped == {}
        assert len({event["runId"] for event in events}) == 1
        calls = [event["payload"] for event in events if event["eventType"] == "TOOL_CALL"]
        assert sorted(call["input"]["order"] for call in calls) == [1, 3]
        assert {call["toolName"] for call in calls} == {"refund"}
        approved = [call.get("approvalId") for call in calls if call["input"]["order"] == 3]
        assert approved == ["a1"]
        decisions = [event["payload"]["action"] for event in events if event["eventType"] == "POLICY_DECISION"]
        assert sorted(decisions) == ["BLOCK", "REQUIRE_APPROVAL"]
        models = [event["payload"] for event in events if event["eventType"] == "LLM_CALL"]
        assert len(models) == 2
        for call in models:
            assert call["model"] == "scripted-1" and call["latency"] >= 0
            assert {"promptTokens": 10, "completionTokens": 5}.items() <= call["usage"].items()
            assert provider is None or call["provider"] == provider
            if is_stream:
                assert call["timeToFirstOutput"] <= call["latency"]
        asked_calls = [(call["name"], call["arguments"]) for call in models[0]["output"]["toolCalls"]]
        assert [arguments["order"] for _, arguments in asked_calls] == [1, 2, 3]
        repeated = [call for message in models[1]["messages"] for call in message.get("toolCalls", ())]
        assert [(call["name"], call["arguments"]) for call in repeated] == asked_calls
        # The id distinguishes this approval from those of other calls with the same input, even in the next process.
        (asked,) = self._service.of("/firewall-approvals")
        key = models[0]["output"]["toolCalls"][2]["id"] if has_call_ids else 0
        basis = [events[0]["runId"], "refund", asked["inputHash"], "p", "1", key]
        assert asked["clientRequestId"] == input_hash("approval", basis)
        assert models[1]["output"]["content"] == FINAL
        last = models[0]["messages"][-1]
        assert last["role"] == "user" and "Refund 1, 2 and 3" in last["content"]
        assert prompt is None or last["content"] == prompt


@pytest.fixture
def scene(make: Callable[..., Client], service: Service) -> Scene:
    return Scene(make(), service)


class Leaving:
    """A person who approves only after the agent has given up."""

    def __init__(self, service: Service) -> None:
        self.is_decided = False
        service.deploy("true", "REQUIRE_APPROVAL")
        pending = {"id": "a1", "status": "PENDING", "expiresAt": "2099-01-01T00:00:00Z", "decidedAt": None}
        approved = {**pending, "status": "APPROVED", "decidedAt": "2026-01-01T00:00:00Z"}
        service.script("/firewall-approvals", lambda _: (201, approved if self.is_decided else pending, {}))
        service.script("/firewall-approvals/id", lambda _: (200, approved if self.is_decided else pending, {}))
        self._service = service

    def until_held(self, calls: int = 3) -> None:
        self._service.until(lambda: len(self._service.of("/firewall-approvals/id")) >= calls)

    def check(
        self, client: Any, ran: list[int], reasons: set[str], ids: set[str | None] | None = None, by_time: bool = False
    ) -> None:
        """`by_time`: the agent gives up by a timeout, which on a slow machine may end before the call asks for approval."""
        self.is_decided = True
        time.sleep(1.5)
        expected = ids or {call_id for call_id, _ in CALLS}

        def withdrawn() -> list[dict[str, Any]]:
            client.flush(120)
            return [one["payload"] for one in self._service.events if one["eventType"] == "APPROVAL_WITHDRAWN"]

        def is_withdrawn() -> bool:
            return {one.get("toolCallId") for one in withdrawn()} >= expected

        # On a busy machine, a thread that waits for an approval notices the end of its caller later.
        if withdrawn() or not by_time:
            self._service.until(is_withdrawn)
            assert {one.get("toolCallId") for one in withdrawn()} == expected
        assert ran == []
        assert {one["reason"] for one in withdrawn()} <= reasons
        assert self._service.of("/issue-records") == []
