"""HTTP to the service: reused connections, one deadline for each exchange, and never an exception."""

from __future__ import annotations

# Import at once: if a process forks while the first look-up imports this module, the child can never import it.
import encodings.idna  # noqa: F401
import http.client
import io
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from ..inner_class import inner_class
from .lock import Lock
from .proxy import Proxy, proxy_of

REPLY_BYTES_MAX = 1_048_576
# Servers close idle connections, often after five seconds.
_IDLE_SECONDS = 4.0
_IDLE_MAX = 4


class StopSignal:
    """Ends a request or a wait early, from another thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.RLock()
        self._listeners: list[Callable[[], object]] = []

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        with self._lock:
            self._event.set()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def wait(self, seconds: float) -> bool:
        return self._event.wait(max(0.0, seconds))

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Calls `listener` once it is set. Returns a function that removes the listener."""
        with self._lock:
            self._listeners.append(listener)
        if self.is_set:
            listener()
        return lambda: self._listeners.remove(listener)


@dataclass(frozen=True)
class Reply:
    """The server answered, with any status. `json` is None if the body is not JSON."""

    status: int
    headers: Mapping[str, str]
    json: Any

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        return self.headers.get(name)


@inner_class
class NoReply:
    """The request got no usable answer. It may still have arrived."""

    reason: Literal["timeout", "aborted", "network", "reply_too_large"]
    message: str
    """Message for a diagnostic; contains no key and no body."""


class Request(Protocol):
    """Sends one request to `path` under /openapi/v1 and never raises."""

    def __call__(
        self,
        method: str,
        path: str,
        *,
        timeout: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
        max_reply_bytes: int = REPLY_BYTES_MAX,
    ) -> Reply | NoReply: ...


class Connections:
    """Connections of one client to its service. `api_key` is a function, so that no printable object holds the key."""

    def __init__(self, base_url: str, api_key: Callable[[], str]) -> None:
        url = urlsplit(base_url)
        self._host = url.hostname or ""
        self._is_secure = url.scheme == "https"
        self._port = url.port or (443 if self._is_secure else 80)
        self._path = f"{url.path.rstrip('/')}/openapi/v1"
        self._proxy = proxy_of(url.scheme, self._host, self._port)
        self._proxy_headers: dict[str, str] = {}
        if self._proxy and not self._is_secure:
            # For plain HTTP, a proxy needs the whole address in the request line.
            self._path = f"http://{url.netloc.rpartition('@')[2]}{self._path}"
            self._proxy_headers = self._proxy.headers
        self._api_key = api_key
        self._tls: ssl.SSLContext | None = None
        self.reset()

    def reset(self) -> None:
        """Forgets the connections without shutting them down: in a forked process, its parent still uses them."""
        self._lock = Lock()
        self._idle: list[tuple[float, _Connection]] = []

    def request(
        self,
        method: str,
        path: str,
        *,
        timeout: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        stop: StopSignal | None = None,
        max_reply_bytes: int = REPLY_BYTES_MAX,
    ) -> Reply | NoReply:
        """See `Request`. `timeout` covers the whole exchange, in seconds."""
        deadline = time.monotonic() + timeout
        sent = {"content-type": "application/json", **self._proxy_headers, **(headers or {}), "x-api-key": self._api_key()}
        while True:
            connection, is_reused = self._take()
            connection.deadline = deadline
            unlisten = stop.listen(connection.abort) if stop else None
            try:
                if stop and stop.is_set:
                    return NoReply("aborted", "aborted")
                connection.request(method, self._path + path, body, sent)
                reply = connection.getresponse()
                data = reply.read(max_reply_bytes + 1)
                if len(data) > max_reply_bytes:
                    connection.close()
                    return NoReply("reply_too_large", "the answer is too large")
                if reply.will_close:
                    connection.close()
                else:
                    self._give_back(connection)
                return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, _parse(data))
            except Exception as error:
                connection.close()
                if stop and stop.is_set:
                    return NoReply("aborted", "aborted")
                if isinstance(error, TimeoutError) or time.monotonic() >= deadline:
                    return NoReply("timeout", "timeout")
                # The server closed the idle connection just before this request. Repeat it: every request here is idempotent.
                if is_reused and isinstance(error, (http.client.RemoteDisconnected, ConnectionError)):
                    continue
                return NoReply("network", type(error).__name__)
            finally:
                if unlisten:
                    unlisten()

    def _take(self) -> tuple[_Connection, bool]:
        while True:
            with self._lock:
                since, connection = self._idle.pop() if self._idle else (0.0, None)
            if connection is None:
                return self._open(), False
            if time.monotonic() - since < _IDLE_SECONDS and connection.is_quiet():
                return connection, True
            connection.close()

    def _give_back(self, connection: _Connection) -> None:
        with self._lock:
            if len(self._idle) < _IDLE_MAX:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def _open(self) -> _Connection:
        if self._is_secure and self._tls is None:
            self._tls = ssl.create_default_context()
        return _Connection(self._host, self._port, self._tls, self._proxy)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()


class _Connection(http.client.HTTPConnection):
    """A connection whose reads and writes all end at `deadline`: a slow sender cannot prolong an exchange."""

    deadline = 0.0

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, proxy: Proxy | None) -> None:
        super().__init__(host, port)
        self._tls = tls
        self._proxy = proxy
        if proxy and tls:
            self.set_tunnel(host, port, proxy.headers)
        self._raw: socket.socket | None = None

    def connect(self) -> None:
        address = (self._proxy.host, self._proxy.port) if self._proxy else (self.host, self.port)
        raw = socket.create_connection(address, self.left())
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._proxy and self._tls:
            self.sock = _BoundedSocket(raw, self.left)
            self._tunnel()  # type: ignore[attr-defined]
        self._raw = self._tls.wrap_socket(raw, server_hostname=self.host) if self._tls else raw
        self.sock = _BoundedSocket(self._raw, self.left)

    def left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def abort(self) -> None:
        """Wakes a thread that reads or writes."""
        try:
            if self._raw:
                self._raw.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def is_quiet(self) -> bool:
        """False if the server closed it, or sent something unasked."""
        try:
            return self._raw is not None and not select.select([self._raw], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        try:
            super().close()
        except OSError:
            pass


class _BoundedSocket:
    """The part of a socket that http.client uses."""

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._sock = sock
        self._left = left

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(self._left())
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self._sock, self._left))

    def close(self) -> None:
        self._sock.close()


class _Reader(io.RawIOBase):
    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._sock = sock
        self._left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._left())
        return self._sock.recv_into(buffer)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
