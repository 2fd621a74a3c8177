"""Conditions give the same results, failures and faults as in the TypeScript SDK and the service."""

from __future__ import annotations

import enum
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import tacho_sdk as tacho
from tacho_sdk.policy import limits
from tacho_sdk.policy.compile import NotACondition, compile_condition, evaluate
from tacho_sdk.policy.decide import decide
from tacho_sdk.policy.facts import Facts
from tacho_sdk.policy.input_hash import input_hash
from tacho_sdk.policy.message import message_of
from tacho_sdk.policy.plain_json import NotPlainJson

POLICY = Path(__file__).parents[3] / "packages" / "policy"


def vectors(name: str) -> list[dict[str, Any]]:
    lines = (POLICY / "vectors" / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line, parse_int=number) for line in lines if line]


def number(text: str) -> float:
    """Reads a number as JavaScript does."""
    return int(text) if abs(int(text)) <= 2**53 else float(text)


def facts_of(vector: dict[str, Any]) -> Facts:
    if "repeat" in vector:
        count = vector["repeat"]
        return Facts("refund", {"list": [0] * count, "text": "a" * count}, now=0)
    given = vector.get("facts") or {"tool": {"name": "refund", "input": {}}, "now": 0}
    run = given.get("run", {})
    return Facts(
        given["tool"]["name"],
        given["tool"].get("input"),
        now=given["now"],
        agent_id=given.get("agent", {}).get("id"),
        agent_name=given.get("agent", {}).get("name"),
        run_id=run.get("id"),
        run_cost=run.get("cost"),
        run_total_tokens=run.get("totalTokens"),
        run_tool_calls=run.get("toolCalls"),
        session_id=given.get("session", {}).get("id"),
        risk_signals=given.get("risk", {}).get("signals"),
        tool_annotations=given["tool"].get("annotations"),
        tool_server=given["tool"].get("server"),
    )


# The library behind the service describes a wrong pattern in its own words.
NOT_RE2 = re.compile(r"not an RE2 pattern: [\s\S]*")


def result_of(vector: dict[str, Any]) -> dict[str, Any]:
    compiled = compile_condition(vector["source"])
    if isinstance(compiled, NotACondition):
        return {"refused": [show(fault.message, vars(fault.position)) for fault in compiled.faults]}
    result = evaluate(compiled, facts_of(vector))
    return {"failure": result.message} if result.matched is None else {"matched": result.matched}


def show(message: str, position: dict[str, Any]) -> str:
    end = position.get("end_offset") or position.get("endOffset")
    place = f"{position['offset']}-{end} {position['line']}:{position['column']}"
    return f"{place} {NOT_RE2.sub('not an RE2 pattern', message)}"


def test_every_shared_condition_has_the_same_result() -> None:
    given = vectors("conditions.jsonl")
    assert len(given) >= 1_000
    wrong = []
    for vector in given:
        expected: dict[str, Any] = {name: vector[name] for name in ("matched", "failure") if name in vector}
        if "refused" in vector:
            expected = {"refused": [show(fault["message"], fault["position"]) for fault in vector["refused"]]}
        actual = result_of(vector)
        if actual != expected:
            wrong.append(f"{vector['source'][:200]}\n  expected {expected}\n  actual   {actual}")
    assert not wrong, f"{len(wrong)} of {len(given)}:\n" + "\n".join(wrong[:20])


def test_every_shared_input_has_the_same_hash() -> None:
    for vector in vectors("input-hashes.jsonl"):
        assert input_hash(vector["toolName"], vector["input"]) == vector["hash"], vector["input"]


def test_every_shared_description_has_the_same_message() -> None:
    for vector in json.loads((POLICY / "vectors" / "messages.json").read_text(encoding="utf-8")):
        assert message_of(vector["description"]) == vector["message"], vector["description"]
    assert message_of("Message: " + "😀" * 501) == "😀" * 499 + "…"
    assert message_of(7) is None


def test_the_limits_are_those_of_the_policy_package() -> None:
    text = (POLICY / "src" / "limits.ts").read_text()
    theirs = {name: int(value.replace("_", "")) for name, value in re.findall(r"^  (\w+): ([\d_]+),", text, re.M)}
    for name, value in theirs.items():
        assert getattr(limits, re.sub("([A-Z])", r"_\1", name).upper()) == value, name


@pytest.mark.parametrize("given", [{"a": float("nan")}, {"a": {1, 2}}, {1: 2}, {"a": 2**53 + 1}, {"a": "\ud800"}, {"a": b"x"}])
def test_what_is_no_plain_json_has_no_hash(given: Any) -> None:
    with pytest.raises(NotPlainJson):
        input_hash("t", given)


