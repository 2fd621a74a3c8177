"""Decides calls by policies on the past of a run: the same as past.ts. Reads the case as JSON, prints its costs as JSON."""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

from tacho_sdk import Policy
from tacho_sdk.policy.decide import decide
from tacho_sdk.policy.facts import Facts
from tacho_sdk.policy.history.run_history import HistoryCall, RunHistory
from tacho_sdk.policy.history.tool_labels import preparations_for

NOW = 1_780_000_000_000
LONG_CHARS = 262_144
JUDGES = 1
OUTPUTS = 12


class ByEngine:
    def __init__(self, policies: list[Policy]) -> None:
        self._policies = policies
        self._preparations = preparations_for(policies)
        self.history = RunHistory()

    def said(self, words: str) -> None:
        self.history.add_words(words)

    def ended(self, call: dict[str, Any]) -> None:
        facts = (call["tool"], call["input"], call["ok"], call["decision"], call["does"], call["labels"], call["output"])
        self.history.ended(HistoryCall(*facts))
        # Outside a decision, as in the SDK.
        for prepare in self._preparations:
            prepare(self.history)

    def given(self, call: dict[str, Any]) -> Facts:
        return Facts(call["tool"], call["input"], NOW, tool_labels=call["labels"], run_history=self.history)

    def decide(self, facts: Facts) -> int:
        decision = decide(self._policies, facts)
        assert not decision.failures, decision.failures
        return len(decision.matched)


class ByHand:
    """The same as by-hand.ts."""

    def __init__(self) -> None:
        self._labels: set[str] = set()
        self._origins: dict[str, set[str]] = {}
        self._paid: set[tuple[Any, Any]] = set()
        self._verified: set[Any] = set()
        self._failed = 0
        self._refused = False

    def said(self, words: str) -> None:
        self._read(words, ["user"])

    def ended(self, call: dict[str, Any]) -> None:
        given = call["input"]
        self._failed += not call["ok"]
        self._refused = self._refused or (call["decision"] == "BLOCK" and "external" in call["does"])
        if call["ok"] and call["tool"] == "pay":
            self._paid.add((given["account"], given["amount"]))
        if call["ok"] and call["tool"] == "verify":
            self._verified.add(given["customer"])
        self._labels.update(call["labels"])
        self._read(call["output"], call["labels"])

    def given(self, call: dict[str, Any]) -> dict[str, Any]:
        return call

    def decide(self, call: dict[str, Any]) -> int:
        tool, given, labels = call["tool"], call["input"], call["labels"]
        origins, none = self._origins, frozenset[str]()
        is_untrusted = "untrusted" in self._labels
        matches = int("external" in labels and is_untrusted and "private" in self._labels)
        if tool == "pay":
            known = origins.get(given["account"], none)
            matches += "user" not in known and "ours" not in known
            reference = origins.get(given["reference"], none)
            matches += "untrusted" in reference and "user" not in reference
            matches += (given["account"], given["amount"]) in self._paid
        if tool == "send_email":
            matches += any(map(self._is_foreign, given["recipients"]))
            matches += "untrusted" in origins.get(given["subject"], none)
        matches += tool == "refund" and given["customer"] not in self._verified
        if "destructive" in labels and is_untrusted:
            matches += not any("user" in origins.get(word, none) for word in ("delete", "remove"))
        return matches + (self._failed > 40) + self._refused

    def _is_foreign(self, person: str) -> bool:
        known = self._origins.get(person, frozenset[str]())
        return "user" not in known and "ours" not in known and not person.endswith("@example.com")

    def _read(self, text: str, labels: list[str]) -> None:
        for word in text.split(" "):
            self._origins.setdefault(word, set()).update(labels)


def main(path: str, by: str, seconds: float) -> None:
    case: dict[str, Any] = json.loads(Path(path).read_text())
    policies = [
        Policy(
            policy_id=one["policyId"],
            name=one["name"],
            version=one["version"],
            condition=one["condition"],
            severity=one["severity"],
            action=one["action"],
        )
        for one in case["policies"]
    ]

    def make() -> Any:
        return ByEngine(policies) if by == "engine" else ByHand()

    took = sorted(decide_all(case, make, seconds))
    long_text = "".join(call["output"] for call in case["calls"][:30])[:LONG_CHARS]
    outputs = [time_of_output(case, make(), call["output"]) for call in case["calls"][:OUTPUTS]]
    longs = [time_of_output(case, make(), f"{turn} {long_text}") for turn in range(case["turns"])]
    longest = [longest_turn(case, make(), f"{turn} {long_text}") for turn in range(case["turns"])]
    costs = {
        "p10Us": took[len(took) // 10] / 1e3,
        "p50Us": took[len(took) // 2] / 1e3,
        "p99Us": took[len(took) * 99 // 100] / 1e3,
        "memoryKb": memory_of(case, make),
        "outputUs": sorted(outputs)[OUTPUTS // 2] / 1e3,
        "longOutputUs": sorted(longs)[len(longs) // 2] / 1e3,
        "longestTurnUs": sorted(longest)[len(longest) // 2] / 1e3,
    }
    print(json.dumps(costs))


def decide_all(case: dict[str, Any], make: Any, seconds: float) -> list[int]:
    """Each decided call then ends, as in an agent: its output is short, so that the run keeps its size."""
    took: list[int] = []
    end = time.perf_counter() + seconds
    matches = 0
    while True:
        judge = filled(case, make)
        judge.decide(judge.given(case["next"][0]))
        for number, call in enumerate(case["next"]):
            given = judge.given(call)
            begun = time.perf_counter_ns()
            matches += judge.decide(given)
            took.append(time.perf_counter_ns() - begun)
            done = {"ok": True, "decision": "ALLOW", "does": call["labels"], "labels": ["ours"], "output": f"done {number}"}
            judge.ended({**call, **done})
        if time.perf_counter() >= end:
            break
    assert matches > 0, "no policy ever matched"
    return took


def filled(case: dict[str, Any], make: Any) -> Any:
    judge = make()
    judge.said(case["said"])
    for call in case["calls"]:
        judge.ended(call)
    return judge


def time_of_output(case: dict[str, Any], judge: Any, output: str) -> int:
    call = {**case["calls"][0], "output": output}
    begun = time.perf_counter_ns()
    judge.ended(call)
    return time.perf_counter_ns() - begun


def longest_turn(case: dict[str, Any], judge: Any, output: str) -> int:
    """On an event loop, the history may read an output over several turns. `ByHand` reads it in one turn."""
    if isinstance(judge, ByHand):
        return time_of_output(case, judge, output)
    judge.history = RunHistory(lambda _: True)
    turns = [time_of_output(case, judge, output)]
    is_left = True
    while is_left:
        begun = time.perf_counter_ns()
        is_left = judge.history.read_part()
        turns.append(time.perf_counter_ns() - begun)
    return max(turns)


def memory_of(case: dict[str, Any], make: Any) -> float:
    gc.collect()
    tracemalloc.start()
    judges = [filled(case, make) for _ in range(JUDGES)]
    gc.collect()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used / len(judges) / 1e3


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
