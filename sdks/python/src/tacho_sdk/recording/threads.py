"""Takes the current run into other threads, which have none of their own."""

from __future__ import annotations

import concurrent.futures
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

from .context import CURRENT

P = ParamSpec("P")
T = TypeVar("T")

_Standard = concurrent.futures.ThreadPoolExecutor
_lock = threading.Lock()


class ThreadPoolExecutor(_Standard):
    """Like `concurrent.futures`. Each call runs in the run and the span that are current when it is submitted."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return super().submit(in_this_run(fn), *args, **kwargs)


def in_this_run(function: Callable[P, T]) -> Callable[P, T]:
    """The function, in the run and the span that are current now: for a thread, or a pool of another library."""
    around = CURRENT.get()
    if around is None:
        return function

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        token = CURRENT.set(around)
        try:
            return function(*args, **kwargs)
        finally:
            CURRENT.reset(token)

    return run


def carry_runs() -> Callable[[], None]:
    """
    Makes every ThreadPoolExecutor of the process carry the current run, also the one of `run_in_executor` and existing ones.
    Returns a function that undoes it.
    """
    with _lock:
        before: Any = _Standard.submit
        if hasattr(before, "__tacho__"):
            return _nothing

        @functools.wraps(before)
        def submit(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            return before(self, in_this_run(fn), *args, **kwargs)

        submit.__tacho__ = True  # type: ignore[attr-defined]
        _Standard.submit = submit  # type: ignore[method-assign]

    def undo() -> None:
        with _lock:
            if _Standard.submit is submit:
                _Standard.submit = before  # type: ignore[method-assign]

    return undo


def _nothing() -> None:
    pass
