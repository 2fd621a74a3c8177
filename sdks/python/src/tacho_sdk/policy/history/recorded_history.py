"""
The history of a run, made from its events before they are masked. The user's words and the outputs of unguarded tools come from
the messages of model calls, everything else from guarded calls. The same as recorded-history.ts of the TypeScript engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..facts import Facts
from .run_history import NO_OUTPUT, HistoryCall, Later, RunHistory
from .tool_labels import ToolLabelsLike, labels_of_call

_REMEMBERED_MAX = 1_000
# Longer texts of the user are read again with each model call.
_SAID_CHARS_MAX = 1_000
_MESSAGES_MAX = 10_000

Plain = Callable[[object], Any]


class RecordedHistory:
    def __init__(
        self, rules: Callable[[], Iterable[ToolLabelsLike]], now: Callable[[], float], plain: Plain, later: Later
    ) -> None:
        """
        `now`: Unix time in milliseconds. `plain`: converts any value of the host to the JSON that a model gets. `later`: see
        `RunHistory`.
        """
        self.history = RunHistory(later)
        self._rules, self._now, self._plain = rules, now, plain
        # Texts of the user that were read, because each model call repeats the conversation.
        self._said: dict[str, None] = {}
        # Names and arguments of calls that models asked for, by id.
        self._asked: dict[str, tuple[str, Mapping[str, Any] | None]] = {}
        # Ids of calls whose output was read.
        self._read: dict[str, None] = {}
        # Decisions by tool and input.
        self._decisions: dict[tuple[str, str], str] = {}

    def see(self, event_type: str, payload: Mapping[str, Any] | None) -> None:
        """Adds an event of the run. Events of other types do not change the history."""
        facts = _fields(payload)
        if event_type == "LLM_CALL":
            self.converse(facts.get("messages"))
        elif event_type == "USER_INPUT":
            self.history.add_words(self._plain(payload))
        elif event_type == "POLICY_DECISION":
            self._decided(facts)
        elif event_type == "TOOL_CALL":
            self._ended(facts)

    def converse(self, messages: object) -> None:
        """Adds the conversation so far, from a request to a model."""
        if isinstance(messages, str):
            self._user_said(messages)
        for raw_message in messages[-_MESSAGES_MAX:] if isinstance(messages, (list, tuple)) else ():
            message = _fields(raw_message)
            role, content, call_id = message.get("role"), message.get("content"), message.get("toolCallId")
            calls = message.get("toolCalls")
            for call in calls if isinstance(calls, (list, tuple)) else ():
                self._asked_for(_fields(call))
            if role == "user":
                for text in _texts(content):
                    self._user_said(text)
            if role == "tool" and isinstance(call_id, str):
                self._answered(call_id, content)

    def _user_said(self, text: str) -> None:
        if len(text) > _SAID_CHARS_MAX or _remember(self._said, text):
            self.history.add_words(text)

    def _asked_for(self, call: Mapping[str, Any]) -> None:
        call_id, name = call.get("id"), call.get("name")
        if isinstance(call_id, str) and isinstance(name, str) and call_id not in self._asked:
            arguments = call.get("arguments")
            self._asked[call_id] = (name, arguments if isinstance(arguments, Mapping) else None)
            _forget_oldest(self._asked)

    def _answered(self, call_id: str, content: object) -> None:
        """Adds the output of an unguarded tool."""
        if _remember(self._read, call_id):
            name, asked_input = self._asked.get(call_id, ("", None))
            self._add(name, None, asked_input, True, "ALLOW", self._plain(content))

    def _decided(self, facts: Mapping[str, Any]) -> None:
        action, tool = facts.get("action"), _text(facts.get("toolName"))
        if action == "BLOCK":
            decided_input = facts.get("input")
            self._add(
                tool,
                facts.get("toolServer"),
                decided_input if isinstance(decided_input, Mapping) else None,
                False,
                "BLOCK",
                NO_OUTPUT,
            )
        elif action in ("WARN", "REQUIRE_APPROVAL"):
            self._decisions[_text(facts.get("inputHash")), tool] = str(action)
            _forget_oldest(self._decisions)

    def _ended(self, facts: Mapping[str, Any]) -> None:
        outcome, call_id = facts.get("outcome"), facts.get("toolCallId")
        if outcome == "never_ran" or facts.get("paused"):
            return
        if isinstance(call_id, str):
            _remember(self._read, call_id)
        tool, ended_input, error = _text(facts.get("toolName")), facts.get("input"), facts.get("error")
        # After a failure, a model gets the text of the error.
        if error is None:
            output = self._plain(facts.get("output"))
        else:
            output = str(error) if isinstance(error, BaseException) else self._plain(_fields(error).get("message", error))
        decision = self._decisions.get((_text(facts.get("inputHash")), tool), "ALLOW")
        ok = error is None and outcome in (None, "returned")
        self._add(
            tool, facts.get("toolServer"), ended_input if isinstance(ended_input, Mapping) else None, ok, decision, output
        )

    def _add(
        self, tool: str, server: object, tool_input: Mapping[str, Any] | None, ok: bool, decision: str, output: object
    ) -> None:
        server_name = server if isinstance(server, str) else None
        facts = Facts(tool, tool_input, self._now(), tool_server=server_name, tool_output=output)
        does, labels = labels_of_call(self._rules(), facts)
        self.history.ended(HistoryCall(tool, tool_input, ok, decision, does, labels, output))


def _fields(raw_value: object) -> Mapping[str, Any]:
    return raw_value if isinstance(raw_value, Mapping) else {}


def _text(raw_value: object) -> str:
    return raw_value if isinstance(raw_value, str) else ""


def _texts(content: object) -> list[str]:
    """The texts of a message, which is a text or has parts with texts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, (list, tuple)) else ()
    texts = (text_part.get("text") if isinstance(text_part, Mapping) else text_part for text_part in parts)
    return [text for text in texts if isinstance(text, str)]


def _remember(known: dict[str, None], text: str) -> bool:
    """Adds a text. False if it was already there."""
    if text in known:
        return False
    known[text] = None
    _forget_oldest(known)
    return True


def _forget_oldest(known: dict[Any, Any]) -> None:
    if len(known) > _REMEMBERED_MAX:
        del known[next(iter(known))]
