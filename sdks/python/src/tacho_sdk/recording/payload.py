"""Turns a host value into a payload's JSON text: reduced to metadata if configured, masked, bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Literal

from ..delivery.diagnostics import Diagnostics
from ..exact import class_name
from ..limits import PAYLOAD_BYTES, PAYLOAD_LEVELS
from .exception import exception_classes, exception_details
from .mask import Mask
from .plain import CUT_MARK, FIELDS_MAX, Json, Plain, dump, error_text, is_error, to_plain, well_formed_json
from .shorten import shorten, without_rests
from .text import cut_text, utf8_length
from .texts import Texts, quoted, restored_fields

Capture = Literal["full", "metadata-only"]
Payload = Mapping[str, object]

# Keys whose values are not content. Prompts, messages, inputs, outputs and unknown keys are dropped.
_METADATA_KEYS = frozenset(
    [
        "model",
        "provider",
        "latency",
        "cost",
        "finishReason",
        "status",
        "code",
        "reasonCode",
        "attempt",
        "toolName",
        "toolCallId",
        "outcome",
        "traceId",
        "traceSpanId",
        "tools",
        "inputHash",
        "approvalId",
        "action",
        "decision",
        "policyId",
        "policyIds",
        "riskSignals",
        "severity",
        "promptId",
        "promptVersionId",
        "promptFallback",
        "policyAgeMs",
        "agent",
        "sampleRate",
        "startEventId",
        "paused",
        "revision",
        "release",
        "detections",
    ]
)
# The same for events whose members are known. The comment of a SCORE is content.
_KEYS_OF = {
    "SCORE": frozenset(["name", "value", "targetEventId", "author"]),
    "APPROVAL_WITHDRAWN": frozenset(["reason"]),
    "HANDOFF": frozenset(["from", "to"]),
    "RUN_TAGS": frozenset(["runTags", "userId"]),
}
# A longer text counts as content under any key.
_METADATA_CHARS = 256
_FIELDS = FIELDS_MAX + 1
# A call with more failed policies than this is not expected.
_FAILURES_MAX = 500

_FEW_MARKS = 1_000

_SEAL = re.compile(r"[0-9a-f]{64}\Z")

PayloadWriter = Callable[..., str]
_EMPTY = Plain({}, False, 2)


class Payloads:
    """Never raises. If masking fails, nothing of the payload is recorded."""

    def __init__(self, capture: Capture, metadata_keys: frozenset[str], mask: Mask, diagnostics: Diagnostics) -> None:
        self._capture = capture
        self._metadata_keys = metadata_keys
        self._mask = mask
        self._texts = Texts(mask)
        self._diagnostics = diagnostics

    def reset(self) -> None:
        """For a forked process."""
        self._texts.reset()

    def capture(self, payload: Payload | None, event_type: str = "") -> Plain:
        """A copy of the payload, to be written later."""
        return _EMPTY if payload is None else to_plain(self._chosen(payload, event_type), PAYLOAD_LEVELS, has_marks=True)

    def write(self, payload: Payload | None, max_bytes: int = PAYLOAD_BYTES) -> str:
        """The JSON text of a payload as recorded. `max_bytes`: default and most 256 KiB."""
        return self.written(self.capture(payload), max_bytes)

    def written(self, captured: Plain, max_bytes: int = PAYLOAD_BYTES) -> str:
        """Writes a captured payload."""
        plain: dict[str, Json] | None = None
        try:
            text = self._texts.json_of(captured)
            if text is None:
                plain, text = self._masked(captured)
        except Exception:
            self._diagnostics.report("error", "masking_failed", "Masking failed: the payload was dropped.")
            return '{"masked":"[masked:error]"}'
        size = utf8_length(text)
        if not captured.is_cut and size <= max_bytes:
            return text
        self._diagnostics.count("shortened")
        message = f"A payload of {size} bytes was shortened to {max_bytes}."
        self._diagnostics.report("warning", "payload_shortened", message)
        encode = quoted
        if plain is None:
            plain, encode = restored_fields(captured), self._texts.quoted_of
        elif captured.is_cut:
            plain = {key: without_rests(item) for key, item in plain.items()}
            size = utf8_length(dump(plain))
        # The ellipsis of an earlier cut takes two bytes more than `CUT_MARK`. Each such cut has at least 22 bytes.
        more = min(2 * _cuts_in(text), max_bytes // 11) if captured.is_cut else 0
        return shorten(plain, size + more, max_bytes - more, encode).replace(f"{CUT_MARK} [cut: ", "… [cut: ")

    def _masked(self, captured: Plain) -> tuple[dict[str, Json], str]:
        plain, text = well_formed_json(restored_fields(captured))
        if not self._mask.touches(text):
            return plain, text
        masked = self._mask.value(plain)
        seals = plain.get("inputSeals")
        plain = masked if isinstance(masked, dict) else {"masked": "[masked:error]"}
        if isinstance(seals, dict) and all(isinstance(one, str) and _SEAL.match(one) for one in seals.values()):
            # A seal has the name of the sealed member, and reveals nothing about it.
            plain["inputSeals"] = seals
        return plain, dump(plain)

    def _chosen(self, payload: Payload, event_type: str) -> object:
        if not isinstance(payload, Mapping):
            # Untyped hosts may pass anything. Metadata-only keeps nothing without a known key.
            return payload if self._capture == "full" else {}
        error = payload.get("error")
        if is_error(error) and "exception" not in payload:
            payload = {**payload, "exception": exception_details(error)}
        if self._capture == "full":
            return {**payload, "error": error_text(error)} if is_error(error) else payload
        return dict(self._metadata(payload, event_type))

    def _metadata(self, payload: Payload, event_type: str) -> Iterable[tuple[str, object]]:
        more = _KEYS_OF.get(event_type, frozenset[str]())
        for key, value in islice(payload.items(), _FIELDS):
            if key in self._metadata_keys or ((key in _METADATA_KEYS or key in more) and _is_metadata(value)):
                yield key, value
            elif key == "policyVersions" and isinstance(value, Mapping):
                yield key, dict(_metadata_of(value, value))
            elif key == "runMetadata" and event_type == "RUN_TAGS" and isinstance(value, Mapping):
                yield key, {name: one for name, one in islice(value.items(), _FIELDS) if _is_metadata(one)}
            elif key == "usage":
                yield key, _numbers_of(value)
            elif key == "failures" and isinstance(value, (list, tuple)):
                # Failures of conditions: their messages quote the condition, never the input.
                yield key, [dict(_metadata_of(one, ("policyId", "message"))) for one in value[:_FAILURES_MAX]]
            elif key == "exception":
                yield key, exception_classes(value)
            elif key == "error" and value is not None:
                # Error messages quote their input; the error's class does not.
                yield key, class_name(value) if is_error(value) else "[left out]"


def _cuts_in(text: str) -> int:
    marks = text.count(CUT_MARK)
    # Searching for one character is ten times as fast as for the whole text.
    if marks > _FEW_MARKS:
        return text.count(f"{CUT_MARK} [cut: ")
    return sum(after.startswith(" [cut: ") for after in text.split(CUT_MARK)[1:]) if marks else 0


def _is_metadata(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _METADATA_CHARS
    if isinstance(value, (list, tuple)):
        return len(value) <= 100 and all(isinstance(item, str) and _is_metadata(item) for item in value)
    return isinstance(value, (int, float))


def _metadata_of(facts: object, names: Iterable[object]) -> Iterable[tuple[str, str]]:
    for name in islice(names, _FAILURES_MAX):
        text = facts.get(name) if isinstance(facts, Mapping) else None
        if isinstance(name, str) and isinstance(text, str):
            yield name, cut_text(text, _METADATA_CHARS)


def _numbers_of(usage: object, levels: int = 2) -> dict[str, object]:
    """The numbers of a usage object, including one level of details."""
    numbers: dict[str, object] = {}
    for key, value in islice(usage.items(), _FIELDS) if isinstance(usage, Mapping) else ():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers[key] = value
        elif isinstance(value, Mapping) and levels > 1:
            numbers[key] = _numbers_of(value, levels - 1)
    return numbers
