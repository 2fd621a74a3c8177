"""Locks that stay safe while the interpreter ends, and while the host's listener is called."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .diagnostics import Diagnostics


class Lock:
    """
    A reentrant lock. When the interpreter is finalized, other threads are frozen, perhaps while they hold it. Only one
    thread is left then, and runs without it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not sys.is_finalizing():
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        if not sys.is_finalizing():
            self._lock.release()


class QueueLock(threading.Condition):
    """The same with a condition. Diagnostics wait until their thread releases it: the host's listener may wait for others."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        lock = threading.RLock()
        super().__init__(lock)
        self._own_lock = lock
        self._diagnostics = diagnostics

    def __enter__(self) -> bool:
        self._diagnostics.hold_messages()
        return sys.is_finalizing() or self._own_lock.acquire()

    def __exit__(self, *_: Any) -> None:
        if not sys.is_finalizing():
            self._own_lock.release()
        self._diagnostics.release()

    def notify_all(self) -> None:
        if not sys.is_finalizing():
            super().notify_all()