def test_a_cycle_or_a_deep_input_has_no_hash_and_no_crash() -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    with pytest.raises(NotPlainJson, match="200 levels"):
        input_hash("t", cycle)
    assert decide([tacho.Policy("p", "p", "has(tool.input.self)", "BLOCK")], Facts("t", cycle, now=0)).action == "BLOCK"


def test_what_cannot_be_evaluated_exactly_is_refused_and_fails_closed() -> None:
    script = tacho.Policy("p", "p", r'tool.name.matches("\\p{Greek}")', "BLOCK")
    decision = decide([script], Facts("t", {}, now=0))
    assert decision.action == "BLOCK" and decision.matched[0].failed
    assert "the Python SDK knows general categories" in decision.failures[0].message


@pytest.mark.parametrize("severity", ["LOW", "MEDIUM", "HIGH", "CRITICAL"])
@pytest.mark.parametrize("value", [2**53 + 1, -(2**63) - 1, float("nan"), b"x", object()])
def test_what_cannot_be_read_fails_closed_at_every_severity_and_its_neighbours_stay_readable(value: Any, severity: str) -> None:
    def action(condition: str) -> str:
        given = Facts("pay", {"amount": 1, "account": value}, now=0)
        return decide([tacho.Policy("p", "p", condition, "BLOCK", severity)], given).action

    for reads in (
        "tool.input.account == 1.0",
        "tool.input.account != 1.0",
        "tool.input == {'amount': 1.0, 'account': 1.0}",
        "tool.input.amount > 100.0 || tool.input.account == 1.0",
        '"x" in tool.input.account',
        "[1.0, 2.0].exists(n, tool.input.account == n)",
        "[1.0, 2.0].all(n, tool.input.missing == n || tool.input.account == n)",
        "[tool.input.account].size() == 2",
        "type(tool.input.account) == string",
    ):
        assert action(reads) == "BLOCK", reads
    for does_not in ("tool.input.amount > 100.0", 'tool.name == "other"', "!has(tool.input.account)"):
        assert action(does_not) == "ALLOW", does_not


@pytest.mark.parametrize("severity", ["LOW", "MEDIUM", "HIGH", "CRITICAL"])
def test_padding_switches_no_policy_off(severity: str) -> None:
    def action(condition: str, given: Any) -> str:
        return decide([tacho.Policy("p", "p", condition, "BLOCK", severity)], Facts("t", given, now=0)).action

    many = {"list": [0] * limits.INPUT_VALUES}
    assert action("tool.input.amount > 1.0", many) == "BLOCK" and action('tool.name == "other"', many) == "ALLOW"
    exact = {"amount": 0, "list": [0] * (limits.INPUT_VALUES - 3)}
    assert action("tool.input.amount > 1.0", exact) == "ALLOW"
    # The condition exceeds its step limit.
    assert action("tool.input.list.all(a, tool.input.list.all(b, a == b))", exact) == "BLOCK"


