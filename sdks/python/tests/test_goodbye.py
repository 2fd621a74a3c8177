"""A client reports its end to the service, so that a deployment does not wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Client, Service, refuse, refuse_key

Make = Callable[..., Client]


def goodbyes(service: Service) -> list[dict[str, str]]:
    polls = [headers for path, _, headers in service.requests if path == "/runtime-config"]
    return [headers for headers in polls if headers.get("x-tacho-closing") == "true"]


def test_after_a_shutdown_once_and_after_the_last_events(make: Make, service: Service) -> None:
    client = make()
    assert client.tacho.configuration.ready(60)
    with client.tacho.run():
        pass
    client.tacho.shutdown()
    client.tacho.shutdown()
    (said,) = goodbyes(service)
    assert said["x-service-client-id"] == "c" and said["if-none-match"] == 'W/"r1"'
    assert service.requests[-1][0] == "/runtime-config"
    assert client.codes == []


@pytest.mark.parametrize("kind", ["never asked", "never answered", "key refused", "no time"])
def test_no_word_where_nobody_waits(make: Make, service: Service, kind: str) -> None:
    client = make()
    if kind in ("never answered", "key refused"):
        service.script("/runtime-config", refuse(503) if kind == "never answered" else refuse_key(401))
    if kind != "never asked":
        client.tacho.configuration.ready(60)
    client.tacho.shutdown(0 if kind == "no time" else None)
    assert goodbyes(service) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("how", ["end", "exception", "SIGTERM", "fork"])
def test_at_the_end_of_a_process(service: Service, how: str) -> None:
    ends = {
        "end": "",
        "exception": "raise ValueError('x')",
        "SIGTERM": "print('ready', flush=True); time.sleep(60)",
        "fork": "if os.fork() == 0: client.configuration.refresh(); client.shutdown(); os._exit(0)\nos.wait(); os._exit(0)",
    }
    code = f"""
        import os, time, tacho_sdk as tacho
        client = tacho.configure(request_timeout=60, flush_timeout=60)
        assert client.configuration.ready(60)
        client.start_run().step("s")
{textwrap.indent(ends[how], "        ")}
    """
    variables = {**os.environ, "TACHO_URL": service.url, "TACHO_API_KEY": "key", "PYTHONWARNINGS": "ignore"}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], env=variables, text=True, **pipes)
    if how == "SIGTERM":
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
    child.communicate(timeout=120)
    assert len(goodbyes(service)) == (0 if how == "fork" else 1)
    assert how == "fork" or service.requests[-1][2].get("x-tacho-closing") == "true"
