"""Shared test cases: guarded calls decide as in the TypeScript SDK, the MCP guard, the hook and the simulation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tacho_sdk as tacho
from conftest import Client, Service
from tacho_sdk.policy.input_hash import input_hash

VECTORS = Path(__file__).parents[3] / "packages" / "policy" / "vectors" / "decisions.json"


def test_every_shared_call_is_decided_alike(make: Callable[..., Client], service: Service) -> None:
    shared = json.loads(VECTORS.read_text(encoding="utf-8"))
    calls: list[dict[str, Any]] = shared["calls"]
    assert (len(shared["policies"]), len(calls)) == (23, 200)
    service.policies += [{**policy, "description": None} for policy in shared["policies"]]

    def reject(request: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        """A person rejects every approval at once."""
        decided = {"status": "REJECTED", "decidedAt": "2026-01-01T00:00:00Z", "decisionReason": None}
        return 201, {"id": request["clientRequestId"], "expiresAt": "2030-01-01T00:00:00Z", **decided}, {}

    service.script("/firewall-approvals", reject)
    client = make(guard=tacho.GuardDefaults(loop=None, configuration_wait=120)).tacho
    codes = {"BLOCK": "policy", "REQUIRE_APPROVAL": "approval_rejected", "ALLOW": None, "WARN": None}
    with client.run(agent_id=shared["agent"]["id"], agent_name=shared["agent"]["name"]):
        for call in calls:
            code = None
            try:
                client.call_guarded(call["toolName"], call["input"], lambda: "ran")
            except tacho.ToolBlockedError as error:
                code = error.code
            assert code == codes[call["action"]], call
    client.flush(120)
    decided = {
        payload["inputHash"]: (payload["action"], payload["policyIds"])
        for payload in (event["payload"] for event in service.events if event["eventType"] == "POLICY_DECISION")
        # Skip decisions without a policy: a condition that failed but does not count is recorded too.
        if payload["policyIds"]
    }
    expected = {
        input_hash(call["toolName"], call["input"]): (call["action"], call["policyIds"]) for call in calls if call["policyIds"]
    }
    assert decided == expected
