"""
Calls that a model asked for and that never reached their tool: cut, unreadable, of an unknown tool, or with
arguments that do not fit. Each leaves a TOOL_CALL, as calls that ran do, so that an agent that repeats bad calls is
seen as a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..delivery.issue_records import IssueReport
from ..delivery.lock import Lock
from ..inner_class import inner_class
from ..recording.context import RunScope, Span, current_of
from ..recording.run import Run, begin_scope

if TYPE_CHECKING:
    from ..core import Core
    from .guard import Guard

NeverRan = Literal["cut", "unreadable", "unknown_tool", "unfit", "declined"]
# Finish reasons of answers whose calls are complete, as providers spell them: packages/contract/vectors/finish-reasons.json.
_WHOLE = frozenset(
    "stop stopped tool_calls tool_call tool_use end_turn function_call completed complete stop_sequence eos eos_token"
    " end_of_text stop_token pause_turn".split()
)
UNFINISHED = "unfinished"
"""The reason of a stream that ended, or that the host left, before a provider gave one."""
_KNOWN_MAX = 2_000
_WHOLE_MAX = 20_000
_TEXT_CHARS = 65_536
_REASON_CHARS = 100


class FreeText(str):
    """Text that a model wrote for a custom tool of OpenAI; not JSON."""


class ReceivedCall(dict[str, Any]):
    """A call with its own status: it may be complete in an incomplete answer, or the other way round."""

    status: object = None


def is_cut(finish_reason: object) -> bool:
    """Whether the calls of an answer may miss their end. Yes for an unknown reason, no if the provider gave none."""
    if finish_reason is None or finish_reason == "":
        return False
    reason_text = getattr(finish_reason, "name", finish_reason)
    return not isinstance(reason_text, str) or reason_text[:_REASON_CHARS].lower().replace("-", "_") not in _WHOLE


@inner_class
class Broken:
    """Why the arguments of a call may not be what the model meant."""

    code: Literal["cut", "unreadable"]
    text: str | None
    """The arguments as received, if they are a text."""


_Key = tuple[str | None, str]


@dataclass(eq=False, repr=False)
class Waiting:
    """A person decides about a call in the agent's framework."""

    scope: RunScope
    tool_name: str
    call_id: str
    is_recorded: bool = False

    def record(self, core: Core) -> None:
        """Records the wait in place of the run's outcome."""
        self.is_recorded = True
        payload = {"waitingFor": "approval", "toolName": self.tool_name, "toolCallId": self.call_id}
        core.record(self.scope, "WAITING", f"{self.tool_name} waits for a person", payload, is_last=True)


class AskedCalls:
    """
    What models' answers report about their calls, by run and the model's id of the call, because frameworks do not pass it to
    the tool. Several runs may have calls with the same id, because some models count them from 0 in each answer.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = Lock()
        self._broken: dict[_Key, Broken] = {}
        self._whole: dict[_Key, None] = {}
        self._waiting: dict[str, Waiting] = {}

    def waits(self, scope: RunScope, tool_name: str, call_id: object) -> None:
        """Notes that the call waits for a person in the agent's framework."""
        if not isinstance(call_id, str) or not call_id:
            return
        with self._lock:
            self._waiting[call_id] = Waiting(scope, tool_name, call_id)
            while len(self._waiting) > _KNOWN_MAX:
                del self._waiting[next(iter(self._waiting))]

    def waiting_in(self, scope: RunScope) -> Waiting | None:
        with self._lock:
            return next((one for one in self._waiting.values() if one.scope is scope), None)

    def goes_on(self, core: Core, call_id: object) -> None:
        """Notes that the call runs or was declined. If this happens in another run, ends the run that waited."""
        waiting = self._waiting.pop(call_id, None) if isinstance(call_id, str) else None
        current = current_of(core)
        if waiting is None or not waiting.is_recorded:
            return
        if current is None or current.scope.run_id != waiting.scope.run_id:
            Run(core, waiting.scope).end()

    def note(self, scope: RunScope | None, call_id: object, broken: Broken | None) -> None:
        """Notes a broken or a whole call. The run's last answer with this id counts. `scope`: None outside a run."""
        if not isinstance(call_id, str) or not call_id:
            return
        # Register the call also for tools outside a run, such as in a thread that does not know its run.
        keys: list[_Key] = [("" if scope is None else scope.run_id, call_id), (None, call_id)]
        with self._lock:
            for key in keys:
                self._broken.pop(key, None)
                self._whole.pop(key, None)
                if broken is None:
                    self._whole[key] = None
                else:
                    self._broken[key] = broken
            for known, most in ((self._broken, _KNOWN_MAX), (self._whole, _WHOLE_MAX)):
                while len(known) > most:
                    del known[next(iter(known))]

    def broken(self, core: Core, call_id: object) -> Broken | None:
        """The broken call of the current run, else of a run around it, or of a model call outside any run."""
        if not isinstance(call_id, str):
            return None
        context = current_of(core)
        if context is None:
            return self._broken.get((None, call_id))
        while context is not None:
            key = (context.scope.run_id, call_id)
            if key in self._broken or key in self._whole:
                return self._broken.get(key)
            context = context.outer
        return self._broken.get(("", call_id))

    def is_cut(self, core: Core, call_id: object) -> bool:
        broken = self.broken(core, call_id)
        return broken is not None and broken.code == "cut"


