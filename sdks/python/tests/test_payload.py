"""Payloads are bounded, readable for any value of the host, and reduced to metadata if configured."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from typing import Any, cast

import pytest

from tacho_sdk.delivery.diagnostics import Diagnostics
from tacho_sdk.recording.exception import exception_details
from tacho_sdk.recording.mask import Mask, Masking
from tacho_sdk.recording.payload import Capture, Payloads
from tacho_sdk.recording.plain import to_plain

KIB256 = 262_144


def writer(capture: Capture = "full", keys: tuple[str, ...] = (), masking: Masking | None = None) -> Any:
    codes: list[str] = []
    diagnostics = Diagnostics(lambda said: codes.append(said.code))
    payloads = Payloads(capture, frozenset(keys), Mask(masking or Masking()), diagnostics)
    return payloads.write, codes


def written(payload: Any) -> Any:
    return json.loads(writer()[0](payload))


def test_a_payload_of_256_kib_is_unchanged_and_with_one_more_byte_shortened() -> None:
    write, codes = writer()
    exact = "x" * (KIB256 - len('{"text":""}'))
    assert write({"text": exact}) == f'{{"text":"{exact}"}}'
    assert codes == []
    over = json.loads(write({"text": exact + "x"}))
    assert over["tachoShortened"] == {"originalBytes": KIB256 + 1, "cutTexts": 1, "cutLists": 0}
    assert len(over["text"]) > 261_000 and "characters]x" in over["text"] and over["text"].endswith("xxx")
    assert codes == ["payload_shortened"]


@pytest.mark.parametrize(
    "payload",
    [
        {"text": "é" * 200_000},
        {"text": '\x01"' * 200_000},
        {"list": list(range(200_000))},
        {"a": "😀" * 90_000, "b": [{"c": "x" * 1_000}] * 500},
        {f"key{n}": {"n": n} for n in range(100_000)},
        {"numbers": [1] * 10_000_000, "last": 1},
        {"text": "x" * 50_000_000},
        {"deep": json.loads("[" * 190 + '"' + "x" * 400_000 + '"' + "]" * 190)},
    ],
)
def test_a_shortened_payload_is_valid_json_within_the_limit(payload: Any) -> None:
    text = writer()[0](payload)
    assert KIB256 / 8 < len(text.encode()) <= KIB256
    assert "tachoShortened" in json.loads(text)


def test_short_texts_are_kept_beside_long_ones_and_cut_lists_end_with_a_mark() -> None:
    short = {f"key{n}": f"value {n}" for n in range(100)}
    assert short.items() <= written({**short, "long": "y" * 1_000_000}).items()
    cut = written({"list": list(range(100_000))})["list"]
    assert cut[:3] == [0, 1, 2] and cut[-1] == f"[cut: {100_000 - len(cut) + 1} more]"


def test_many_short_texts_leave_the_room_that_they_do_not_need_to_a_long_one() -> None:
    text = writer()[0]({"tags": [""] * 7_000, "filler": "z" * KIB256})
    assert KIB256 * 0.99 < len(text.encode()) <= KIB256


def test_200_levels_are_kept_and_deeper_ones_cut() -> None:
    def nested(levels: int) -> Any:
        return {"end": 1} if levels == 1 else {"in": nested(levels - 1)}

    assert written(nested(200)) == nested(200)
    assert "[cut: nested too deeply]" in json.dumps(written(nested(201)))


class _Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class _Order:
    order: str
    amount: decimal.Decimal


class _Model:
    def model_dump(self) -> dict[str, Any]:
        return {"a": 1}


class _Plain:
    def __init__(self) -> None:
        self.visible = 1
        self._hidden = 2


class _Bad:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no")


def test_values_that_json_cannot_express_are_readable() -> None:
    cycle: dict[str, Any] = {"big": 2**60, "huge": 10**2_000, "nan": float("nan"), "inf": float("inf")}
    cycle["again"] = cycle
    at = datetime.datetime(2026, 11, 22, tzinfo=datetime.timezone.utc)
    assert written(
        {
            "cycle": cycle,
            "bytes": b"123",
            "set": {1},
            "tuple": (1, 2),
            "enum": _Color.RED,
            "order": _Order("7", decimal.Decimal("1.50")),
            "model": _Model(),
            "object": _Plain(),
            "at": at,
            "id": uuid.UUID(int=1),
            "function": print,
            "cause": KeyError("k"),
            "bad": _Bad(),
            7: 8,
        }
    ) == {
        "cycle": {"big": 2**60, "huge": "[integer: 6644 bits]", "nan": "[NaN]", "inf": "[Infinity]", "again": "[circular]"},
        "bytes": "[binary: 3 bytes]",
        "set": [1],
        "tuple": [1, 2],
        "enum": "red",
        "order": {"order": "7", "amount": "1.50"},
        "model": {"a": 1},
        "object": {"visible": 1},
        "at": "2026-11-22T00:00:00+00:00",
        "id": str(uuid.UUID(int=1)),
        "cause": {"name": "KeyError", "message": "'k'"},
        "bad": "[unreadable]",
        "7": 8,
    }
    failed = written({"error": TypeError("no")})
    stack = "TypeError: no\n"
    assert failed == {"error": "TypeError: no", "exception": {"type": "TypeError", "message": "no", "stack": stack}}
    assert written(None) == {} and written([1, 2]) == {"value": [1, 2]} and written("text") == {"value": "text"}
    assert written({"half": "\ud83d", "\udc00": 1}) == {"half": "\ufffd", "\ufffd": 1}


def test_metadata_only_keeps_no_content() -> None:
    write, _ = writer("metadata-only", ("tenant",))
    secret = "secret plan"
    call = {
        "model": "m",
        "latency": 12,
        "cost": 0.1,
        "toolName": "search",
        "tenant": "acme",
        "error": ValueError(secret),
        "exception": exception_details(ValueError(secret)),
        "usage": {"promptTokens": 1, "note": "text", "details": {"cached": 2, "note": "text"}},
        "messages": [{"content": secret}],
        "output": secret,
        "text": secret,
        "input": {"plan": secret},
        "custom": secret,
    }
    assert json.loads(write(call)) == {
        "model": "m",
        "latency": 12,
        "cost": 0.1,
        "toolName": "search",
        "tenant": "acme",
        "error": "ValueError",
        "exception": {"type": "ValueError"},
        "usage": {"promptTokens": 1, "details": {"cached": 2}},
    }
    failure = {"policyId": "p", "message": "missing key", "input": secret}
    decision = {"action": "BLOCK", "revision": "r1", "detections": ["LOOP_DETECTED"], "failures": [failure], "input": secret}
    audit = {**decision, "failures": [{"policyId": "p", "message": "missing key"}]}
    del audit["input"]
    assert json.loads(write(decision)) == audit
    assert json.loads(write({"failures": [secret], "startEventId": "e", "paused": True})) == {
        "failures": [{}],
        "startEventId": "e",
        "paused": True,
    }
    given = {"model": "x" * 300, "policyIds": ["p"], "action": {"no": 1}}
    assert json.loads(write(given)) == {"policyIds": ["p"]}
    assert json.loads(write([secret])) == {}


def test_an_error_in_masking_masks_everything_and_is_reported() -> None:
    def broken(_: str) -> str:
        raise RuntimeError("broken")

    write, codes = writer(masking=Masking(custom=broken))
    assert write({"text": "secret plan"}) == '{"masked":"[masked:error]"}'
    assert codes == ["masking_failed"]


def test_an_exception_has_its_code_and_the_status_of_the_answer() -> None:
    class Answer:
        status_code = 503

    class RateLimitError(Exception):
        status_code = 429
        code = "rate_limit_exceeded"

    class Failed(Exception):
        code = "no code"
        response = Answer()

    class Hostile(Exception):
        @property
        def status_code(self) -> int:
            raise ValueError

    def facts(error: BaseException) -> list[object]:
        details = exception_details(error)
        return [str(details["type"]).rpartition(".")[2], details.get("code"), details.get("status")]

    assert facts(RateLimitError("no")) == ["RateLimitError", "rate_limit_exceeded", 429]
    assert facts(Failed("no")) == ["Failed", None, 503]
    assert facts(Hostile("no")) == ["Hostile", None, None]
    assert facts(SystemExit(3)) == ["SystemExit", 3, None]
    write, _ = writer("metadata-only")
    kept = json.loads(write({"error": RateLimitError("secret plan")}))
    assert kept["error"] == "RateLimitError"
    assert (kept["exception"]["code"], kept["exception"]["status"]) == ("rate_limit_exceeded", 429)


def test_an_exception_is_bounded_and_cut_between_words() -> None:
    def raised(message: str, causes: int) -> BaseException:
        error: BaseException | None = None
        for n in range(causes):
            cause, error = error, KeyError(n)
            error.__cause__ = cause
        made = ValueError(message)
        made.__cause__ = error
        return made

    whole = exception_details(raised("x" * 4_096, 10))
    assert whole["message"] == "x" * 4_096 and len(cast("list[object]", whole["causes"])) == 10
    more = exception_details(raised("word " * 819 + "secret", 11))
    assert more["message"] == "word " * 819 + "… [cut: 6 characters]"
    assert len(cast("list[object]", more["causes"])) == 10
    assert "causes" not in exception_details(ValueError())
    long = str(exception_details(ValueError("one two " * 10_000))["stack"])
    assert 16_000 < len(long) <= 16_384 + 40 and "… [cut: " in long


def test_a_text_that_is_cut_before_masking_holds_no_part_of_a_credential() -> None:
    address = "https://user:hunter2@host"
    words = "word " * 120_000
    # Only the head and the tail of the text are left.
    for cut in (218_445, len(words) - 109_225):
        for missing in range(-40, 40):
            begin = words[: cut + missing]
            whole = f"{begin[:-1]} {address} {words[len(begin) + len(address) + 1 :]}"
            text = str(to_plain({"first": "", "text": whole}, 200).value["text"])
            assert "… [cut: " in text
            assert address in text or ("user" not in text and "hunter" not in text)


def test_no_rest_of_a_long_credential_stays_after_a_cut_where_almost_all_is_masked() -> None:
    # Then the remaining text is short enough, and is not cut again.
    for form in (f"eyJ{'x' * 3_000}", f"sk-{'x' * 400}", f"password={'x' * 3_000}", f'password="{"xxxxxxxxx " * 300}"'):
        for first in ("", "word " * 300):
            text = written({"text": first + f"{form}\n" * (1_000_000 // len(form))})["text"]
            assert "[masked:credential]" in text and "xxxxxx" not in text


def test_a_cut_before_masking_ends_with_an_ellipsis_and_its_bytes_count() -> None:
    texts = [f"{index} {'word ' * 180}" for index in range(2_500)]
    recorded = json.dumps(written({"first": "x" * 10_000, "texts": texts}), ensure_ascii=False, separators=(",", ":"))
    assert "\x7f" not in recorded and "word … [cut: " in recorded
    assert len(recorded.encode()) <= 262_144


def test_after_texts_of_more_than_is_masked_names_short_texts_and_numbers_stay() -> None:
    rest = {"output": "the answer", "usage": {"promptTokens": 90_000}, "outcome": "returned"}
    for count in (10, 20):
        messages = [{"role": "user", "name": f"n{at}", "content": "word " * 9_000} for at in range(count)]
        recorded = written({"messages": messages, **rest})
        recorded_messages = recorded.pop("messages")
        assert [(one["role"], one["name"]) for one in recorded_messages] == [("user", f"n{at}") for at in range(count)]
        assert recorded.pop("tachoShortened") and recorded == rest
        # The newest messages get as much room as the others if at most 524,288 characters come before them.
        lengths = [len(one["content"]) for one in recorded_messages]
        assert all(length > 15_000 for length in lengths[:12]) and lengths[-1] >= 100, lengths
    files = [f"data:image/png;base64,{'QUJD' * 150_000}"] * 4
    recorded = written({"files": files, **rest})
    assert recorded.pop("tachoShortened") and recorded.pop("files") and recorded == rest
    recorded = written({"text": "word " * 80_000, "list": ["y"] * 131_000})
    assert len(recorded["list"]) > 60_000 and recorded["list"][60_000] == "y"
    # Beyond 262,144 characters of short texts, these are cut too. Their marks do not count against the other texts.
    recorded = written({"text": "word " * 80_000, "short": ["y" * 199] * 1_400, "list": ["y"] * 100_000})
    assert len(recorded["short"]) > 1_000


def test_a_long_text_keeps_its_end_and_a_file_in_base64_is_whole_or_its_type_and_size() -> None:
    log = f"start {'😀 step ' * 60_000}Error: out of stock"
    text = written({"log": log})["log"]
    assert text.startswith("start 😀 step") and text.endswith("Error: out of stock") and "… [cut: " in text
    image = f"data:image/png;base64,{'A' * 400_000}"
    assert written({"image": image})["image"] == "[cut: image/png, 300000 bytes]"
