"""HTTPS_PROXY, HTTP_PROXY and NO_PROXY, with a proxy on a real socket."""

from __future__ import annotations

import socket
import threading

import pytest

from tacho_sdk.delivery.proxy import proxy_of
from tacho_sdk.delivery.transport import Connections, NoReply, Reply

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
NAMES = [name for one in ("http", "https", "all", "no") for name in (f"{one}_proxy", f"{one.upper()}_PROXY")]


class Seen:
    """A proxy that sends one answer on each connection."""

    def __init__(self, answer: bytes) -> None:
        self.heads: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, args=(answer,), daemon=True).start()

    def _serve(self, answer: bytes) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += connection.recv(65_536)
                self.heads.append(head.decode().lower())
                connection.sendall(answer)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_plain_http_names_the_whole_address_to_the_proxy(variables: pytest.MonkeyPatch) -> None:
    proxy = Seen(OK)
    variables.setenv("http_proxy", f"http://user:p%40ss@{proxy.address}")
    reply = Connections("http://tacho.example.com:81/base", lambda: "key").request("GET", "/runs", timeout=60)
    assert isinstance(reply, Reply) and reply.json == {}
    [head] = proxy.heads
    assert head.startswith("get http://tacho.example.com:81/base/openapi/v1/runs http/1.1\r\nhost: tacho.example.com:81\r\n")
    assert "proxy-authorization: basic dxnlcjpwqhnz" in head
    proxy.listener.close()


def test_https_goes_through_a_tunnel_and_the_proxy_never_sees_the_key(variables: pytest.MonkeyPatch) -> None:
    proxy = Seen(b"HTTP/1.1 403 Forbidden\r\n\r\n")
    variables.setenv("HTTPS_PROXY", f"user:pass@{proxy.address}")
    reply = Connections("https://tacho.example.com", lambda: "secret-key").request("GET", "/runs", timeout=60)
    # This answer is not from Tacho.
    assert isinstance(reply, NoReply) and reply.reason == "network"
    [head] = proxy.heads
    assert head.startswith("connect tacho.example.com:443 ") and "proxy-authorization: basic" in head
    assert "secret-key" not in head
    proxy.listener.close()


def test_which_addresses_take_a_proxy(variables: pytest.MonkeyPatch) -> None:
    variables.setenv("HTTP_PROXY", "http://proxy.example.com:3128")
    variables.setenv("no_proxy", "internal.example.com,.local:8080")
    assert proxy_of("http", "tacho.example.com", 80) is not None
    assert proxy_of("https", "tacho.example.com", 443) is None
    assert proxy_of("http", "a.internal.example.com", 80) is None
    assert proxy_of("http", "tacho.local", 8080) is None and proxy_of("http", "tacho.local", 80) is not None
    for here in ("localhost", "127.0.0.1", "::1"):
        assert proxy_of("http", here, 4680) is None
    variables.setenv("no_proxy", "*")
    assert proxy_of("http", "tacho.example.com", 80) is None
    for wrong in ("socks5://p:1", "http://:80", "http://p:port", "https://p"):
        variables.setenv("HTTPS_PROXY", wrong)
        variables.delenv("no_proxy")
        assert proxy_of("https", "tacho.example.com", 443) is None
        variables.setenv("no_proxy", "*")
