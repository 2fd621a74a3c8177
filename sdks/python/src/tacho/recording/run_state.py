"""What a run has used and asked for, in all its processes: a handle carries it to the next one."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .usage import RunUsage

_RECENT_MAX = 100
_OPEN_MAX = 100
_INPUTS_MAX = 1_000
_ARGS_BYTES_MAX = 65_536
# Runs of which handles were made or resumed, whose state this process still knows.
_SHARED_MAX = 1_000
_HASH = re.compile(r"[0-9a-f]{32,128}\Z")
_T = TypeVar("_T")


@dataclass(frozen=True)
class OpenCall:
    """A call that waits for a person."""

    approval_id: str
    tool_name: str
    input_hash: str
    key: int | str
    """Tells apart the calls of a run with this tool and input: their number, or the caller's own text."""
    expires_at: str | None
    """ISO 8601; None if the service did not say."""
    args: Sequence[Any] | None = None
    """What the tool was called with. None if it is not plain JSON, or too large for a handle."""
    named: Mapping[str, Any] = field(default_factory=dict)
    is_over: bool = False
    """This process saw its end."""


@dataclass(eq=False)
class RunState:
    """Shared by the scopes of a run in this process. The guard changes it under its lock."""

    usage: RunUsage
    recent_calls: list[str] = field(default_factory=list)
    """The last guarded calls, for loops: input hash and tool."""
    open_calls: dict[str, OpenCall] = field(default_factory=dict)
    """By approval."""
    numbers: dict[str, set[int]] = field(default_factory=dict)
    """Numbers of calls with one input, or with one input and key: those that wait, and those whose approval is spent."""
    watch: object = None
    """The detectors of this run, kept by the guard."""

    def next_number(self, slot: str) -> int:
        """The lowest number that no other call has. `slot`: the input hash, or a hash of it and the caller's key."""
        taken = self.numbers.get(slot, set())
        number = 0
        while number in taken:
            number += 1
        return number

    def add_number(self, slot: str, number: int) -> None:
        self._numbers_of(slot).add(number)

    def free_number(self, slot: str, number: int) -> None:
        """The next call may have it."""
        self.numbers.get(slot, set()).discard(number)

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
        spent = {input_hash: self._spent_of(input_hash, waiting) for input_hash in list(self.numbers)}
        recent = self.recent_calls[-_RECENT_MAX:]
        spent = {input_hash: count for input_hash, count in spent.items() if count > 0}
        usage = self.usage
        seconds = time.monotonic() - usage.since
        used = {"toolCalls": usage.tool_calls, "totalTokens": usage.total_tokens, "cost": usage.cost, "seconds": seconds}
        return {
            "used": used,
            **({"recentCalls": recent} if recent else {}),
            **({"spentApprovals": dict(list(spent.items())[-_OPEN_MAX:])} if spent else {}),
            **({"approvals": [_to_json(call) for call in waiting]} if waiting else {}),
        }

    def add(self, handle: Mapping[str, Any]) -> None:
        """What another process says of the run. Whatever has another shape is left out."""
        used = _of(dict, handle.get("used"))
        self.usage.at_least(used.get("toolCalls"), used.get("totalTokens"), used.get("cost"), used.get("seconds"))
        if not self.recent_calls:
            recent = _of(list, handle.get("recentCalls"))
            self.recent_calls += [text for text in recent if isinstance(text, str)][-_RECENT_MAX:]
        for input_hash, count in list(_of(dict, handle.get("spentApprovals")).items())[-_INPUTS_MAX:]:
            if isinstance(input_hash, str) and _HASH.match(input_hash) and type(count) is int:
                self._numbers_of(input_hash).update(range(min(count, _INPUTS_MAX)))
        for given in _of(list, handle.get("approvals"))[-_OPEN_MAX:]:
            call = _from_json(given)
            if call is not None:
                self.open_calls.setdefault(call.approval_id, call)

    def _numbers_of(self, input_hash: str) -> set[int]:
        numbers = self.numbers.setdefault(input_hash, set())
        if len(self.numbers) > _INPUTS_MAX:
            del self.numbers[next(iter(self.numbers))]
        return numbers

    def _spent_of(self, input_hash: str, waiting: Sequence[OpenCall]) -> int:
        """How many numbers, from 0 on, no later call may have."""
        taken = self.numbers[input_hash] - {call.key for call in waiting if call.input_hash == input_hash}
        count = 0
        while count in taken:
            count += 1
        return count


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


def _is_same(given: Any, copied: Any) -> bool:
    """JSON changes tuples and the keys of dicts."""
    if type(given) is not type(copied):
        return False
    if isinstance(given, list):
        return all(map(_is_same, given, copied))
    if isinstance(given, dict):
        return all(key in copied and _is_same(value, copied[key]) for key, value in given.items())
    return bool(given == copied)


def _to_json(call: OpenCall) -> dict[str, Any]:
    return {
        "approvalId": call.approval_id,
        "toolName": call.tool_name,
        "inputHash": call.input_hash,
        "key": call.key,
        "expiresAt": call.expires_at,
        **({} if call.args is None else {"args": call.args}),
        **({"named": call.named} if call.named else {}),
    }


def _from_json(given: Any) -> OpenCall | None:
    fields = _of(dict, given)
    approval_id, tool_name, input_hash = (fields.get(name) for name in ("approvalId", "toolName", "inputHash"))
    key, expires_at, args = fields.get("key"), fields.get("expiresAt"), fields.get("args")
    if not isinstance(approval_id, str) or not isinstance(tool_name, str) or not isinstance(input_hash, str):
        return None
    # A number of JSON may be a float.
    key = int(key) if type(key) is float and key.is_integer() else key
    if not _HASH.match(input_hash) or type(key) not in (str, int) or not isinstance(args, (list, type(None))):
        return None
    expires_at = expires_at if isinstance(expires_at, str) else None
    return OpenCall(approval_id, tool_name, input_hash, key, expires_at, args, _of(dict, fields.get("named")))  # type: ignore[arg-type]


def _of(kind: type[_T], given: object) -> _T:
    return given if isinstance(given, kind) else kind()
