"""
What clients do when their process ends or forks.

At the normal end, `atexit` delivers what is queued. Children of multiprocessing end without `atexit`, but run the finalizers
of `multiprocessing.util`. After a fork, each client of the child begins anew: the parent delivers what was queued before.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Protocol


class Ending(Protocol):
    def flush_at_end(self) -> None: ...

    def after_fork(self) -> None: ...


_endings: weakref.WeakSet[Ending] = weakref.WeakSet()
# Modules of multiprocessing's form, whose children end with os._exit. Celery uses billiard.
_FORKING = ("multiprocessing.util", "billiard.util")
_prepared: set[tuple[str, int]] = set()


class _Key:
    """What multiprocessing calls back for: it keeps only weak references."""


_key = _Key()


def watch(ending: Ending) -> None:
    """Delivers at the end of the process what the client has queued then."""
    _endings.add(ending)
    _prepare()


def forget(ending: Ending) -> None:
    _endings.discard(ending)


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
        util.Finalize(None, _flush_all, exitpriority=10)  # type: ignore[attr-defined]
    except Exception:
        pass


def _flush_all() -> None:
    for ending in list(_endings):
        ending.flush_at_end()


def _after_fork() -> None:
    for ending in list(_endings):
        ending.after_fork()
    _prepare()


atexit.register(_flush_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
