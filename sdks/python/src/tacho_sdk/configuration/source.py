"""
Keeps the runtime configuration of the environment: one frozen object, always replaced whole.

  idle --first use--> loading --200, all checked / 304--> waiting --interval, with jitter--> loading …
                         |                                   ^
                         +--no answer, a wrong one, 429, 5xx-+   after a backoff; keeps the loaded configuration
                         +--401, 403--> stopped                  keeps the loaded configuration
  any --close--> stopped
  any --fork--> the same state in the child, with a thread of its own

If the service offers it, another thread always keeps a request open that waits for a change.

The thread stands still while the machine sleeps, and in a frozen function. So a call that is judged after a refresh was due
waits for one, within bounds.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from ..delivery.retry import wait_seconds
from ..delivery.transport import NoReply, Reply, StopSignal
from ..delivery.worker import Worker
from .configuration import Configuration, NotAConfiguration, check_configuration
from .disk_cache import DiskCache, Kept

if TYPE_CHECKING:
    from ..core import Core

Listener = Callable[[Configuration, "Configuration | None"], object]
Source = Literal["service", "disk"]
# 500 policies and 4 MiB of prompts, even if every character is escaped.
_REPLY_BYTES_MAX = 32 * 1_048_576
# A refresh that begins within this time is on time, so no call waits for it, even on a slow machine.
_LATE_SECONDS = 1.0
_CLOSING_HEADER = "x-tacho-closing"
_GOODBYE_SECONDS = 1.0
_WAIT_HEADER = "x-tacho-wait"
_WAIT_SECONDS_MAX = 300
# Delay of long polls: a short process sends one request, and a service that does not hold polls open is not flooded.
_WATCH_AFTER_SECONDS = 1.0


@dataclass(frozen=True)
class ConfigurationState:
    """The current configuration, and how fresh it is."""

    current: Configuration | None
    age: float | None
    """Seconds since the service last confirmed it; None if nothing is loaded."""
    source: Source | None
    """`disk`: from the file, not yet confirmed by the service."""


class RuntimeConfiguration:
    """The deployed prompts and policies. They are loaded on first use and refreshed after that."""

    def __init__(self, core: Core) -> None:
        self._core = core
        settings = core.settings
        self._cache: DiskCache | None = None
        if settings.configuration_file:
            self._cache = DiskCache(settings.configuration_file, core.identity, settings.configuration_max_age, self._warn)
        self._listeners: list[Listener] = []
        # Called with each new configuration before it is used.
        self.prepare: Callable[[Configuration], object] = lambda _configuration: None
        self._current: Configuration | None = None
        self._source: Source | None = None
        self._confirmed_at = 0.0
        self._etag: str | None = None
        self._is_stopped = not settings.enabled
        self._is_started = False
        self._is_old_reported = False
        self._is_known = False
        """The service has answered this process."""
        self._is_forked = False
        """The process was forked: its parent has the same id, and may still run."""
        self._due = math.inf
        self._worker = Worker("tacho-configuration", self._step)
        self._watcher = Worker("tacho-configuration-watch", self._watch)
        self._make_anew()

    def reset(self) -> None:
        """Continues in a forked process with what is loaded, with a thread of its own if its parent had one."""
        self._is_known, self._is_forked = False, True
        self._make_anew()
        if self._is_started and not self._is_stopped:
            if self._current is not None:
                self._schedule(self._core.settings.refresh_interval * random.random())
                # Many processes may be forked at once, so each refreshes only at its next call.
                self._due = 0.0
            self._worker.wake()

    def _make_anew(self) -> None:
        self._changed = threading.Condition()
        self._loading = threading.Lock()
        # Whether the first attempt has ended.
        self._is_tried = self._current is not None
        self._failures = 0
        self._next = 0.0
        # The time until which calls wait for a late refresh.
        self._wait_until: float | None = None
        # Seconds for which the service offers to hold a request open; 0: it does not.
        self._offered = 0
        self._watch_from = 0.0
        self._stop_watching = StopSignal()
        self._worker.reset()
        self._watcher.reset()

    def _schedule(self, delay: float) -> None:
        self._next = time.monotonic() + delay
        # The monotonic clock may stand still while the machine sleeps.
        self._due = time.time() + delay

    @property
    def state(self) -> ConfigurationState:
        age = max(0.0, time.time() - self._confirmed_at) if self._current else None
        return ConfigurationState(self._current, age, self._source)

    @property
    def current(self) -> Configuration | None:
        return self._current

    def start(self) -> None:
        """Starts refreshing; does nothing if already started."""
        if not self._is_started and not self._is_stopped:
            self._is_started = True
            self._worker.wake()

    def ready(self, timeout: float = 5.0) -> bool:
        """Waits until a configuration is loaded or the first attempt failed, at most `timeout` seconds. True if loaded."""
        self.start()
        deadline = time.monotonic() + timeout
        with self._changed:
            while self._current is None and not self._is_tried and not self._is_stopped:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
        return self._current is not None

    async def aready(self, timeout: float = 5.0) -> bool:
        """The same for asyncio."""
        if self._current is not None:
            self.start()
            return True
        return await asyncio.to_thread(self.ready, timeout)

    @property
    def _is_late(self) -> bool:
        """Whether a refresh was due and did not begin: the machine slept, or the thread does not exist."""
        is_due = max(time.monotonic() - self._next, time.time() - self._due) > _LATE_SECONDS
        return is_due and self._current is not None and self._is_started and not self._is_stopped

    def _catch_up(self, timeout: float) -> None:
        """Waits for the late refresh. Calls that wait for the same refresh share one deadline."""
        now = time.monotonic()
        with self._changed:
            if not self._is_late:
                return
            if self._wait_until is None:
                self._wait_until = now + timeout
                self._next = 0.0
            until = min(self._wait_until, now + timeout)
        self._worker.wake()
        with self._changed:
            while self._is_late and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)

    @property
    def _old_age(self) -> float | None:
        """Age of the policies in seconds; None unless they are too old. Reports it once, until the service confirms them."""
        age = self.state.age
        if age is None or age <= self._core.settings.configuration_old_after:
            self._is_old_reported = False
            return None
        if not self._is_old_reported:
            self._is_old_reported = True
            message = f"Calls are judged by policies of {round(age)} s ago: the service could not confirm them since."
            self._core.diagnostics.report("warning", "policies_old", message)
        return age

    def refresh(self) -> bool:
        """Refreshes now. True if the service confirmed the current configuration or sent a newer one."""
        if self._is_stopped:
            return False
        is_fresh = self._load()
        self._is_started = True
        self._worker.wake()
        return is_fresh

    async def arefresh(self) -> bool:
        """The same for asyncio."""
        return await asyncio.to_thread(self.refresh)

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener(current, previous)` after each change. Returns a function that removes it."""
        self._listeners.append(listener)
        self.start()
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _say_goodbye(self, timeout: float) -> None:
        """Closes, and reports the end if the service knows this client."""
        is_due = self._is_known and not self._is_stopped
        self._is_known = False
        if not is_due or timeout <= 0:
            return
        self.close()
        headers = {**self._headers(), _CLOSING_HEADER: "true"}
        self._core.request("GET", "/runtime-config", headers=headers, timeout=min(timeout, _GOODBYE_SECONDS))

    def close(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._stop_watching.set()
        self._worker.wake()
        self._watcher.wake()

    def _step(self) -> float | None:
        if self._is_stopped:
            return None
        wait = self._next - time.monotonic()
        if wait > 0:
            return wait
        if self._current is None:
            self._read_cache()
        self._load()
        return None if self._is_stopped else max(0.0, self._next - time.monotonic())

    def _read_cache(self) -> None:
        stored = self._cache.read() if self._cache else None
        if stored is None:
            return
        try:
            configuration = check_configuration(stored.body)
        except NotAConfiguration:
            return
        self._etag, self._confirmed_at = stored.etag, stored.confirmed_at
        self._swap(configuration, "disk")

    def _load(self) -> bool:
        with self._loading:
            return self._take(self._request("/runtime-config", self._core.settings.request_timeout))

    def _watch(self) -> float | None:
        """Long-polls for a change. The other thread keeps refreshing, because a frozen process misses the answer."""
        seconds = self._offered
        if self._is_stopped or seconds == 0:
            return None
        started_at = time.monotonic()
        if started_at < self._watch_from:
            return self._watch_from - started_at
        self._offered = 0
        timeout = seconds + self._core.settings.request_timeout
        reply = self._request(f"/runtime-config?wait={seconds}", timeout, self._stop_watching)
        if self._is_stopped:
            return None
        if not isinstance(reply, Reply):
            # The answer is lost: the other thread asks again after a backoff, and its answer offers the next wait.
            with self._loading:
                self._failures += 1
                self._schedule(wait_seconds(self._failures, None, time.time(), random.random()))
            return self._worker.wake()
        if reply.status == 304:
            self._watch_from = started_at + _WATCH_AFTER_SECONDS
        with self._loading:
            self._take(reply)
        return 0.0

    def _request(self, path: str, timeout: float, stop: StopSignal | None = None) -> Reply | NoReply:
        headers, most = self._headers(), _REPLY_BYTES_MAX
        return self._core.request("GET", path, headers=headers, timeout=timeout, stop=stop, max_reply_bytes=most)

    def _take(self, reply: Reply | NoReply) -> bool:
        retry_after = reply.header("retry-after") if isinstance(reply, Reply) else None
        try:
            is_fresh = self._use(reply)
        except NotAConfiguration as error:
            is_fresh = self._fail(str(error))
        settings = self._core.settings
        delay = settings.refresh_interval * (0.8 + 0.4 * random.random())
        if self._failures > 0:
            delay = wait_seconds(self._failures, retry_after, time.time(), random.random())
        self._schedule(delay)
        with self._changed:
            self._is_tried = True
            self._wait_until = None
            self._changed.notify_all()
        if is_fresh and isinstance(reply, Reply):
            self._note_offer(reply.header(_WAIT_HEADER) or "")
        return is_fresh

    def _note_offer(self, offer: str) -> None:
        seconds = int(offer) if offer.isascii() and offer.isdigit() and len(offer) <= 3 else 0
        if not 0 < seconds <= _WAIT_SECONDS_MAX:
            return
        if self._watch_from == 0.0:
            self._watch_from = time.monotonic() + _WATCH_AFTER_SECONDS
        self._offered = seconds
        self._watcher.wake()

    def _headers(self) -> dict[str, str]:
        headers = {"if-none-match": self._etag} if self._etag else {}
        # Shows operators which client has which revision. Only printable ASCII can be sent in a header.
        client_id = self._core.settings.client_id
        if client_id.isascii() and client_id.isprintable():
            headers["x-service-client-id"] = client_id
        return headers

    def _use(self, reply: Reply | NoReply) -> bool:
        if isinstance(reply, NoReply):
            return self._fail(reply.message)
        if reply.status == 304 and self._current is not None:
            self._confirm("service")
            if self._cache and self._cache.is_due:
                self._keep(self._current)
            return True
        if reply.status == 304:
            # "Not modified" means nothing to a client without a configuration: request it in full next time.
            self._etag = None
        if reply.status in (401, 403):
            self._is_stopped = True
            scopes = "The API key is unknown, expired or revoked."
            if reply.status == 403:
                scopes = "The key needs the scopes config:read and policies:read."
            message = f"The service refused the configuration: {reply.status}. {scopes}"
            self._core.diagnostics.report("error", "configuration_refused", message)
            return False
        if reply.status != 200:
            return self._fail(f"status {reply.status}")
        configuration = check_configuration(reply.json)
        self._etag = reply.header("etag")
        previous = self._current
        self._confirm("service")
        if previous is None or configuration.revision != previous.revision:
            self._swap(configuration, "service")
        self._keep(configuration)
        return True

    def _keep(self, configuration: Configuration) -> None:
        if self._cache:
            self._cache.write(Kept(self._etag, self._confirmed_at, _body_of(configuration)))

    def _confirm(self, source: Source) -> bool:
        self._failures = 0
        self._is_known = not self._is_forked
        self._source = source
        self._confirmed_at = time.time()
        return True

    def _fail(self, why: str) -> bool:
        self._failures += 1
        used = "the last loaded ones stay in use" if self._current else "fallbacks are used"
        base_url = self._core.settings.base_url
        message = f"Could not load prompts and policies from {base_url} ({why}); {used}."
        self._core.diagnostics.report("warning", "configuration_unavailable", message)
        return False

    def _swap(self, configuration: Configuration, source: Source) -> None:
        self.prepare(configuration)
        previous, self._current = self._current, configuration
        self._source = source
        with self._changed:
            self._changed.notify_all()
        for listener in list(self._listeners):
            try:
                listener(configuration, previous)
            except Exception:
                message = "A listener of configuration changes raised an error."
                self._core.diagnostics.report("warning", "listener_failed", message)

    def _warn(self, message: str) -> None:
        self._core.diagnostics.report("warning", "configuration_not_kept", message)


def _body_of(configuration: Configuration) -> object:
    """The body as the service sends it."""

    def camel(value: object) -> object:
        return {_camel(name): camel(of) for name, of in value.items()} if isinstance(value, dict) else value

    return {
        "revision": configuration.revision,
        "prompts": [camel(asdict(prompt)) for prompt in configuration.prompts],
        "policies": [camel(asdict(policy)) for policy in configuration.policies],
        "toolLabels": [asdict(labels) for labels in configuration.tool_labels],
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
