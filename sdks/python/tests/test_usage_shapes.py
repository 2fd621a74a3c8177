"""Usage in whole answers of providers. The tests of the server and the TypeScript SDK read the same answers."""

import json
import random
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from tacho_sdk.recording.usage import RunUsage
from tacho_sdk.recording.usage_shapes import TOKENS_MAX, call_usage

VECTORS = Path(__file__).parents[3] / "packages" / "contract" / "vectors" / "usage-shapes.json"


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text("utf-8")), ids=lambda vector: vector["shape"])
def test_each_token_is_counted_once(vector: dict[str, Any]) -> None:
    steps = vector["usageAt"].split(".") if vector["usageAt"] else []
    assert call_usage(reduce(lambda value, step: value[step], steps, vector["answer"])) == vector["counts"]


@pytest.mark.parametrize("usage", [None, [], "x", {}, {"promptTokens": None}, {"promptTokens": "7 "}, {"promptTokens": True}])
def test_usage_that_says_nothing_is_unknown(usage: object) -> None:
    assert call_usage(usage) is None


def test_texts_count_and_an_answer_that_cannot_be_read_is_unknown() -> None:
    assert call_usage({"promptTokens": "120", "completionTokens": "30"}) == {"promptTokens": 120, "completionTokens": 30}
    for unread in ("30 ", -1, {"x": 1}, [5], float("nan"), None):
        usage = {"input_tokens": 120, "output_tokens": unread}
        assert call_usage(usage) == {"promptTokens": 120, "completionTokens": None}, unread
    assert call_usage({"input_tokens": {"x": 120}, "output_tokens": 3}) == {"completionTokens": 3}
    assert call_usage({"promptTokens": 120}) == {"promptTokens": 120}


def test_a_run_counts_the_tokens_that_a_call_reports_by_any_names() -> None:
    rng = random.Random(3)
    names = ["promptTokens", "completionTokens", "totalTokens", "prompt_tokens", "cachedTokens", "audioInputTokens", "x"]
    values = [0, 1, 30, 120, TOKENS_MAX, TOKENS_MAX + 1, -1, True, "7", 2.0, None]
    for _ in range(5_000):
        usage = {name: rng.choice(values) for name in rng.sample(names, rng.randrange(5))}
        counts = call_usage(usage) or {}
        total = counts.get("totalTokens")
        run = RunUsage(since=0)
        run.count("LLM_CALL", {"usage": usage})
        parts = (counts.get("promptTokens") or 0) + (counts.get("completionTokens") or 0)
        assert run.total_tokens == (parts if total is None else total), usage