def record_never_ran(
    guard: Guard,
    tool_name: str,
    code: NeverRan | None,
    answer: str,
    arguments: object,
    call_id: object = None,
    ended: RunScope | None = None,
) -> None:
    """
    Records a call that never ran, on the current run or in a run of its own. `code`: None if nothing was wrong with the call.
    `answer`: what the model reads. `arguments`: as the model wrote them. `ended`: the call's run, if that ends.
    """
    core, current = guard.core, current_of(guard.core)
    core.asked_calls.goes_on(core, call_id)
    broken = core.asked_calls.broken(core, call_id)
    if broken is not None:
        # A framework may have repaired the arguments, and does not know that the answer was cut.
        code = broken.code if code in ("unreadable", "unfit") else code
        arguments = arguments if broken.text is None else broken.text
    scope = ended or (begin_scope(core, {}) if current is None else current.scope)
    facts: dict[str, Any] = {"toolName": tool_name, "outcome": "never_ran", "error": {"message": answer}}
    more = {"reasonCode": code, "toolCallId": call_id, "arguments": arguments}
    facts |= {name: one for name, one in more.items() if one is not None}
    span = Span(core.ids.span(), core.span_of(scope).span_id)
    event_id = core.record(scope, "TOOL_CALL", tool_name, facts, span=span)
    if code != "declined":
        payload = {"toolName": tool_name, "reasonCode": code}
        guard.trouble(scope, tool_name, IssueReport("TOOL_FAILED", payload=payload, event_id=event_id))
        guard.observe_loop(scope, tool_name, arguments)
    if current is None and ended is None:
        Run(core, scope).end("FAILED", {"error": answer})


def tool_calls_of(core: Core, output: object, finish_reason: object, scope: RunScope | None) -> list[dict[str, Any]]:
    """
    The calls in all candidates of an answer, for LLM_CALL. Arguments that cannot be read, or that may miss their
    end, stay as received. Notes which calls were cut. `scope`: the run of the answer; None outside a run.
    """
    tool_calls: list[dict[str, Any]] = []
    for message in output if isinstance(output, list) else [output]:
        calls = message.get("toolCalls") if isinstance(message, Mapping) else None
        reason = (message.get("finishReason") if isinstance(message, Mapping) else None) or finish_reason
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, Mapping):
                continue
            one = {name: call[name] for name in ("id", "name") if call.get(name) is not None}
            arguments = call.get("arguments")
            cut = is_cut((call.status if isinstance(call, ReceivedCall) else None) or reason)
            text = arguments if isinstance(arguments, str) else None
            is_broken = bool(text) and not isinstance(text, FreeText)
            broken = Broken("cut" if cut else "unreadable", text and text[:_TEXT_CHARS]) if cut or is_broken else None
            if broken is not None:
                one |= {"problem": broken.code, **({} if arguments is None else {"arguments": arguments})}
            core.asked_calls.note(scope, call.get("id"), broken)
            tool_calls.append(one)
    return tool_calls
