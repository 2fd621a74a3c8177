"""
What clients do when their process ends or forks.

  running ──SIGTERM, if the host has no handler──▶ ending ──▶ dies of the same signal
     │                                               ▲
     └── end of the main thread (atexit), end of a child of multiprocessing (its finalizers) ──▶ ending

When a process ends, each client ends its open runs, then delivers its queue. From then on, the SDK starts no thread: on Python
3.10 and 3.11, the interpreter would wait for it forever. A later event is delivered by the thread that records it.
After a fork, each client of the child starts with an empty queue, because the parent delivers the earlier events. Background
work, such as the refresh of policies, gets a new thread.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, Protocol

from ..inner_class import inner_class


@inner_class
class HowItEnds:
    cause: BaseException | str
    """The uncaught exception, or a text of the form `class: message`."""
    is_signal: bool = False
    thread: int | None = None
    """Set if only this thread ends."""

    @property
    def is_normal(self) -> bool:
        return isinstance(self.cause, str) and not self.is_signal


class Ending(Protocol):
    def end_runs(self, how: HowItEnds) -> None: ...

    def flush_at_end(self) -> None: ...

    def flush(self) -> object: ...

    def after_fork(self) -> None: ...


# Keeps clients alive until `forget`, so that a client that a function created also delivers its events.
_endings: dict[int, Ending] = {}
# `multiprocessing` and its copy in Celery, billiard: their children end with os._exit.
_FORKING = ("multiprocessing.util", "billiard.util")
_prepared: set[tuple[str, int]] = set()
_is_ending = False
_pid = os.getpid()
# A signal that comes while `_at_exit` delivers ends the process afterwards.
_is_exiting = False
_signal_at_exit: int | None = None


class _Key:
    """The object that multiprocessing keeps a weak reference to."""


_key = _Key()


def is_ending() -> bool:
    """Whether threads must not start any more."""
    return _is_ending or sys.is_finalizing()


def watch(ending: Ending) -> None:
    """At the end of the process, ends the client's open runs and delivers what it has queued."""
    _endings[id(ending)] = ending
    _prepare()
    _listen_to_signal()
    _listen_to_threads()


def forget(ending: Ending) -> None:
    _endings.pop(id(ending), None)
    try:
        if not _endings and signal.getsignal(signal.SIGTERM) is _on_signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    except ValueError:
        pass  # Not the main thread.


def deliver() -> None:
    """Delivers the queues of all clients of this process."""
    for ending in list(_endings.values()):
        ending.flush()


def _prepare() -> None:
    for name in _FORKING:
        util = sys.modules.get(name)
        if util is None or (name, os.getpid()) in _prepared:
            continue
        _prepared.add((name, os.getpid()))
        try:
            util.register_after_fork(_key, lambda _key, util=util: _add_finalizer(util))
            _add_finalizer(util)
        except Exception:
            pass


def _add_finalizer(util: object) -> None:
    """With a priority of zero or more, it also runs when a child ends."""
    try:
        util.Finalize(None, _at_exit, exitpriority=10)  # type: ignore[attr-defined]
    except Exception:
        pass


def _at_exit() -> None:
    global _is_exiting
    _is_exiting = True
    try:
        _end(HowItEnds(_uncaught() or "ProcessExit: The process ended before the run did."))
    except KeyboardInterrupt:
        pass  # The user does not want to wait.
    finally:
        _is_exiting = False
        if _signal_at_exit is not None:
            os.kill(os.getpid(), _signal_at_exit)


def _uncaught() -> BaseException | None:
    """The exception that ended the main thread. None in an interactive session, which continues after its exceptions."""
    error = getattr(sys, "last_value", None)
    is_interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    return error if issubclass(type(error), BaseException) and not is_interactive else None


def _end(how: HowItEnds) -> None:
    global _is_ending
    _is_ending = True
    endings = list(_endings.values())
    for ending in endings:
        ending.end_runs(how)
    for ending in endings:
        ending.flush_at_end()


def _listen_to_signal() -> None:
    """Handles SIGTERM only if it would end the process at once. A handler that the host sets later replaces this one."""
    try:
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _on_signal)
    except ValueError:
        pass  # Only the main thread may.


def _on_signal(number: int, _frame: FrameType | None) -> None:
    global _signal_at_exit
    # A second signal ends the process at once.
    signal.signal(number, signal.SIG_DFL)
    if _is_exiting:
        # The flush below this frame may hold a lock, so another flush would wait for ever.
        _signal_at_exit = number
        return
    try:
        name = signal.Signals(number).name
        _end(HowItEnds(f"{name}: The process was ended by {name}.", is_signal=True))
    finally:
        os.kill(os.getpid(), number)


_before_ours = threading.excepthook


def _listen_to_threads() -> None:
    global _before_ours
    if threading.excepthook is not _on_thread_exception:
        _before_ours, threading.excepthook = threading.excepthook, _on_thread_exception


def _on_thread_exception(thread_error: Any) -> None:
    """Ends runs that this thread began without a block: nothing else ends them."""
    try:
        error = thread_error.exc_value
        if error is not None and not issubclass(type(error), SystemExit) and thread_error.thread is not None:
            how = HowItEnds(error, thread=thread_error.thread.ident)
            for ending in list(_endings.values()):
                ending.end_runs(how)
    except Exception:
        pass
    finally:
        _before_ours(thread_error)


def notice_fork() -> None:
    """Detects a fork without the interpreter, as in uWSGI, which calls no hook of Python."""
    if os.getpid() != _pid:
        _after_fork()


def _after_fork() -> None:
    global _is_ending, _is_exiting, _signal_at_exit, _pid
    _pid = os.getpid()
    _is_ending = _is_exiting = False
    _signal_at_exit = None
    for ending in list(_endings.values()):
        ending.after_fork()
    _prepare()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
