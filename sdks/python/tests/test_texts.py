"""Each long text is encoded and searched once. The record is the same as if the whole payload were searched."""

from __future__ import annotations

import json
import random
import re
import sys
from typing import Any

import pytest

from tacho_sdk.delivery.diagnostics import Diagnostics
from tacho_sdk.recording import credential_words, plain, scanner, texts
from tacho_sdk.recording.mask import Mask, Masking
from tacho_sdk.recording.payload import Payloads
from tacho_sdk.recording.plain import dump
from test_mask_vectors import CASES, GLUE, NAMES, VALUES

MASKINGS = [
    Masking(),
    Masking(email=True, card_number=True, phone=True, iban=True),
    Masking(keys=["order"]),
    Masking(credentials=False, email=True),
    Masking(custom=lambda text: text.replace("a", "b")),
]


def payloads_of(masking: Masking) -> Payloads:
    return Payloads("full", frozenset(), Mask(masking), Diagnostics(lambda _: None))


def text_of(rng: random.Random) -> str:
    pieces = [rng.choice([*NAMES, *GLUE, *VALUES, "prose ", "ä", "\x01", "\ud83d"]) for _ in range(rng.randrange(1, 9))]
    return "".join(pieces) * (40 if rng.random() < 0.1 else 1)


def value_of(rng: random.Random, levels: int = 3) -> Any:
    kind = rng.random()
    if levels == 0 or kind < 0.5:
        return rng.choice([text_of(rng), text_of(rng), 12, None])
    if kind < 0.7:
        return [value_of(rng, levels - 1) for _ in range(rng.randrange(4))]
    names = [rng.choice([*NAMES, "content", text_of(rng)]) for _ in range(rng.randrange(4))]
    return {name: value_of(rng, levels - 1) for name in names}


@pytest.mark.parametrize("masking", MASKINGS)
def test_a_payload_is_written_as_if_it_were_looked_at_as_a_whole(masking: Masking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "_LONG_CHARS", 6)
    payloads, rng = payloads_of(masking), random.Random(7)
    seen: list[Any] = [case["input"] for case in CASES]
    for _ in range(1_500):
        payload = {"input": value_of(rng), "more": rng.choice(seen), 1: text_of(rng), "1": text_of(rng)}
        seen.append(payload["input"])
        captured = payloads.capture(payload)  # type: ignore[arg-type]
        assert payloads.written(captured) == payloads._masked(captured)[1]


def test_each_text_is_encoded_as_the_standard_library_does(monkeypatch: pytest.MonkeyPatch) -> None:
    every = "".join(chr(code) for code in range(0x3000) if not 0xD800 <= code < 0xE000) + "\U0001f600\uffff"
    for text in (every, every * 2, 'a"b\\c\nd' * 1_000, "\x7f\u2028" * 2_000):
        for module in {vars(texts)["faster"], None}:
            monkeypatch.setattr(texts, "faster", module)
            assert texts.quoted(text) == json.dumps(text, ensure_ascii=False)


def test_a_text_that_comes_again_is_not_searched_again_and_the_memory_of_texts_is_bounded() -> None:
    searched: list[str] = []

    class Counting(Mask):
        def touches(self, text: str) -> bool:
            searched.append(text)
            return super().touches(text)

    payloads = Payloads("full", frozenset(), Counting(Masking()), Diagnostics(lambda _: None))
    messages = [{"role": "user", "content": f"message {number} " * 100} for number in range(50)]
    for end in range(1, 51):
        payloads.write({"messages": messages[:end]})
    assert sum(len(text) for text in searched) < 50 * 50 * 50 * 2 + 50 * 1_300
    for number in range(100):
        payloads.write({"output": f"{number} " * 20_000})
    assert sum(map(len, payloads._texts._known)) <= 1_048_576
    # This client has another mask, so it must not use the texts that the first one remembers.
    assert "[masked:email]" in payloads_of(Masking(email=True)).write({"output": "to ada@example.org " * 30})
    assert "ada@example.org" in payloads.write({"output": "to ada@example.org " * 30})


def test_a_text_of_a_host_that_reads_like_a_mark_is_recorded_as_it_is() -> None:
    payload = {"a": plain.MARK, "b": "long " * 100, "c": [plain.MARK, "other " * 100]}
    assert json.loads(payloads_of(Masking()).write(payload)) == payload


def test_the_quicker_first_look_finds_all_that_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, fast = random.Random(11), scanner.Scanner()
    monkeypatch.setattr(credential_words, "SCANNED_CHARS", sys.maxsize)
    # Compile the patterns with the flags that Hyperscan uses.
    patterns = [re.compile(pattern, re.ASCII | re.DOTALL) for pattern in scanner._PATTERNS]
    inputs = [dump(case["input"]) for case in CASES]
    found = 0
    for number in range(20_000):
        text = inputs[number] if number < len(inputs) else dump(value_of(rng))
        text = text.encode("ascii", "replace").decode()
        if credential_words.may_hold_credentials(text):
            found += 1
            assert any(pattern.search(text) for pattern in patterns), text
            assert fast.may_match(text), text
    assert found > 1_000
    prose = "A sentence about a password, a token and the key to the answer. " * 50
    assert not any(pattern.search(prose) for pattern in patterns)
    assert fast.may_match(prose) == fast._is_missing
