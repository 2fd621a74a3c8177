"""A scripted service on a real socket, and clients that talk to it."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import tacho_sdk as tacho
from tacho_sdk import core

Answer = Callable[[Any], tuple[int, Any, dict[str, str]]]


def accept_all(events: list[dict[str, Any]]) -> tuple[int, Any, dict[str, str]]:
    return judged(len(events))


def judged(
    accepted: int, retryable: list[str] | None = None, rejected: list[str] | None = None
) -> tuple[int, Any, dict[str, str]]:
    body = {"accepted": accepted, "retryableEventIds": retryable or [], "rejectedEventIds": rejected or []}
    return 200, {"success": not retryable and not rejected, "rejections": [], **body}, {}


def refuse(status: int, **headers: str) -> Answer:
    return lambda _: (status, {"code": "scripted"}, {name.replace("_", "-"): value for name, value in headers.items()})


def refuse_key(status: int) -> Answer:
    """A refusal in Tacho's own form. A proxy's answer has another form."""
    body = {"type": "urn:tacho:error:unauthorized", "status": status}
    return lambda _: (status, body, {"content-type": "application/problem+json; charset=utf-8"})


class Service:
    """Answers each route by its script; the last answer repeats."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        self.scripts: dict[str, list[Answer]] = {
            "/events/batch": [accept_all],
            "/issue-records": [lambda _: (202, {"recordId": "r", "status": "RECEIVED", "isNew": True}, {})],
            "/runtime-config": [self._configuration],
            "/firewall-approvals": [refuse(503)],
        }
        self.policies: list[dict[str, Any]] = []
        self.prompts: list[dict[str, Any]] = []
        self.revision = "r1"
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                size = int(self.headers.get("content-length", 0))
                body = self.rfile.read(size)
                if len(body) < size:
                    self.close_connection = True
                    return  # The client's process was killed while it sent, so this is not a request.
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                given = json.loads(body) if body else None
                path = self.path.removeprefix("/openapi/v1").split("?")[0]
                if path.startswith("/firewall-approvals/"):
                    path = "/firewall-approvals/id"
                service.requests.append((path, given, {name.lower(): value for name, value in self.headers.items()}))
                script = service.scripts[path]
                answer = script.pop(0) if len(script) > 1 else script[0]
                status, reply, headers = answer(given)
                data = b"" if reply is None else json.dumps(reply).encode()
                self.send_response(status)
                for name, value in {"content-length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def _configuration(self, _: Any) -> tuple[int, Any, dict[str, str]]:
        body = {"revision": self.revision, "prompts": self.prompts, "policies": self.policies}
        return 200, body, {"etag": f'W/"{self.revision}"'}

    def deploy(self, condition: str, action: str, severity: str = "HIGH", description: str | None = None) -> None:
        names = {"policyId": "p", "name": "p", "version": "1", "description": description}
        self.policies.append({**names, "condition": condition, "action": action, "severity": severity})

    def script(self, path: str, *answers: Answer) -> None:
        self.scripts[path] = list(answers)

    def of(self, path: str) -> list[Any]:
        return [body for sent, body, _ in list(self.requests) if sent == path]

    @property
    def batches(self) -> list[list[dict[str, Any]]]:
        return self.of("/events/batch")

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for batch in self.batches for event in batch]

    def until(self, condition: Callable[[], bool], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "timeout"
            time.sleep(0.01)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(autouse=True)
def a_slow_machine_is_no_late_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "RUN_STARTED_MS", 600_000)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


class Client:
    def __init__(self, made: tacho.Tacho, codes: list[str]) -> None:
        self.tacho = made
        self.codes = codes


@pytest.fixture
def make(service: Service) -> Iterator[Callable[..., Client]]:
    made: list[tacho.Tacho] = []

    def make(**options: Any) -> Client:
        codes: list[str] = []
        defaults: dict[str, Any] = {"api_key": "key", "base_url": service.url, "client_id": "c", "compression": "never"}
        # On a slow machine, the client must not give up waiting for its policies or for an answer.
        defaults["guard"] = tacho.GuardDefaults(configuration_wait=120)
        defaults |= {"request_timeout": 120, "flush_timeout": 120, "flush_interval": 3_600}
        given = {**defaults, "on_diagnostic": lambda said: codes.append(said.code), **options}
        client = Client(tacho.Tacho(**given), codes)
        made.append(client.tacho)
        if "flush_interval" not in options:
            gather(client)
        return client

    yield make
    for client in made:
        client.shutdown(0)


def gather(client: Client) -> None:
    """
    Makes the next events wait for a flush, as if a request had just ended. Otherwise the client sends the first event at once,
    and a test cannot know what a flush sends. Clients of `make` without a `flush_interval` send only when a test flushes.
    """
    client.tacho.core.sender._sent_at = time.monotonic()


def assert_balanced(client: tacho.Tacho) -> None:
    counts = client.counters()
    assert counts.recorded == counts.accepted + counts.rejected + sum(counts.dropped.values()) + counts.queued
