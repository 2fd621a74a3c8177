"""
Calls that a model asked for and that never reached their tool: cut, unreadable, of an unknown tool, or with arguments that do
not fit. They leave a TOOL_CALL as calls that ran do, so that an agent that goes in circles on bad calls looks like one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..delivery.issue_records import IssueReport
from ..delivery.lock import Lock
from ..recording.context import Span, current_of
from ..recording.run import Run, begin_scope

if TYPE_CHECKING:
    from ..core import Core
    from .guard import Guard

NeverRan = Literal["cut", "unreadable", "unknown_tool", "unfit", "declined"]
# Of answers whose calls may miss their end, as providers say it. Others are whole.
_CUT = frozenset(
    "length max_tokens max_output_tokens model_length model_context_window_exceeded content_filter content-filter safety"
    " recitation prohibited_content blocklist spii refusal incomplete in_progress aborted cancelled failed error"
    " malformed_function_call".split()
)
_KNOWN_MAX = 1_000
_TEXT_CHARS = 65_536


class FreeText(str):
    """What a model wrote for a custom tool of OpenAI: no JSON."""


def is_cut(finish_reason: object) -> bool:
    return isinstance(finish_reason, str) and finish_reason.lower() in _CUT


@dataclass(frozen=True)
class Broken:
    """Why the arguments of a call may not be what the model meant."""

    code: Literal["cut", "unreadable"]
    text: str | None
    """The arguments as received, if they are a text."""


class AskedCalls:
    """What answers of models said of their calls, by the model's id: frameworks do not tell it to a tool."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = Lock()
        self._broken: dict[str, Broken] = {}

    def note(self, call_id: object, broken: Broken | None) -> None:
        """The last answer with this id counts: some models give each call the same one."""
        if not isinstance(call_id, str) or not call_id:
            return
        with self._lock:
            self._broken.pop(call_id, None)
            if broken is not None:
                self._broken[call_id] = broken
            if len(self._broken) > _KNOWN_MAX:
                del self._broken[next(iter(self._broken))]

    def broken(self, call_id: object) -> Broken | None:
        return self._broken.get(call_id) if isinstance(call_id, str) else None

    def is_cut(self, call_id: object) -> bool:
        broken = self.broken(call_id)
        return broken is not None and broken.code == "cut"


def record_never_ran(
    guard: Guard, tool_name: str, code: NeverRan, answer: str, arguments: object, call_id: object = None
) -> None:
    """On the current run, or in one of its own. `answer`: what the model reads. `arguments`: as it wrote them."""
    core, current = guard.core, current_of(guard.core)
    broken = core.asked_calls.broken(call_id)
    if broken is not None:
        # A framework may have mended the arguments, and knows not that the answer was cut.
        code = broken.code if code in ("unreadable", "unfit") else code
        arguments = arguments if broken.text is None else broken.text
    scope = begin_scope(core, {}) if current is None else current.scope
    facts: dict[str, Any] = {"toolName": tool_name, "outcome": "never_ran", "reasonCode": code, "error": {"message": answer}}
    facts |= {name: one for name, one in {"toolCallId": call_id, "arguments": arguments}.items() if one is not None}
    span = Span(core.ids.span(), core.span_of(scope).span_id)
    event_id = core.record(scope, "TOOL_CALL", tool_name, facts, span=span)
    if code != "declined":
        payload = {"toolName": tool_name, "reasonCode": code}
        guard.trouble(scope, tool_name, IssueReport("TOOL_FAILED", payload=payload, event_id=event_id))
        guard.observe_loop(scope, tool_name, arguments)
    if current is None:
        Run(core, scope).end("FAILED", {"error": answer})


def tool_calls_of(core: Core, output: object, finish_reason: object) -> list[dict[str, Any]]:
    """
    Of all candidates of an answer, for LLM_CALL. Arguments that cannot be read, or that may miss their end, stand there as
    received. Notes which calls were cut.
    """
    found: list[dict[str, Any]] = []
    for message in output if isinstance(output, list) else [output]:
        calls = message.get("toolCalls") if isinstance(message, Mapping) else None
        reason = (message.get("finishReason") if isinstance(message, Mapping) else None) or finish_reason
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, Mapping):
                continue
            one = {name: call[name] for name in ("id", "name") if call.get(name) is not None}
            arguments = call.get("arguments")
            cut = is_cut(reason) and call.get("status") != "completed"
            text = arguments if isinstance(arguments, str) else None
            is_broken = bool(text) and not isinstance(text, FreeText)
            broken = Broken("cut" if cut else "unreadable", text and text[:_TEXT_CHARS]) if cut or is_broken else None
            if broken is not None:
                one |= {"problem": broken.code, **({} if arguments is None else {"arguments": arguments})}
            core.asked_calls.note(call.get("id"), broken)
            found.append(one)
    return found
