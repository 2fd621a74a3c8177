"""The quick ways to copy and shorten a payload give the same result as the slow, plain ones."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tacho_sdk.delivery.diagnostics import Diagnostics
from tacho_sdk.recording import payload, plain, shorten, texts
from tacho_sdk.recording.mask import Mask, Masking
from tacho_sdk.recording.payload import Payloads
from tacho_sdk.recording.plain import CUT_MARK, dump, to_plain
from tacho_sdk.recording.texts import quoted

CHARS = ["a", "b ", "\n", '"', "\\", "ä", "€", "\U0001f600", "\x01", "data:", "word " * 20]


class Fields(dict[str, object]):
    """A mapping of the host, which the SDK reads in the slow way."""


class Text(str):
    pass


def text_of(rng: random.Random) -> str:
    some = rng.sample(CHARS, rng.randrange(1, 4))
    return "".join(rng.choice(some) for _ in range(rng.randrange(1, rng.choice([4, 90]))))


def value_of(rng: random.Random, levels: int = 3) -> Any:
    kind = rng.random()
    if levels == 0 or kind < 0.4:
        return rng.choice([text_of(rng), text_of(rng), 12, None, True, 1.5, 10**300, float("inf")])
    if kind < 0.7:
        return [value_of(rng, levels - 1) for _ in range(rng.randrange(5))]
    return {text_of(rng): value_of(rng, levels - 1) for _ in range(rng.randrange(5))}


def slow(value: Any) -> Any:
    """The same value in classes of the host, which the SDK reads in the slow way."""
    if isinstance(value, dict):
        return Fields({Text(key): slow(item) for key, item in value.items()})
    if isinstance(value, list):
        return list(map(slow, value))
    return Text(value) if isinstance(value, str) else value


def test_the_longest_beginning_and_end_that_fit_are_kept() -> None:
    rng = random.Random(5)
    for _ in range(1_000):
        text, most = text_of(rng), rng.randrange(1, 200)
        for is_tail in (False, True):
            fitting = [
                count
                for count in range(len(text) + 1)
                if len(quoted(text[len(text) - count :] if is_tail else text[:count]).encode()) - 2 <= most
            ]
            assert shorten._chars_within(text, most, is_tail) == fitting[-1], (text, most, is_tail)


def test_a_value_is_copied_as_if_its_classes_were_those_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(9)
    for most_chars in (10**6, 60):
        monkeypatch.setattr(plain, "_MASKED_CHARS", most_chars)
        monkeypatch.setattr(plain, "_MASKED_FULLY", 2 * most_chars)
        for _ in range(700):
            value = {"input": value_of(rng), "more": value_of(rng)}
            quick, expected = to_plain(value, 200), to_plain(slow(value), 200)
            assert (quick.value, quick.is_cut, quick.bytes) == (expected.value, expected.is_cut, expected.bytes)
            assert dump(quick.value) == json.dumps(quick.value, ensure_ascii=False, separators=(",", ":"))


def test_a_payload_is_shortened_to_its_bound_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    payloads, rng = Payloads("full", frozenset(), Mask(Masking()), Diagnostics(lambda _: None)), random.Random(2)
    monkeypatch.setattr(plain, "_MASKED_CHARS", 4_000)
    for _ in range(100):
        captured = payloads.capture({"input": value_of(rng), "long": [text_of(rng) * rng.randrange(90) for _ in range(9)]})
        known = payloads.written(captured, 1_500)
        # This client remembers the texts now. Another client does not.
        other = Payloads("full", frozenset(), Mask(Masking()), Diagnostics(lambda _: None))
        assert known == payloads.written(captured, 1_500) == other.written(captured, 1_500)
        assert len(known.encode()) <= 1_500
        json.loads(known)


def test_cuts_are_counted_whatever_their_number() -> None:
    rng = random.Random(4)
    for marks in (0, 3, payload._FEW_MARKS + 3):
        text = "".join(rng.choice([f"{CUT_MARK} [cut: 7", CUT_MARK, " [cut: "]) for _ in range(3 * marks))
        assert payload._cuts_in(text) == text.count(f"{CUT_MARK} [cut: ")


def test_the_oldest_texts_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    class Counting(Mask):
        def touches(self, text: str) -> bool:
            searched.append(text)
            return super().touches(text)

    monkeypatch.setattr(texts, "_KNOWN_CHARS", 50_000)
    payloads = Payloads("full", frozenset(), Counting(Masking()), Diagnostics(lambda _: None))
    # Each payload has fewer characters than are remembered. Two of its messages are new.
    messages = [f"message {number} " * 100 for number in range(200)]
    for at in range(0, 160, 2):
        payloads.write({"messages": messages[at : at + 30]})
    assert len([text for text in searched if "message " in text[:10]]) == 30 + 79 * 2
