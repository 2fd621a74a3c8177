"""Inputs with masked members: the shown input can be checked against the approved hash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service
from tacho_sdk.policy.input_hash import input_hash
from tacho_sdk.policy.sealed_input import seal_key, sealed_input

VECTORS = Path(__file__).parents[3] / "packages" / "policy" / "vectors" / "sealed-inputs.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_every_shared_case_is_sealed_alike(case: dict[str, Any]) -> None:
    if "hash" not in case:
        pytest.skip("the service refuses these seals; no client makes them")
    seals, digest = sealed_input(seal_key(case["apiKey"]), case["toolName"], case["input"], case["shown"])
    assert (seals, digest) == (case["inputSeals"], case["hash"])


@pytest.mark.parametrize("capture", ["full", "metadata-only"])
def test_the_record_has_what_the_service_needs_to_check_the_hash(
    make: Callable[..., Client], service: Service, capture: str
) -> None:
    service.deploy("true", "REQUIRE_APPROVAL")
    approval = {"id": "a", "status": "PENDING", "decidedAt": None, "expiresAt": "2099-01-01T00:00:00Z"}
    service.script("/firewall-approvals", lambda _: (201, approval, {}))
    client = make(capture=capture, guard=tacho.GuardDefaults(approval_wait=0, configuration_wait=120))
    given = {"amount": 5, "password": "hunter2"}
    with pytest.raises(tacho.ToolBlockedError):
        client.tacho.call_guarded("refund", given, lambda: 1, tool_call_id="c1")
    client.tacho.flush(120)
    (asked,) = service.of("/firewall-approvals")
    (decided,) = [event["payload"] for event in service.events if event["eventType"] == "POLICY_DECISION"]
    assert (asked["toolCallId"], asked["policyVersion"], decided["toolCallId"]) == ("c1", "1", "c1")
    assert asked["policyVersions"] == decided["policyVersions"] == {"p": "1"} and decided["inputHash"] == asked["inputHash"]
    if capture == "full":
        seals, digest = sealed_input(seal_key("key"), "refund", given, decided["input"])
        assert decided["input"]["amount"] == 5 and "hunter2" not in json.dumps(decided)
        assert (decided["inputSeals"], decided["inputHash"], [*seals]) == (seals, digest, ["/password"])
        assert "recordsInput" not in asked
    else:
        assert decided["inputHash"] == input_hash("refund", given) and "inputSeals" not in decided
        assert asked["recordsInput"] is False
