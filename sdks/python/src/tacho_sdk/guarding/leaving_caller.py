r"""
The caller of a guarded call. If it leaves while a person is asked, nothing runs under the approval.

  waits --a person decides--> over
    |  \--another process continues the run--> handed over
    \--the caller is cancelled, aborts or gives up; its run or its process ends--> withdrawn
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.thread import _WorkItem
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal

from ..delivery.lock import Lock
from ..delivery.transport import StopSignal
from ..recording.plain import read_safely

if TYPE_CHECKING:
    from ..recording.context import RunScope

LeaveReason = Literal["timeout", "cancelled", "aborted", "run_ended", "process_ended"]


class LeavingCaller:
    def __init__(self, waiting: LeavingCallers, scope: RunScope, stop: StopSignal | None) -> None:
        self.scope = scope
        self.stop = StopSignal()
        """Ends the wait."""
        self.gone: LeaveReason | Literal["handed_over"] | None = None
        self.on_leave: Callable[[LeaveReason], object] | None = None
        """Called once, when the caller leaves. Set while a request is known."""
        self.is_named = False
        """A handle names the call, so another process may continue it."""
        self._waiting = waiting
        self._forget: list[Callable[[], object]] = []
        waiting.add(self)
        if stop is not None:
            self._forget.append(stop.listen(lambda: self.leave("aborted")))
        self._thread = get_ident()
        self._futures: list[Future[Any]] = []
        self.find_callers()
        if scope.is_ended:
            self.leave("run_ended")

    def find_callers(self) -> None:
        """Called again during the wait, because a caller may start this thread first and wait for it later."""
        futures, has_left = _callers_of(self._thread)
        for future in futures:
            if future not in self._futures:
                self._futures.append(future)
                self._forget.append(_listen(future, lambda: self.leave("cancelled")))
        if has_left:
            self.leave("cancelled")

    def leave(self, reason: LeaveReason | Literal["handed_over"]) -> None:
        if not self._waiting.remove(self):
            return
        self.gone = reason
        self._unlisten()
        if reason != "handed_over" and self.on_leave is not None:
            on_leave = self.on_leave
            read_safely(lambda: on_leave(reason), None)
        self.stop.set()

    def close(self) -> bool:
        """Call it when the call runs or was refused. Returns whether the caller is still there."""
        if self.gone is None and _callers_of(self._thread)[1]:
            self.leave("cancelled")
        self._waiting.remove(self)
        self._unlisten()
        return self.gone is None

    def _unlisten(self) -> None:
        while self._forget:
            read_safely(self._forget.pop(), None)


class LeavingCallers:
    """The callers that wait in a client."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """In a forked process, no caller of the parent waits."""
        self._lock = Lock()
        self._callers: set[LeavingCaller] = set()

    def add(self, caller: LeavingCaller) -> None:
        with self._lock:
            self._callers.add(caller)

    def remove(self, caller: LeavingCaller) -> bool:
        """Returns whether the caller still waited."""
        with self._lock:
            if caller not in self._callers:
                return False
            self._callers.remove(caller)
            return True

    def of(self, scope: RunScope | None) -> list[LeavingCaller]:
        with self._lock:
            return [caller for caller in self._callers if scope is None or caller.scope.run_id == scope.run_id]

    def leave(self, reason: LeaveReason | Literal["handed_over"], scope: RunScope | None = None) -> None:
        """Called before the run's outcome is recorded, so that its waiting calls are recorded first."""
        for caller in self.of(scope):
            caller.leave(reason)


_Callers = tuple[list[Future[Any]], bool]


def _callers_of(thread: int) -> _Callers:
    """
    The futures of this thread, of the threads that wait for it, and so on; and whether one of their callers has left. A thread
    cannot be cancelled: asyncio, LangGraph and CrewAI call `cancel` on its future in vain, and continue without it. Apart from
    that call, only an exception that ends the `with` block of the executor shows that the caller left.
    """
    nothing: _Callers = ([], False)
    return read_safely(lambda: _read_callers(thread), nothing)


def _read_callers(thread: int) -> _Callers:
    stacks = _stacks()
    waiting: list[tuple[int, Any]] = [(thread, stacks.pop(thread, None))]
    callers: list[Future[Any]] = []
    has_left = False
    while waiting:
        worker, stack = waiting.pop()
        for frame in _frames(stack):
            has_left = has_left or _is_abandoned(frame)
            if frame.f_code is _WorkItem.run.__code__:
                future = frame.f_locals["self"].future
                callers.append(future)
                has_left = has_left or any(_leaves(one, worker) for one in stacks.values())
                waiting += [(one, stacks.pop(one)) for one in _threads_that_wait(stacks, future)]
    return callers, has_left


def _stacks() -> dict[int, Any]:
    """
    The stacks of all threads. CPython holds an interpreter lock while it makes them. Garbage that is collected then, such as an
    open response, may wait for another thread that waits for the lock: a deadlock (gh-106883, not fixed in 3.11).
    """
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if is_collecting:
            gc.enable()


def _is_abandoned(frame: Any) -> bool:
    """Whether the frame is of a thread of anyio (`abandon_on_cancel`) whose caller was cancelled, which no future shows."""
    is_anyio = frame.f_code.co_name == "run" and frame.f_globals.get("__name__") == "anyio._backends._asyncio"
    return is_anyio and bool(frame.f_locals["future"].cancelled())


def _leaves(stack: Any, worker: int) -> bool:
    """Whether an exception ends the `with` block of this thread's executor."""
    return any(
        frame.f_code is Executor.__exit__.__code__
        and frame.f_locals["exc_val"] is not None
        and worker in {one.ident for one in frame.f_locals["self"]._threads}
        for frame in _frames(stack)
    )


def _frames(frame: Any) -> Iterator[Any]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _threads_that_wait(stacks: dict[int, Any], future: Future[Any]) -> list[int]:
    loops = {read_safely(lambda one=one: one.get_loop()._thread_id, None) for one in _tasks_that_wait(future)}  # type: ignore[misc]
    return [thread for thread, stack in stacks.items() if thread in loops or any(_waits(one, future) for one in _frames(stack))]


def _waits(frame: Any, future: Future[Any]) -> bool:
    """Whether the frame waits for the future: in `future.result()`, `wait`, `as_completed` or `map`."""
    if frame.f_globals.get("__name__") != "concurrent.futures._base":
        return False
    held = list(frame.f_locals.values())
    return future in held or any(future in one for one in held if isinstance(one, (list, set)))


def _tasks_that_wait(future: Any) -> list[asyncio.Future[Any]]:
    """The asyncio futures that wait for a thread's future: asyncio keeps them in the callback that completes them."""
    cells = [cell for done in list(future._done_callbacks) for cell in getattr(done, "__closure__", None) or ()]
    return [cell.cell_contents for cell in cells if isinstance(cell.cell_contents, asyncio.Future)]


def _listen(caller: Future[Any], listener: Callable[[], object]) -> Callable[[], object]:
    # Stored on the future itself, in one step, because several threads may wait for one caller.
    listeners: list[Callable[[], object]] = vars(caller).setdefault("__tacho__", [])
    kind: Any = type(caller)

    def cancel() -> bool:
        for one in list(listeners):
            one()
        return bool(kind.cancel(caller))

    vars(caller).setdefault("cancel", cancel)
    listeners.append(listener)
    # The caller may have left before.
    if read_safely(lambda: any(one.cancelled() for one in _tasks_that_wait(caller)), False):
        listener()
    return lambda: listeners.remove(listener)
