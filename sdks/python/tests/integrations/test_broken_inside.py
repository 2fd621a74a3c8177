"""
If anything breaks inside the SDK, the host's function still runs once, with its own arguments, and its own result or error is
returned. Each function of the SDK that a play reaches raises once.
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import pytest

import tacho_sdk
from conftest import Client, Service
from tacho_sdk.integrations import model_call

from .answers import Answer, AnswerServer
from .life import PLAYS, installed

Make = Callable[..., Client]
SDK = os.path.dirname(tacho_sdk.__file__) + os.sep
# Functions that wrap tools, before any call, or that frameworks call to get their tools. An error in these may reach the host:
# otherwise a tool would run unguarded.
WRAPS = {
    "record_client",
    "record_model",
    "guard_tools",
    "guard_toolset",
    "guard_agent",
    "get_tools",
    "get_all_tools",
    "get_handoffs",
}
GUARDS = {"acall_tools"}
WRAPPED = {"TachoListener", "TachoHandler", "TachoHooks"}
# Functions that catch errors of the SDK, or that replace a function of the host. No code catches errors in these.
BORDER = {
    "read_safely",
    *("safely", "unbreakable.<locals>.attempted", "unbreakable.<locals>.awaited"),
    *("_RecordedModel.request", "_RecordedModel.request_stream", "_RecordedModel._begin"),
    *("_recorded.<locals>.call", "_recorded.<locals>.call.<locals>.begin", "_awaited", "client_call"),
    *("_tap", "_tap_async", "_managed.<locals>.arequest", "_managed.<locals>.send"),
    *("_block", "_error_answer", "_tapped_async.<locals>.aiter_bytes"),
    *("end_when_closed.<locals>.closed", "end_when_closed.<locals>.aclosed"),
}


class Broken(RuntimeError):
    pass


class Breaking:
    """Raises at the first call of `broken`. None: keeps which functions are called. Includes threads that start later."""

    def __init__(self, broken: CodeType | None, outside: set[str]) -> None:
        self.ran: dict[CodeType, None] = {}
        self._known: set[int] = set()
        self._broken = broken
        self._outside = outside

    def __enter__(self) -> Breaking:
        called = self._noted if self._broken is None else self._raised
        threading.settrace(called)
        sys.settrace(called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _noted(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # Use the id, because hashing a code object reads its whole content.
        if id(code) in self._known:
            return
        if not code.co_filename.startswith(SDK):
            self._known.add(id(code))
        elif not self._is_outside(frame):
            self._known.add(id(code))
            self.ran[code] = None

    def _raised(self, frame: FrameType, event: str, _: object) -> None:
        if frame.f_code is self._broken and not self._is_outside(frame):
            self._broken = None
            raise Broken("broken inside")

    def _is_outside(self, frame: FrameType | None) -> bool:
        while frame is not None:
            name = frame.f_code.co_name
            if name in self._outside or (name == "__init__" and type(frame.f_locals.get("self")).__name__ in WRAPPED):
                return True
            frame = frame.f_back
        return False


def _name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _is_inner(code: CodeType) -> bool:
    return _name(code) not in BORDER and not code.co_name.startswith("<")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED", "OPENAI_AGENTS_DISABLE_TRACING"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")
    # Share one TLS context: each client of a model would create its own, which takes longer than the rest of the test.
    monkeypatch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))


CALLS = (("c1", "refund", '{"order": 7, "amount": 5}'), ("c2", "refund", '{"order": 7}'))
"""One of them runs, the other does not fit."""
FAILING = ("c3", "refund", '{"order": 8, "amount": 5}')


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before Python 3.11, code objects have no qualified name")
@pytest.mark.parametrize("name", installed())
def test_the_host_does_not_see_it(make: Make, service: Service, name: str) -> None:
    client = make(on_diagnostic=lambda _: None)

    def play(answer: Answer, is_stream: bool, breaking: Breaking) -> tuple[Any, list[Any], list[Any]]:
        ran: list[Any] = []

        def refund(order: int, amount: int) -> str:
            """Refunds an order."""
            ran.append((order, amount))
            if order == 8:
                raise LookupError("No such order.")
            return "refunded"

        server = AnswerServer(answer)

        async def main() -> Any:
            with breaking:
                return await PLAYS[name](client.tacho, server.url, [refund], is_stream)

        try:
            outcome: Any = repr(asyncio.run(main()))
        except Exception as error:
            outcome = f"raises {type(error).__name__}: {error}"
        server.close()
        # All calls of an answer start at once, so the order in which they run varies.
        return outcome, server.requests, sorted(ran)

    wrong: list[str] = []
    seen: set[CodeType] = set()
    # Some frameworks end the run if a tool fails, so only these two get a failing call.
    calls = Answer((*CALLS, FAILING) if name in ("openai", "anthropic") else CALLS)
    for answer, is_stream in ((Answer(), True), (calls, False)):
        outside = WRAPS if answer.calls else WRAPS | GUARDS
        play(answer, is_stream, Breaking(None, outside))
        breaking = Breaking(None, outside)
        outcome, requests, ran = play(answer, is_stream, breaking)
        assert (len(ran), len(requests)) == ((len(answer.calls) - 1, 2) if answer.calls else (0, 1))
        for code in filter(_is_inner, breaking.ran):
            is_shared = f"{os.sep}integrations{os.sep}" not in code.co_filename
            if is_shared and (code in seen or name != "openai"):
                continue
            seen.add(code)
            said, sent, did = play(answer, is_stream, Breaking(code, outside))
            # A guard that cannot decide refuses, and the tool does not run.
            is_refused = set(did) < set(ran) and sent[:1] == requests[:1]
            if (said, sent, did) != (outcome, requests, ran) and not is_refused:
                place = f"{code.co_filename.removeprefix(SDK)}:{code.co_firstlineno} {_name(code)}"
                wrong.append(f"{place}: {said[:90]}, {len(sent)} requests, ran {did}, stream {is_stream}")
    assert not wrong, "\n".join(wrong)
    assert len(seen) > 10


@pytest.mark.skipif("openai" not in installed(), reason="the package openai is not installed")
def test_the_client_says_it_once(make: Make, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tacho_sdk.Diagnostic] = []
    client = make(on_diagnostic=said.append)
    server = AnswerServer()

    def broken(*_: object) -> None:
        raise Broken("with a secret of the host")

    async def main() -> Any:
        return await PLAYS["openai"](client.tacho, server.url, [], False)

    monkeypatch.setattr(model_call, "tool_calls_of", broken)
    for _ in range(2):
        assert asyncio.run(main()).content == "done"
    server.close()
    assert [(one.level, one.code, one.message) for one in said] == [
        ("error", "record_failed", "A call is recorded in part or not at all: Broken. The call itself is not affected.")
    ]
