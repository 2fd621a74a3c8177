"""
The runs that this process began and that have not ended yet.

When the process ends, a run with a block ends too: nothing else can end it. The end of a run without one may follow in
another process, so it only ends with an exception or a signal. If a run was handed over, the other process ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import get_ident

from ..delivery.lock import Lock
from .context import RunScope

# A host that never ends its runs must not fill the memory.
_MAX = 10_000


@dataclass(eq=False, repr=False)
class _OpenRun:
    scope: RunScope
    has_block: bool
    thread: int


class OpenRuns:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """A forked process did not begin the runs of its parent."""
        self._lock = Lock()
        self._open: dict[int, _OpenRun] = {}

    def add(self, scope: RunScope, has_block: bool) -> None:
        with self._lock:
            if len(self._open) >= _MAX:
                self._open.pop(next(iter(self._open)))
            self._open[id(scope)] = _OpenRun(scope, has_block, get_ident())

    def remove(self, scope: RunScope) -> None:
        with self._lock:
            self._open.pop(id(scope), None)

    def of_process(self, is_normal: bool) -> list[RunScope]:
        """The runs that end with the process, the newest first."""
        return [run.scope for run in self._newest_first() if run.has_block or not is_normal]

    def of_thread(self, thread: int) -> list[RunScope]:
        """The runs that end with an exception of the thread: a block ends its run itself."""
        return [run.scope for run in self._newest_first() if run.thread == thread and not run.has_block]

    def _newest_first(self) -> list[_OpenRun]:
        with self._lock:
            return list(reversed(self._open.values()))
