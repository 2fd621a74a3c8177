"""Masks: the test vectors of both SDKs, and a comparison of the quick search with the plain one."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tacho_sdk.recording.credential_words import mask_credentials, mask_pairs, may_hold_credentials
from tacho_sdk.recording.credentials import CREDENTIAL_FORMS, CREDENTIAL_MARK, kind_of_name, mask_assignments
from tacho_sdk.recording.mask import Mask, Masking
from tacho_sdk.recording.plain import dump

VECTORS = Path(__file__).parents[3] / "packages" / "sdk-conformance" / "vectors" / "mask.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_shared_case_is_masked_alike(case: dict[str, Any]) -> None:
    mask = Mask(Masking())
    given = case["input"]
    actual = mask.value(given) if mask.touches(dump(given)) else given
    assert actual == case["output"]
    assert mask.value(actual) == actual


NAMES = """
password passw Pass PWD secret api_key api-key apiKey X-API-Key key Authorization auth author --auth --jwt jwt otp cvv cvc2
Cookie set-cookie token tokens total_tokens bearer signature x-amz-signature user name value header content data role
compass spin
encryption_key signingKey private.key credential credentials_file --password --user -u curl https Basic Bearer tokenizer
keyboard """.split()
SIGNS = ': = := => ; , & | > < </ / // :// @ [ ] { } [[ ]] ( ) - -- . \' " ` \\" \\\\" \\n'.split()
GLUE = [*SIGNS, " ", "  ", "\u00a0", "\n", "\t", "\u0130"]
VALUES = """
hunter2 12 1,024 12ab true null abcdefghijkl1234= sk-abcdefghijklmnopqrst ghp_abcdefghijklmnopqrst AKIAIOSFODNN7EXAMPLE x
eyJhbGciOiJIUzI1NiJ9.eyJz tacho_k3_abcdefghijklmnopqrst xoxb-1234567890ab ya29.abcdefghijklmnopqrst -----BEGIN api access pass
""".split()


def plainly_masked(text: str) -> str:
    """The plain search: applies every rule to the whole text."""
    for form in CREDENTIAL_FORMS:
        text = form.sub(lambda match: (match.group(1) if match.re.groups else "") + CREDENTIAL_MARK, text)
    return mask_assignments(mask_pairs(text, kind_of_name), kind_of_name)


def test_the_quick_search_masks_what_the_plain_rules_mask() -> None:
    source = random.Random(7)
    for _ in range(20_000):
        pieces = source.choices([NAMES, GLUE, VALUES], [3, 5, 2], k=source.randint(1, 14))
        text = "".join(source.choice(piece) for piece in pieces)
        expected = plainly_masked(text)
        assert mask_credentials(text, kind_of_name) == expected, text
        assert expected == text or may_hold_credentials(dump({"text": text})), text
        assert expected == text or may_hold_credentials(text), text


REPEATED = [
    "token ",
    "tokens",
    '["token",',
    '{"name":"token",',
    "api key ",
    "<password>",
    "://",
    '\\"key\\",',
    "auth",
    "password:",
    # Words in a long line without spaces, such as base64.
    f"password={'x' * 2_000}PWD{'x' * 2_000}Jwt{'x' * 2_000}\n",
]


@pytest.mark.parametrize("piece", REPEATED)
def test_masking_takes_linear_time_whatever_the_text_repeats(piece: str) -> None:
    mask = Mask(Masking())

    def seconds(chars: int) -> float:
        start = time.process_time()
        mask.value({"text": piece * (chars // len(piece))})
        return time.process_time() - start

    # Eight times the text takes about eight times as long; sixty-four times would be quadratic.
    assert min(seconds(80_000) for _ in range(3)) < 30 * max(min(seconds(10_000) for _ in range(3)), 0.001)


def test_the_search_skips_nothing_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(11)
    mask = Mask(Masking())

    def text() -> str:
        pieces = source.choices([NAMES, GLUE, VALUES], [3, 5, 2], k=source.randint(1, 9))
        return "".join(source.choice(piece) for piece in pieces)

    def value(levels: int) -> Any:
        kind = source.random()
        if levels == 0 or kind < 0.5:
            return text() if kind < 0.3 else json.dumps({source.choice(NAMES): text()}) if kind < 0.4 else source.choice(NAMES)
        if kind < 0.7:
            return [value(levels - 1) for _ in range(source.randint(0, 3))]
        return {source.choice(NAMES) if kind < 0.9 else text(): value(levels - 1) for _ in range(source.randint(0, 3))}

    given = [{"value": value(3)} for _ in range(5_000)]
    found = [mask.value(one) if mask.touches(dump(one)) else one for one in given]
    # The slow, plain way: every rule on every text.
    monkeypatch.setattr("tacho_sdk.recording.credential_words.may_hold_credentials", lambda _: True)
    monkeypatch.setattr(mask, "touches", lambda _: True)
    for one, masked in zip(given, found, strict=True):
        assert masked == mask.value(one), one


def test_a_mask_that_has_seen_short_texts_before_masks_like_a_new_one() -> None:
    options = Masking(email=True, phone=True, card_number=True, iban=True, keys=["order"])
    used = Mask(options)
    for _ in range(2):
        for case in CASES:
            assert used.value(case["input"]) == Mask(options).value(case["input"])
    assert 0 < len(used._unmasked) <= 2_000
    assert not any(Mask(options).text(text) != text for text in used._unmasked)
