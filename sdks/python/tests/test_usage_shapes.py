"""The whole answers that also test the server and the TypeScript SDK."""

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from tacho.recording.usage_shapes import call_usage

VECTORS = Path(__file__).parents[3] / "packages" / "contract" / "vectors" / "usage-shapes.json"


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text("utf-8")), ids=lambda vector: vector["shape"])
def test_each_token_is_counted_once(vector: dict[str, Any]) -> None:
    steps = vector["usageAt"].split(".") if vector["usageAt"] else []
    assert call_usage(reduce(lambda value, step: value[step], steps, vector["answer"])) == vector["counts"]


@pytest.mark.parametrize("usage", [None, [], "x", {}, {"promptTokens": None}, {"promptTokens": "7"}, {"promptTokens": True}])
def test_usage_that_says_nothing_is_unknown(usage: object) -> None:
    assert call_usage(usage) is None
