"""
In a replay, a tape answers guarded tools. `tacho replay` sets TACHO_REPLAY to the address of the tape; then a
guarded tool runs only if the answer says so.
"""

from __future__ import annotations

import builtins
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from ..core import Core
from ..delivery.transport import Reply
from ..recording.context import RunScope, agent_in
from ..recording.plain import dump
from .blocked import ToolBlockedError
from .judged import Call
from .rules import CallDecision

_ANSWER_SECONDS = 30.0
# A recorded output is part of a payload, all of whose characters may be escaped.
_ANSWER_BYTES = 4_194_304
_QUEUED_EVENTS = 100


class _Ahead:
    """Answers for a client's next calls, if the agent continues as recorded."""

    def __init__(self, client: str) -> None:
        self.client = client
        # A forked process must not use the same answers.
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.left: list[dict[str, Any]] = []
        self.used = 0
        """The step of the last answer that was used; at first, that of the answer that brought these."""
        self.asking = 0
        """
        Calls that asked. After parallel calls it stays above one, and no answer is used in advance: two calls could use it.
        """


_aheads: WeakKeyDictionary[Core, _Ahead] = WeakKeyDictionary()


def _ahead_of(core: Core) -> _Ahead:
    ahead = _aheads.get(core)
    if ahead is None or ahead.process != os.getpid():
        ahead = _aheads[core] = _Ahead(core.ids.uuid())
    return ahead


def taped(core: Core, scope: RunScope, call: Call, act: Callable[[], Any]) -> Any:
    """
    Outside a replay, runs the tool. In a replay, returns the recorded output, raises the recorded error, or raises an
    error that says where the agent differs from the tape.
    """
    if not _is_taped(core):
        return act()
    answer = _answer(core, scope, call, call.input_hash)
    kind = answer.get("answer")
    if kind == "run":
        return act()
    if kind == "returned":
        return answer.get("output")
    if kind == "failed":
        raise _recorded(answer.get("error"))
    raise RuntimeError(answer.get("message") or f"{call.tool_name} was not run: the tape of this replay gave no answer.")


def refuse_elsewhere(core: Core, scope: RunScope, call: Call) -> None:
    """Checks a tool that another program runs: a tape cannot answer it. Raises ToolBlockedError unless it may run now."""
    if _is_taped(core) and _answer(core, scope, call).get("answer") != "run":
        raise ToolBlockedError("guard_failed", call.tool_name, reason="a replay runs no tools of other programs")


def decided_elsewhere(core: Core, scope: RunScope, call: Call, decision: CallDecision) -> CallDecision:
    """The host runs the tool itself, so a tape cannot answer in its place: the tool may run only if the tape allows it."""
    try:
        if decision.action != "BLOCK":
            refuse_elsewhere(core, scope, call)
    except (ToolBlockedError, RuntimeError) as error:
        return replace(decision, action="BLOCK", reason=str(error))
    return decision


def _is_taped(core: Core) -> bool:
    """
    Raises RuntimeError for a client that was made before the replay, or is used after it: that client does not ask this tape,
    so nothing runs.
    """
    tape, now = core.settings.replay, os.environ.get("TACHO_REPLAY")
    if tape != now:
        raise RuntimeError("The tool was not run: make its client in the replay.")
    return tape is not None


def _answer(core: Core, scope: RunScope, call: Call, input_hash: str | None = None) -> dict[str, Any]:
    """`input_hash`: set if an answer that was sent in advance may be used."""
    # Calls that never wait would fill the queue, so flush it.
    if core.sender.held[0] > _QUEUED_EVENTS:
        core.sender.flush(_ANSWER_SECONDS)
    agent, ahead = agent_in(core, scope), _ahead_of(core)
    with ahead.lock:
        following = ahead.left.pop(0) if ahead.left else None
        if following and following["inputHash"] == input_hash and following.get("agent") == agent:
            ahead.used = following["step"]
            return following
        ahead.left = []
        ahead.asking += 1
        asked = {"toolName": call.tool_name, "input": call.shown, "client": ahead.client, "used": ahead.used}
    reply = core.request(
        "POST",
        "/replay/tool-calls",
        body=dump(asked if agent is None else {**asked, "agent": agent}).encode(),
        timeout=_ANSWER_SECONDS,
        max_reply_bytes=_ANSWER_BYTES,
    )
    answer = reply.json if isinstance(reply, Reply) and reply.ok and isinstance(reply.json, dict) else {}
    with ahead.lock:
        if ahead.asking == 1:
            ahead.left, ahead.used, ahead.asking = answer.get("ahead") or [], answer.get("step") or 0, 0
    return answer


def _recorded(recorded_error: object) -> Exception:
    """An error of a built-in class keeps its class; any other keeps only its name."""
    fields = recorded_error if isinstance(recorded_error, dict) else {"message": recorded_error}
    name, message = str(fields.get("name") or "Exception"), str(fields.get("message") or "")
    known = getattr(builtins, name, None)
    if isinstance(known, type) and issubclass(known, Exception) and known is not UnicodeError:
        try:
            return known(message)
        except TypeError:
            pass
    error: Exception = type(name if name.isidentifier() else "RecordedError", (Exception,), {})(message)
    return error
