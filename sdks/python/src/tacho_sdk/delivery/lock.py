"""Locks that stay safe while the interpreter ends, and while the host's listener is called."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .diagnostics import Diagnostics


class Lock:
    """
    A reentrant lock. While the interpreter finalizes, only one thread runs. It does not lock, because a frozen thread may
    hold the lock forever.
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
    """A `Lock` with a condition. Diagnostics wait until the thread releases it, because the host's listener may block."""

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
