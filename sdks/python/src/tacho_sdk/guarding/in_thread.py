"""Runs blocking work for asyncio on a separate thread: a wait of minutes must not occupy the host's pool."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


async def in_thread(act: Callable[[], T]) -> T:
    """Returns or raises what `act` does. If the caller is cancelled, `act` continues; end it by other means."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(act)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            pass  # The loop is closed: no one waits.

    threading.Thread(target=work, name="tacho-wait", daemon=True).start()
    return await future
