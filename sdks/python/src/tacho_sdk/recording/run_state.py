"""Usage and calls of a run, in all its processes: a handle carries them to the next one."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..inner_class import inner_class
from .usage import RunUsage

_RECENT_MAX = 100
_OPEN_MAX = 100
_INPUTS_MAX = 1_000
_SPENT_MAX = 1_000_000_000
_ARGS_BYTES_MAX = 65_536
# Maximum number of runs with handles whose state this process remembers.
_SHARED_MAX = 1_000
_HASH = re.compile(r"[0-9a-f]{32,128}\Z")
_T = TypeVar("_T")


@inner_class
class OpenCall:
    """A call that waits for a person."""

    approval_id: str
    tool_name: str
    input_hash: str
    key: int | str
    """Distinguishes the calls of a run with this tool and input: their number, or the caller's own text."""
    expires_at: str | None
    """ISO 8601; None if the service did not say."""
    args: Sequence[Any] | None = None
    """Arguments of the tool. None if they are not plain JSON, or too large for a handle."""
    named: Mapping[str, Any] = field(default_factory=dict)
    spent: int = 0
    """Number of earlier approvals for the caller's text that are spent."""
    is_over: bool = False
    """Whether this process saw the call end."""


@dataclass(eq=False, repr=False)
class _Numbers:
    """Numbers of calls that no other call may have."""

    waiting: set[int] = field(default_factory=set)
    spent: int = 0
    """The approvals of all lower numbers are spent. A count, because a run can have a million."""
    spent_later: set[int] = field(default_factory=set)
    """Spent numbers that are higher than the first free one."""


@dataclass(eq=False, repr=False)
class RunState:
    """Shared by the scopes of a run in this process. The guard changes it under its lock."""

    usage: RunUsage
    recent_calls: list[str] = field(default_factory=list)
    """Input hash and tool of the last guarded calls, to detect loops."""
    open_calls: dict[str, OpenCall] = field(default_factory=dict)
    """Open calls by approval."""
    numbers: dict[str, _Numbers] = field(default_factory=dict)
    """Numbers by input, or by input and key."""
    watch: object = None
    """The detectors of this run, kept by the guard."""
    history: Any = None
    """History of the run, if a policy needs it, kept by the guard."""
    messages: object = None
    """Messages of the newest model call, kept until a policy needs the history of the run."""
    user_inputs: list[Any] = field(default_factory=list)
    """Inputs of the user, kept until then, because runs often begin before the policies arrive."""
    is_unseen: bool = False
    """The run has calls that its history does not contain."""
    is_resumed: bool = False
    """The run began in another process."""
    carried_history: Mapping[str, Any] | None = None
    """History that the other process passed."""

    def next_number(self, slot: str) -> int:
        """The lowest number that no other call has. `slot`: the input hash, or a hash of it and the caller's key."""
        taken = self.numbers.get(slot) or _Numbers()
        number = taken.spent
        while number in taken.waiting or number in taken.spent_later:
            number += 1
        return number

    def take_number(self, slot: str, number: int) -> None:
        """Reserve the number for a call while it waits."""
        self._numbers_of(slot).waiting.add(number)

    def free_number(self, slot: str, number: int) -> None:
        """Frees the number for the next call."""
        if slot in self.numbers:
            self.numbers[slot].waiting.discard(number)

    def spend_number(self, slot: str, number: int) -> None:
        """Marks a number as used: no later call may have it."""
        numbers = self._numbers_of(slot)
        numbers.waiting.discard(number)
        if number >= numbers.spent:
            numbers.spent_later.add(number)
        while numbers.spent in numbers.spent_later:
            numbers.spent_later.remove(numbers.spent)
            numbers.spent += 1

    def open(self, call: OpenCall) -> None:
        self.open_calls.pop(call.approval_id, None)
        self.open_calls[call.approval_id] = call
        if len(self.open_calls) > _OPEN_MAX:
            del self.open_calls[next(iter(self.open_calls))]

    def close(self, approval_id: str) -> None:
        call = self.open_calls.get(approval_id)
        if call is not None:
            self.open_calls[approval_id] = OpenCall(approval_id, call.tool_name, call.input_hash, call.key, None, is_over=True)

    def carried(self) -> dict[str, Any]:
        """The part of a handle that holds the state."""
        waiting = [call for call in list(self.open_calls.values()) if not call.is_over]
        spent = {slot: numbers.spent for slot, numbers in list(self.numbers.items()) if numbers.spent > 0}
        recent = self.recent_calls[-_RECENT_MAX:]
        usage = self.usage
        seconds = time.monotonic() - usage.since
        used = {"toolCalls": usage.tool_calls, "totalTokens": usage.total_tokens, "cost": usage.cost, "seconds": seconds}
        return {
            "used": used,
            **({} if self.history is None else {"history": self.history.history.carried()}),
            **({"recentCalls": recent} if recent else {}),
            **({"spentApprovals": dict(list(spent.items())[-_OPEN_MAX:])} if spent else {}),
            **({"approvals": [_to_json(call) for call in waiting]} if waiting else {}),
        }

    def add(self, handle: Mapping[str, Any]) -> None:
        """Adds the state that another process passed in a handle. Ignores members of another shape."""
        self.is_resumed = True
        self.carried_history = _history(handle.get("history"))
        used = _of(dict, handle.get("used"))
        self.usage.at_least(used.get("toolCalls"), used.get("totalTokens"), used.get("cost"), used.get("seconds"))
        if not self.recent_calls:
            recent = _of(list, handle.get("recentCalls"))
            self.recent_calls += [text for text in recent if isinstance(text, str)][-_RECENT_MAX:]
        for slot, given_count in list(_of(dict, handle.get("spentApprovals")).items())[-_INPUTS_MAX:]:
            count = _number(given_count)
            if isinstance(slot, str) and _HASH.match(slot) and count is not None:
                numbers = self._numbers_of(slot)
                numbers.spent = max(numbers.spent, count)
        for carried_approval in _of(list, handle.get("approvals"))[-_OPEN_MAX:]:
            call = _from_json(carried_approval)
            if call is not None:
                self.open_calls.setdefault(call.approval_id, call)

    def _numbers_of(self, slot: str) -> _Numbers:
        numbers = self.numbers.setdefault(slot, _Numbers())
        if len(self.numbers) > _INPUTS_MAX:
            del self.numbers[next(iter(self.numbers))]
        return numbers


