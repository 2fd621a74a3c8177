"""Ids are unique: also in a child that was forked without the interpreter, and on a machine restored from a snapshot."""

from __future__ import annotations

import os
import uuid
from copy import copy
from typing import Any

import pytest

from tacho_sdk.recording.ids import Ids


def test_ids_increase_and_are_version_7_of_their_time() -> None:
    now = [1_700_000_000_000]
    ids = Ids(lambda: now[0])
    made: list[str] = []
    for step in (0, 0, 1, 0, 300, 20_000):
        now[0] += step
        made += [ids.uuid() for _ in range(100)]
        assert int(made[-1].replace("-", "")[:12], 16) == now[0]
    # More ids than the counter of one millisecond can number.
    made += [ids.uuid() for _ in range(6_000)]
    assert made == sorted(set(made))
    for one in map(uuid.UUID, made):
        assert (one.version, one.variant) == (7, uuid.RFC_4122)
    assert len({one[19:] for one in made}) == len(made)


@pytest.mark.parametrize("passed", [0, 1_000, -1_000])
def test_a_copy_of_the_process_repeats_no_random_digits(monkeypatch: pytest.MonkeyPatch, passed: int) -> None:
    """`passed`: milliseconds until the copy continues. A restored snapshot continues later, a fork at once."""
    now = [1_700_000_000_000]
    ids = Ids(lambda: now[0])
    ids.uuid()
    copied: Any = copy(ids)
    tails = {ids.uuid()[19:] for _ in range(5)}
    now[0] += passed
    if passed == 0:
        monkeypatch.setattr(os, "getpid", lambda: -1)
    assert tails.isdisjoint(copied.uuid()[19:] for _ in range(5))
