"""
A key that a function of the host returns. The SDK calls the function at first use, and again after the service refuses the key.

  unknown --first request--> known --401--> asked again --another key--> the request is repeated once
     ^                        ^                 |
     |                        +--the same key---+  for a while the function is not asked again
     +--the function fails: the request counts as unanswered, so it is tried again with a backoff
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .answer import key_refusal_of
from .lock import Lock
from .transport import REPLY_BYTES_MAX, NoReply, Reply, Request, StopSignal

KEY = re.compile(r"[\x21-\x7e]+\Z")
# Pause before the next call of the function, if it returned the refused key again.
_SAME_KEY_SECONDS = 5.0


class RotatingKey:
    def __init__(self, key_function: Callable[[], str | Awaitable[str]]) -> None:
        self._given = key_function
        self._known = ""
        # Do not ask the host for a key before this time.
        self._not_before = float("-inf")
        self.reset()

    def reset(self) -> None:
        """Forgets the lock, in a forked process."""
        self._lock = Lock()

    def current(self, timeout: float = 10.0) -> str:
        """Raises if the function returns no key in time."""
        with self._lock:
            return self._known or self._ask(timeout)

    def sending(self, send: Request) -> Request:
        """Sends with the key, and after a refusal once more with another key. If both are refused, returns a `NoReply`."""

        def request(
            method: str,
            path: str,
            *,
            timeout: float,
            body: bytes | None = None,
            headers: Mapping[str, str] | None = None,
            stop: StopSignal | None = None,
            max_reply_bytes: int = REPLY_BYTES_MAX,
        ) -> Reply | NoReply:
            def act() -> Reply | NoReply:
                return send(
                    method, path, timeout=timeout, body=body, headers=headers, stop=stop, max_reply_bytes=max_reply_bytes
                )

            try:
                first = self.current(timeout)
                reply = act()
                if not _is_refused(reply):
                    return reply
                again = reply if self._after(first, timeout) == first else act()
            except Exception:
                return NoReply("network", "api_key() gave no key")
            return (
                NoReply("network", "the API key is refused, and api_key() gives no other one") if _is_refused(again) else again
            )

        return request

    def _after(self, refused: str, timeout: float) -> str:
        with self._lock:
            if self._known == refused and time.monotonic() >= self._not_before and self._ask(timeout) == refused:
                self._not_before = time.monotonic() + _SAME_KEY_SECONDS
            return self._known

    def _ask(self, timeout: float) -> str:
        key = self._given()
        if inspect.isawaitable(key):
            key = _awaited(key, timeout)
        if not isinstance(key, str) or not KEY.match(key):
            raise TypeError("no key")
        self._known = key
        return key


def _is_refused(reply: Reply | NoReply) -> bool:
    return isinstance(reply, Reply) and key_refusal_of(reply) == "unauthorized"


def _awaited(key: Awaitable[str], timeout: float) -> Any:
    """Awaits the key in a new thread with its own loop, because this thread may already run a loop."""
    got: list[Any] = []

    async def within() -> None:
        got.append(await asyncio.wait_for(key, timeout))

    def run() -> None:
        # Python would print the error, which may hold a secret.
        with contextlib.suppress(Exception):
            asyncio.run(within())

    thread = threading.Thread(target=run, name="tacho-key", daemon=True)
    thread.start()
    thread.join(timeout)
    return got[0] if got else None