class SharedStates:
    """States of runs that another process may continue, or this one again."""

    def __init__(self) -> None:
        self._states: dict[str, RunState] = {}

    def of(self, run_id: str) -> RunState | None:
        return self._states.get(run_id)

    def share(self, run_id: str, state: RunState) -> None:
        self._states.pop(run_id, None)
        self._states[run_id] = state
        if len(self._states) > _SHARED_MAX:
            self._states.pop(next(iter(self._states)), None)


def carried_args(args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """A copy of arguments that a handle can hold without changing them."""
    try:
        whole = [list(args), dict(named)]
        text = json.dumps(whole, ensure_ascii=False, allow_nan=False)
        if len(text.encode()) > _ARGS_BYTES_MAX:
            return None
        copied = json.loads(text)
        return (copied[0], copied[1]) if _is_same(whole, copied) else None
    except Exception:
        return None


def _is_same(original: Any, copied: Any) -> bool:
    """Whether JSON left the value unchanged: it changes tuples, and keys of dicts."""
    if type(original) is not type(copied):
        return False
    if isinstance(original, list):
        return all(map(_is_same, original, copied))
    if isinstance(original, dict):
        return all(key in copied and _is_same(value, copied[key]) for key, value in original.items())
    return bool(original == copied)


def _to_json(call: OpenCall) -> dict[str, Any]:
    return {
        "approvalId": call.approval_id,
        "toolName": call.tool_name,
        "inputHash": call.input_hash,
        "key": call.key,
        "expiresAt": call.expires_at,
        **({} if call.args is None else {"args": call.args}),
        **({"named": call.named} if call.named else {}),
        **({"spent": call.spent} if call.spent else {}),
    }


def _from_json(raw_call: Any) -> OpenCall | None:
    fields = _of(dict, raw_call)
    approval_id, tool_name, input_hash = (fields.get(name) for name in ("approvalId", "toolName", "inputHash"))
    key, expires_at, args = fields.get("key"), fields.get("expiresAt"), fields.get("args")
    if not isinstance(approval_id, str) or not isinstance(tool_name, str) or not isinstance(input_hash, str):
        return None
    key, spent = key if isinstance(key, str) and key else _number(key), _number(fields.get("spent", 0))
    if not _HASH.match(input_hash) or key is None or spent is None or not isinstance(args, (list, type(None))):
        return None
    expires_at = expires_at if isinstance(expires_at, str) else None
    return OpenCall(approval_id, tool_name, input_hash, key, expires_at, args, _of(dict, fields.get("named")), spent)


def _history(raw_value: object) -> Mapping[str, Any] | None:
    """Returns None unless the value has the shape of `RunHistory.carried`."""
    fields = _of(dict, raw_value)
    labels, calls = _of(list, fields.get("labels")), _of(list, fields.get("calls"))
    shape = {"tool": str, "labels": list, "ok": bool, "decision": str}
    is_whole = all(isinstance(label, str) for label in labels) and all(
        isinstance(call, dict) and all(isinstance(call.get(name), kind) for name, kind in shape.items()) for call in calls
    )
    return {"labels": labels, "calls": calls} if fields and is_whole else None


def _number(raw_value: object) -> int | None:
    """A count from JSON, which may be a float."""
    if type(raw_value) is float and raw_value.is_integer():
        raw_value = int(raw_value)
    return raw_value if type(raw_value) is int and 0 <= raw_value <= _SPENT_MAX else None


def _of(kind: type[_T], raw_value: object) -> _T:
    return raw_value if isinstance(raw_value, kind) else kind()
