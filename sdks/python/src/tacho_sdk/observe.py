"""A decorator for any function: a span with its input and output, and a run around it if there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .guarding.arguments import Arguments, unpacked
from .limits import PAYLOAD_LEVELS
from .recording.block import Block
from .recording.plain import read_safely, to_plain
from .recording.run import Run, SpanBlock, begin_scope, failure_of, outcome_of

if TYPE_CHECKING:
    from .core import Core


class ObserveBlock(Block):
    """Made by `Tacho.observe`."""

    def __init__(self, core_of: Callable[[], Core], name: str | None, content: bool) -> None:
        super().__init__()
        self._core_of = core_of
        self._name = name
        self._content = content
        self._payload: dict[str, object] = {}
        self._own: Run | None = None

    def _copy(self) -> Block:
        return ObserveBlock(self._core_of, self._name, self._content)

    def _called(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        whole = unpacked(function)[0]
        self._name = self._name or str(getattr(whole, "__name__", None) or type(whole).__name__)
        if self._content:
            # Record the input before the call: the function may change its arguments.
            unread: object = "[unreadable]"
            tool_input = read_safely(lambda: Arguments(function, args, named).input(), unread)
            self._payload.update(to_plain({"input": tool_input}, PAYLOAD_LEVELS).value)

    def _returned(self, output: object) -> None:
        if self._content and output is not None:
            self._payload["output"] = output

    def _begin(self) -> None:
        core = self._core_of()
        scope = core.current_scope()
        if scope is None:
            scope = begin_scope(core, {})
            self._own = Run(core, scope)
        self._run = Run(core, scope)
        self._span = SpanBlock(self._run, self._name or "step", self._payload)
        self._opened = self._span._begin()

    def _enter(self) -> None:
        self._tokens.append(self._run._enter(self._opened._span))

    def _finish(self, error: BaseException | None) -> None:
        self._span._finish(error)
        if self._own is not None:
            status = outcome_of(error)
            self._own.end(status, failure_of(status, error))
