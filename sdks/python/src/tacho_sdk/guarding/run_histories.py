"""
The history of each run, for conditions on its past. Recorded from the first event after a policy needs it. A run that began
earlier has a partial history, which says so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import Context
from typing import Any
from weakref import WeakMethod

from ..configuration.configuration import Configuration, Policy, ToolLabels
from ..core import now_ms
from ..limits import PAYLOAD_LEVELS
from ..policy.history.recorded_history import RecordedHistory
from ..policy.history.run_history import RunHistory
from ..policy.history.tool_labels import faults_of_labels, preparations_for, read_history
from ..recording.context import RunScope
from ..recording.plain import to_plain
from ..recording.run_state import RunState
from .rules import GuardDefaults

# Maximum user inputs kept of a run whose history no policy needs yet.
_SAID_MAX = 20


class RunHistories:
    def __init__(
        self,
        current: Callable[[], Configuration | None],
        defaults: GuardDefaults,
        warn: Callable[[str, str], None],
        lock: Callable[[], AbstractContextManager[object]],
    ) -> None:
        """`warn` gets a code and a message. `lock`: callers of this object hold it."""
        self._turns = OtherTurns(lock)
        self._current, self._defaults, self._warn = current, defaults, warn
        self._checked: Configuration | None = None
        # The checked label rules, and the configuration that they came from.
        self._labels: tuple[ToolLabels, ...] | None = None
        self._labels_of: Configuration | None = None
        self._is_needed = read_history(defaults.policies)
        # Set if a policy of a single tool needs histories.
        self._is_forced = self._is_needed
        self._preparations = preparations_for(defaults.policies)

    def observe(self, scope: RunScope, event_type: str, payload: Mapping[str, Any] | None) -> None:
        """Adds an event of a run, before it is masked."""
        state = scope.state
        if self._needs():
            recorded = self._of(state)
            recorded.see(event_type, payload)
            for prepare in self._preparations:
                prepare(recorded.history)
        elif event_type == "LLM_CALL":
            state.messages = payload.get("messages") if isinstance(payload, Mapping) else None
        elif event_type == "USER_INPUT" and len(state.user_inputs) < _SAID_MAX:
            state.user_inputs.append(payload)
        elif event_type in ("TOOL_CALL", "USER_INPUT"):
            state.is_unseen = True

    def labels(self) -> Iterable[ToolLabels]:
        """Labels of tools, from the service and the host."""
        current = self._current()
        if self._labels is None or current is not self._labels_of:
            labels = (*(current.tool_labels if current else ()), *self._defaults.labels)
            if self._labels != labels:
                for fault in faults_of_labels(labels):
                    message = f"A condition of labels cannot be used, so they are `unknown`: {fault}"
                    self._warn("label_condition_invalid", message)
            self._labels, self._labels_of = labels, current
        return self._labels

    def of(self, scope: RunScope, of_tool: Iterable[Policy]) -> RunHistory | None:
        """History of a run; None if no policy needs it. `of_tool`: policies of one tool."""
        self._is_forced = self._is_forced or read_history(of_tool)
        return self._of(scope.state).history if self._needs() else None

    def _needs(self) -> bool:
        current = self._current()
        if current is not self._checked:
            self._checked = current
            self._is_needed = current is not None and read_history(current.policies)
            served = () if current is None else current.policies
            self._preparations = preparations_for((*served, *self._defaults.policies))
        return self._is_needed or self._is_forced

    def _of(self, state: RunState) -> RecordedHistory:
        if isinstance(state.history, RecordedHistory):
            return state.history
        recorded = RecordedHistory(self.labels, now_ms, _plain, self._turns.read)
        if state.is_unseen:
            recorded.history.continues(None)
        elif state.is_resumed:
            recorded.history.continues(state.carried_history)
        for payload in state.user_inputs:
            recorded.see("USER_INPUT", payload)
        recorded.converse(state.messages)
        state.messages, state.user_inputs = None, []
        state.history = recorded
        return recorded

    async def read(self, state: RunState) -> None:
        """Reads what the history does not have yet, in parts: a decision would read all of it at once on the event loop."""
        history = state.history
        while isinstance(history, RecordedHistory):
            with self._turns.lock():
                if not history.history.read_part():
                    return
            await asyncio.sleep(0)


class OtherTurns:
    """Reads long outputs in other turns of an event loop: each turn reads one part of one output, across all runs."""

    def __init__(self, lock: Callable[[], AbstractContextManager[object]]) -> None:
        self.lock = lock
        # Weak references: the history of an ended run is not needed, and its loop may end before the outputs are read.
        self._waiting: deque[WeakMethod[Callable[[], bool]]] = deque()
        # The loop that runs the next turn. It may end before that.
        self._loop: asyncio.AbstractEventLoop | None = None

    def read(self, read_part: Callable[[], bool]) -> bool:
        """Returns False if the caller is not on a loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        self._waiting.append(WeakMethod(read_part))
        if self._loop is not loop:
            self._loop = loop
            self._await_turn(loop)
        return True

    def _await_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        # An empty context, because the callback belongs to no run.
        loop.call_soon(self._take_turn, loop, context=Context())

    def _take_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        with self.lock():
            if self._loop is not loop:
                return
            # Reset first, because a signal may interrupt the part.
            self._loop = None
            self._read_part()
            if self._waiting and self._loop is None:
                self._loop = loop
                self._await_turn(loop)

    def _read_part(self) -> None:
        while self._waiting:
            read_part = self._waiting[0]()
            if read_part is not None and read_part():
                return
            self._waiting.popleft()
            if read_part is not None:
                return


def _plain(value: object) -> Any:
    plain_value = to_plain({"value": value}, PAYLOAD_LEVELS)
    return object() if plain_value.is_cut else plain_value.value.get("value")
