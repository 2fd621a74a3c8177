"""A daemon thread that runs while there is work and ends after some idle time."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextvars import Context

from . import process_end

_IDLE_SECONDS = 10.0


class Worker:
    """
    Runs `step` again and again. `step` returns the seconds until it has something to do, or None if it has nothing to do
    until `wake`. The thread starts at the first `wake`, and again in a forked process.
    """

    def __init__(self, name: str, step: Callable[[], float | None]) -> None:
        self._name = name
        self._step = step
        self.reset()

    def reset(self) -> None:
        """Forgets the thread: a forked process does not have it."""
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_woken = False
        self._is_stopped = False
        # A step must not run twice at once: at the end of the process, `drain` may take over.
        self._stepping = threading.RLock()

    def wake(self) -> bool:
        """False if a thread is needed and must not start, because the process ends: use `drain`."""
        if sys.is_finalizing():
            return False  # A thread that is still alive here is frozen.
        with self._condition:
            self._is_woken = True
            if self._thread is not None and self._thread.is_alive():
                self._condition.notify()
                return True
            if process_end.is_ending():
                return False
            try:
                self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
                # The work belongs to no run.
                Context().run(self._thread.start)
                return True
            except RuntimeError:
                self._thread = None
                return False

    def drain(self, is_done: Callable[[], bool], deadline: float) -> None:
        """Does the work on the caller's thread, until it is done or the time is up."""
        while not is_done() and time.monotonic() < deadline:
            if not self._stepping.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return
            try:
                wait = self._step()
            finally:
                self._stepping.release()
            if wait is None:
                return
            time.sleep(max(0.0, min(wait, deadline - time.monotonic())))

    def stop(self, seconds: float) -> None:
        """Ends the thread before the interpreter freezes it. Waits at most `seconds` for an answer under way."""
        with self._condition:
            thread, self._is_stopped = self._thread, True
            self._condition.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _loop(self) -> None:
        condition = self._condition
        while True:
            with condition:
                self._is_woken = False
                if self._is_stopped:
                    self._thread = None
                    return
            with self._stepping:
                wait = self._step()
            with condition:
                if self._is_woken or self._is_stopped:
                    continue
                condition.wait(_IDLE_SECONDS if wait is None else max(0.0, wait))
                if wait is None and not self._is_woken:
                    self._thread = None
                    return