class Deceiving(str):
    """A text whose comparisons do not match its content."""

    def __eq__(self, _: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "other"


class Name(str, enum.Enum):
    DELETE = "delete_all"


class Limit(enum.IntEnum):
    HIGH = 500


class Ratio(float):
    def __float__(self) -> float:
        return 0.0


@pytest.mark.parametrize("text", [Name.DELETE, Deceiving("delete_all")])
def test_values_of_subclasses_decide_and_hash_like_plain_ones(text: str) -> None:
    for condition in (
        'tool.name == "delete_all"',
        'tool.name in ["delete_all"]',
        'tool.input.name == "delete_all"',
        "tool.input.delete_all == 500.0",
        "tool.input.ratio == 0.5",
        'agent.id == "delete_all"',
        'session.id == "delete_all"',
        '"delete_all" in risk.signals',
        "run.toolCalls == 500",
        "run.cost == 0.5",
    ):
        policy = tacho.Policy("p", "p", condition, "BLOCK", "LOW")
        given = {"name": text, text: Limit.HIGH, "ratio": Ratio(0.5)}
        more: dict[str, Any] = {"agent_id": text, "session_id": text, "risk_signals": [text]}
        facts = Facts(text, given, now=0, run_tool_calls=Limit.HIGH, run_cost=Ratio(0.5), **more)
        assert decide([policy], facts).action == "BLOCK", condition
    plain = input_hash("delete_all", {"delete_all": 500, "a": "delete_all"})
    assert input_hash(text, {text: Limit.HIGH, "a": text}) == plain


def test_two_keys_with_the_same_text_are_no_plain_json() -> None:
    with pytest.raises(NotPlainJson, match="two keys"):
        input_hash("t", {"amount": 1, Deceiving("amount"): 2})


@pytest.mark.parametrize(
    ("severity", "action"), [("CRITICAL", "BLOCK"), ("HIGH", "BLOCK"), ("MEDIUM", "ALLOW"), ("LOW", "ALLOW"), ("?", "BLOCK")]
)
def test_a_failing_condition_counts_by_severity(severity: str, action: str) -> None:
    policy = tacho.Policy("p", "p", "tool.input.missing == 1", "BLOCK", severity)
    assert decide([policy], Facts("t", {}, now=0)).action == action


def test_the_strictest_match_wins_in_any_order() -> None:
    actions = ["ALLOW", "WARN", "REQUIRE_APPROVAL", "BLOCK", "NEW"]
    policies = [tacho.Policy(f"p{n}", "p", "true", action) for n, action in enumerate(actions)]
    for _ in range(20):
        random.shuffle(policies)
        decision = decide(policies, Facts("t", {}, now=0))
        assert [match.policy_id for match in decision.matched] == ["p3", "p4", "p2", "p1", "p0"]
        assert decision.action == "BLOCK"


@pytest.mark.parametrize(
    "name", ["pay", "send", "read", "", "constructor", "mcp__bank__pay", None, 7, "x" * 2_000, "pay" * 1_500_000]
)
def test_policies_that_are_decided_together_decide_as_each_of_them_alone(name: Any) -> None:
    """Includes policies that are skipped because their condition names another tool, and policies that change in between."""
    conditions = (
        'tool.name == "pay"',
        'tool.name == "pay" && tool.input.amount > 10.0 && run.toolCalls < 5',
        'tool.name in ["pay", "send"] && has(tool.input.to)',
        'tool.name in ["pay", "send"] && tool.input.none == 1',
        'tool.name in [] || tool.name == "send"',
        'tool.name != "pay" && tool.input.amount > 10.0',
        'tool.input.none == 1 && tool.name == "pay"',
        'tool.server == "bank" && tool.name == "pay"',
        'tool.name == "pay" && tool.server == "bank"',
        "tool.name == ",
        "tool.name in ['pay', 1]",
    )
    actions = ("ALLOW", "WARN", "REQUIRE_APPROVAL", "BLOCK", "UNKNOWN")
    policies = [
        tacho.Policy(f"p{number % 7}", "n", one, action=actions[number % 5], severity=("LOW", "HIGH")[number % 2])
        for number, one in enumerate(conditions)
    ]
    facts = Facts(name, {"amount": 20, "to": "a"}, 0, run_tool_calls=1)
    alone = [decide([policy], facts) for policy in policies]
    together = decide(policies, facts)
    strictness = {"ALLOW": 0, "WARN": 1, "REQUIRE_APPROVAL": 2, "BLOCK": 3}
    matched = [match for one in alone for match in one.matched]
    matched.sort(key=lambda match: (-strictness[match.effect], match.policy_id, match.version, match.name))
    failures = sorted((failure for one in alone for failure in one.failures), key=lambda one: (one.policy_id, one.version))
    assert (list(together.matched), list(together.failures)) == (matched, failures)
    for policy, one in zip(policies, alone, strict=True):
        compiled = compile_condition(policy.condition)
        if not isinstance(compiled, NotACondition):
            result = evaluate(compiled, facts)
            assert (result.matched is not None) == (one.failures == ()), policy
            assert result.matched is None or bool(one.matched) is result.matched, policy

    class Changing:
        policy_id, name, version, severity, action, on_error, condition = "p", "n", "1", "LOW", "BLOCK", None, "true"

    changing = Changing()
    assert decide([changing], facts).action == "BLOCK"
    changing.condition = "false"
    assert decide([changing], facts).action == "ALLOW"


@pytest.mark.parametrize("levels", [11, 12, 13, 29, 30, 31, 100, 180])
def test_nesting_compiles_below_its_limit_and_results_do_not_change(levels: int) -> None:
    value: Any = 1.0
    for _ in range(levels):
        value = {"a": value}
    facts = Facts("refund", value, now=0)
    field = f"tool.input{'.a' * levels}"
    near = f"tool.input{'.a' * min(levels, 13)}"
    nested = min(levels, 30)
    for source, result in [
        (f"{field} == 1.0", True),
        (f"has({field}) && {field} > 1.0", False),
        ("!(tool.name == 'refund' && " * nested + f"{field} == 1.0" + ")" * nested, nested % 2 == 0),
        (f"(has({near}) && " * min(nested, 40) + "true" + ")" * min(nested, 40), True),
    ]:
        condition = compile_condition(source)
        assert not isinstance(condition, NotACondition), condition
        evaluation = evaluate(condition, facts)
        assert (evaluation.matched, evaluation.message) == (result, ""), source


def test_no_pattern_takes_exponential_time() -> None:
    slow = compile_condition('tool.name.matches("(a*)*b|(a|aa)+$|(x+x+)+y")')
    assert not isinstance(slow, NotACondition)
    result = evaluate(slow, Facts("a" * 20_000 + "!", {}, now=0))
    assert result.matched is False or "steps" in result.message
