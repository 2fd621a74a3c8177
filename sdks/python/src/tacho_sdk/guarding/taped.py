"""
In a replay, a tape answers guarded tools. `tacho replay` sets TACHO_REPLAY to the address of the tape; then a
guarded tool runs only if the answer says so.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

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


def taped(core: Core, scope: RunScope, call: Call, act: Callable[[], Any]) -> Any:
    """
    What the tool returns, or what the tape says that it did. Raises the recorded error, or one that says where the agent
    left the tape.
    """
    if not _is_taped(core):
        return act()
    answer = _answer(core, scope, call)
    kind = answer.get("answer")
    if kind == "run":
        return act()
    if kind == "returned":
        return answer.get("output")
    if kind == "failed":
        raise _recorded(answer.get("error"))
    raise RuntimeError(answer.get("message") or f"{call.tool_name} was not run: the tape of this replay gave no answer.")


def refuse_elsewhere(core: Core, scope: RunScope, call: Call) -> None:
    """For a tool that another program runs: a tape cannot answer it. Raises ToolBlockedError unless it may run now."""
    if _is_taped(core) and _answer(core, scope, call).get("answer") != "run":
        raise ToolBlockedError("guard_failed", call.tool_name, reason="a replay runs no tools of other programs")


def decided_elsewhere(core: Core, scope: RunScope, call: Call, decision: CallDecision) -> CallDecision:
    """
    The host runs the tool itself, so a tape cannot answer in its place: the tool may run only if the tape says so.
    """
    try:
        if decision.action != "BLOCK":
            refuse_elsewhere(core, scope, call)
    except (ToolBlockedError, RuntimeError) as error:
        return replace(decision, action="BLOCK", reason=str(error))
    return decision


def _is_taped(core: Core) -> bool:
    """
    Raises RuntimeError for a client that was made before the replay, or is used after it: it does not ask this
    tape, so nothing runs.
    """
    tape, now = core.settings.replay, os.environ.get("TACHO_REPLAY")
    if tape != now:
        raise RuntimeError("The tool was not run: make its client in the replay.")
    return tape is not None


def _answer(core: Core, scope: RunScope, call: Call) -> dict[str, Any]:
    agent = agent_in(core, scope)
    asked = {"toolName": call.tool_name, "input": call.shown, **({} if agent is None else {"agent": agent})}
    reply = core.request(
        "POST",
        "/replay/tool-calls",
        body=dump(asked).encode(),
        timeout=_ANSWER_SECONDS,
        max_reply_bytes=_ANSWER_BYTES,
    )
    return reply.json if isinstance(reply, Reply) and reply.ok and isinstance(reply.json, dict) else {}


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
