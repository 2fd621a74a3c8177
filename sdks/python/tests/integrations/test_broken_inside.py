"""
Whatever breaks inside the SDK, the host's call is made once, with its own arguments, and its own result or error comes back.
Each function of the SDK that a play reaches raises once, in its turn.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import pytest

import tacho_sdk
from conftest import Client, Service

from .answers import Answer, AnswerServer
from .life import PLAYS, installed

Make = Callable[..., Client]
SDK = os.path.dirname(tacho_sdk.__file__) + os.sep
# A program wraps before anything is called: what fails there may raise.
WRAPS = {"record_client", "record_model", "guard_tools", "guard_toolset", "guard_agent"}
GUARDS = {"acall_tools"}
WRAPPED = {"TachoListener", "TachoHandler", "TachoHooks"}
# They stand in place of the host's own function, or catch what breaks: nothing catches what breaks in them.
BORDER = {
    "read_safely",
    "unbreakable.<locals>.attempted",
    *("_recorded.<locals>.call", "_recorded.<locals>.call.<locals>.begin", "_awaited", "client_call"),
    *("_tap", "_tap_async", "_managed.<locals>.arequest", "_managed.<locals>.send"),
    "_block",
    *("end_when_closed.<locals>.closed", "end_when_closed.<locals>.aclosed"),
}


class Broken(RuntimeError):
    pass


class Breaking:
    """Raises at the first call of one function, on any thread that began after. Keeps which functions were called."""

    def __init__(self, broken: CodeType | None, outside: set[str]) -> None:
        self.ran: dict[CodeType, None] = {}
        self._broken = broken
        self._outside = outside

    def __enter__(self) -> Breaking:
        threading.settrace(self._called)
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SDK) or code in self.ran or self._is_outside(frame):
            return
        self.ran[code] = None
        if code is self._broken:
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


CALL = Answer((("c1", "refund", '{"order": 7, "amount": 5}'),))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no qualified name")
# Frameworks take minutes.
@pytest.mark.parametrize("name", [name for name in ("openai", "anthropic") if name in installed()])
def test_the_host_does_not_see_it(make: Make, service: Service, name: str) -> None:
    client = make(on_diagnostic=lambda _: None)

    def play(answer: Answer, is_stream: bool, breaking: Breaking) -> tuple[Any, list[Any], list[Any]]:
        ran: list[Any] = []

        def refund(order: int, amount: int) -> str:
            """Refunds an order."""
            ran.append((order, amount))
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
        return outcome, server.requests, ran

    wrong: list[str] = []
    seen: set[CodeType] = set()
    for answer, is_stream in ((Answer(), False), (Answer(), True), (CALL, False)):
        outside = WRAPS if answer.calls else WRAPS | GUARDS
        play(answer, is_stream, Breaking(None, outside))
        breaking = Breaking(None, outside)
        outcome, requests, ran = play(answer, is_stream, breaking)
        assert len(ran) == len(answer.calls) and len(requests) == len(answer.calls) + 1
        for code in filter(_is_inner, breaking.ran):
            is_shared = f"{os.sep}integrations{os.sep}" not in code.co_filename
            if is_shared and (code in seen or name != "openai"):
                continue
            seen.add(code)
            said, sent, did = play(answer, is_stream, Breaking(code, outside))
            # A guard that cannot judge refuses, and the tool does not run.
            is_refused = did == [] and ran != [] and sent[:1] == requests[:1]
            if (said, sent, did) != (outcome, requests, ran) and not is_refused:
                place = f"{code.co_filename.removeprefix(SDK)}:{code.co_firstlineno} {_name(code)}"
                wrong.append(f"{place}: {said[:90]}, {len(sent)} requests, ran {did}, stream {is_stream}")
    assert not wrong, "\n".join(wrong)
    assert len(seen) > 20
