"""
Replays a tape for a function of your tests. A `tacho replay` process beside this one has the cursor, as for every
SDK.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, overload

import tacho_sdk as tacho

from ..delivery import process_end

T = TypeVar("T")

_one_replay = threading.Lock()


@overload
def replay(tape: str | os.PathLike[str], agent: Callable[[Any], Awaitable[T]], **options: Any) -> Awaitable[T]: ...


@overload
def replay(tape: str | os.PathLike[str], agent: Callable[[Any], T], **options: Any) -> T: ...


def replay(tape: str | os.PathLike[str], agent: Callable[[Any], Any], **options: Any) -> Any:
    """
    `agent` gets the user's first message, and makes its clients of Tacho and of models itself, because the tape's address is
    in variables while it runs. The functions of the module `tacho_sdk` have a client of their own then. Of an `async def`
    the result is awaited. One replay at a time in a process. For the options see `replaying`.

    Raises AssertionError with the first step at which the agent left the tape; else what `agent` raises.
    """
    if inspect.iscoroutinefunction(agent):
        return _replay_async(tape, agent, options)
    with replaying(tape, **options) as input_text:
        return agent(input_text)


async def _replay_async(tape: str | os.PathLike[str], agent: Callable[[Any], Awaitable[T]], options: dict[str, Any]) -> T:
    with replaying(tape, **options) as input_text:
        return await agent(input_text)


@contextmanager
def replaying(
    tape: str | os.PathLike[str],
    *,
    mode: Literal["strict", "tools"] | None = None,
    ignore: Sequence[str] = (),
    from_step: int | None = None,
    model: str | None = None,
    read_only: Sequence[str] = (),
    stubs: str | None = None,
    policies: str | None = None,
    program: str | None = None,
) -> Iterator[Any]:
    """
    The same for a block. `strict`: models and guarded tools from the tape; `tools`: live models, the default with `stubs` or
    `read_only`. `ignore`: what may differ, such as `tool.input.requestId` or `model.system`. `program`: the command of Tacho,
    else `TACHO_PROGRAM`, else `tacho`. The others are as options of `tacho replay`.
    """
    if not _one_replay.acquire(blocking=False):
        raise RuntimeError("A replay runs already.")
    try:
        if "TACHO_REPLAY" in os.environ:
            raise RuntimeError("This process is part of a replay already.")
        flags = [*(f"--ignore={path}" for path in ignore), *(f"--read-only={name}" for name in read_only)]
        named = {"mode": mode, "from": from_step, "model": model, "stubs": stubs, "policies": policies}
        flags += [f"--{name}={value}" for name, value in named.items() if value is not None]
        words = [program or os.environ.get("TACHO_PROGRAM") or "tacho", "replay", "--serve", *flags, "--", os.fspath(tape)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as host:
            opening = _next_line(host)
            cause: Exception | None = None
            with _surroundings(opening["variables"]):
                try:
                    yield opening["input"]
                except Exception as error:
                    cause = error
            if host.stdin is not None:
                host.stdin.write("COMPLETED\n" if cause is None else "FAILED\n")
                host.stdin.flush()
            fault = _next_line(host)["fault"]
    finally:
        _one_replay.release()
    if fault:
        raise AssertionError(fault) from cause
    if cause is not None:
        raise cause


@contextmanager
def _surroundings(variables: dict[str, str]) -> Iterator[None]:
    """Sets the variables, and gives the module's functions another client. Delivers what clients recorded before the end."""
    before = {name: os.environ.get(name) for name in variables}
    former, tacho._client = tacho._client, None
    os.environ.update(variables)
    try:
        yield
        process_end.deliver()
    finally:
        made, tacho._client = tacho._client, former
        if made is not None:
            made.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _next_line(host: subprocess.Popen[str]) -> dict[str, Any]:
    line = host.stdout.readline() if host.stdout is not None else ""
    if not line:
        raise RuntimeError("tacho replay does not answer; its own message is above.")
    parsed: dict[str, Any] = json.loads(line)
    return parsed
