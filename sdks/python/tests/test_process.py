"""Ends and forks of processes, with a real service: what was recorded is delivered once, by the process that recorded it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest

URL = os.environ.get("TACHO_TEST_URL", "")
KEY = os.environ.get("TACHO_TEST_KEY", "")
pytestmark = pytest.mark.skipif(not URL, reason="needs a service: run `npm test -- python`")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def run_id() -> str:
    return f"process-{uuid.uuid4()}"


def environment() -> dict[str, str]:
    return {**os.environ, "TACHO_URL": URL, "TACHO_API_KEY": KEY, "PYTHONWARNINGS": "error"}


# Long timeouts for slow machines. By default, an ending process waits one second for a service that does not answer.
PATIENT = "import tacho_sdk as tacho; tacho.configure(flush_timeout=120, request_timeout=120)"


def execute(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *args]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600)


def events_of(run: str) -> list[str]:
    request = urllib.request.Request(f"{URL}/openapi/v1/runs/{run}", headers={"x-api-key": KEY})
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return sorted(event["label"] for event in json.load(reply)["events"])
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return []


@pytest.mark.parametrize(
    ("end", "code", "is_delivered"),
    [
        ("pass", 0, True),
        ("raise SystemExit(3)", 3, True),
        ("raise ValueError('no')", 1, True),
        ("run.step('recorded at exit'); import atexit; atexit.register(lambda: None)", 0, True),
        ("import os; os._exit(0)", 0, False),
    ],
)
def test_a_process_that_ends_delivers_first(end: str, code: int, is_delivered: bool) -> None:
    run = run_id()
    # Stop the sending thread, which otherwise may be faster than `os._exit`.
    begin = PATIENT if is_delivered else f"{PATIENT}.core.sender._worker.wake = lambda: True"
    ended = execute(f"{begin}\nimport sys\nrun = tacho.start_run(run_id=sys.argv[1])\nrun.step('step')\n{end}", run)
    assert ended.returncode == code, ended.stderr
    assert ("step" in events_of(run)) is is_delivered


def test_what_atexit_functions_record_is_delivered_too() -> None:
    run = run_id()
    # Registered before the SDK's own `atexit` function, so it runs after that. Events are then delivered at once.
    ended = execute(
        """
        import atexit, sys
        atexit.register(lambda: (client.record("X", "late"), run.step("late"), tacho.flush(120)))
        import tacho_sdk as tacho
        client = tacho.configure(flush_timeout=120, request_timeout=120)
        run = tacho.start_run(run_id=sys.argv[1])
        run.step("step")
        """,
        run,
    )
    assert ended.returncode == 0, ended.stderr
    assert events_of(run) == ["late", "step"]


@forks
def test_a_fork_sends_each_event_once_from_the_process_that_recorded_it() -> None:
    run = run_id()
    ended = execute(
        """
        import os, sys, threading, tacho_sdk as tacho
        client = tacho.configure(flush_interval=3600)
        run = tacho.start_run(run_id=sys.argv[1])
        for n in range(5):
            run.step(f"parent {n}")
        children = []
        for child in range(3):
            pid = os.fork()
            if pid == 0:
                assert client.counters().recorded == 0
                run.step(f"child {child}")
                result = client.flush(120)
                os._exit(0 if (client.counters().accepted, result.left) == (1, 0) else 1)
            children.append(pid)
        for pid in children:
            assert os.waitpid(pid, 0)[1] == 0
        assert client.flush(120).left == 0 and client.counters().accepted == 5
        """,
        run,
    )
    assert ended.returncode == 0, ended.stderr
    assert events_of(run) == sorted([*(f"child {n}" for n in range(3)), *(f"parent {n}" for n in range(5))])


@forks
def test_a_fork_while_a_request_is_under_way_and_locks_are_held_does_not_hang() -> None:
    run = run_id()
    ended = execute(
        """
        import os, sys, threading, tacho_sdk as tacho
        client = tacho.configure(flush_interval=0)
        run = tacho.start_run(run_id=sys.argv[1])
        stop = threading.Event()
        def work():
            while not stop.is_set():
                run.step("parent")
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        failed = 0
        for n in range(8):
            pid = os.fork()
            if pid == 0:
                run.record("CHILD", f"child {n}")
                os._exit(0 if client.flush(120).left == 0 else 1)
            failed += os.waitpid(pid, 0)[1] != 0
        stop.set()
        for thread in threads: thread.join()
        client.core.sender.close()
        sys.exit(failed)
        """,
        run,
    )
    assert ended.returncode == 0, ended.stderr
    counts = json.loads(_read(f"/runs/{run}/events?limit=200"))["items"]
    assert len({event["eventId"] for event in counts}) == len(counts)


@forks
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_deliver_when_they_end(method: str, tmp_path: Path) -> None:
    run = run_id()
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys, tacho_sdk as tacho

            tacho.configure(flush_timeout=120, request_timeout=120)

            def work(run_id, n):
                run = tacho.start_run(run_id=run_id)
                run.step(f"child {n}")

            if __name__ == "__main__":
                run = tacho.start_run(run_id=sys.argv[1])
                run.step("parent")
                context = multiprocessing.get_context(sys.argv[2])
                children = [context.Process(target=work, args=(sys.argv[1], n)) for n in range(2)]
                for child in children: child.start()
                for child in children: child.join()
                if sys.argv[2] == "fork":
                    with context.Pool(1) as pool:
                        pool.apply(work, (sys.argv[1], 2))
                        pool.close()
                        pool.join()
            """
        )
    )
    # Python 3.12 warns about any fork with threads, which is what is tested here.
    variables = {**environment(), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(program), run, method]
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    assert events_of(run) == ["child 0", "child 1", *(["child 2"] if method == "fork" else []), "parent"]


@forks
def test_workers_of_gunicorn_record_after_the_application_is_loaded_in_the_master(tmp_path: Path) -> None:
    run = run_id()
    (tmp_path / "web.py").write_text(
        textwrap.dedent(
            """
            import os, sys, tacho_sdk as tacho

            tacho.configure(flush_timeout=120, request_timeout=120)
            run = tacho.start_run(run_id=os.environ["RUN"])
            run.step("master")

            def app(environ, start_response):
                run.step("worker " + environ["PATH_INFO"])
                start_response("200 OK", [("content-type", "text/plain")])
                return [b"ok"]
            """
        )
    )
    address = tmp_path / "socket"
    command = [sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"unix:{address}", "web:app"]
    variables = {**environment(), "RUN": run, "PYTHONWARNINGS": "ignore"}
    variables["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, variables.get("PYTHONPATH", "src").split(os.pathsep)))
    server = subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        for n in range(6):
            assert _get(address, f"/{n}").endswith(b"ok")
    finally:
        server.send_signal(signal.SIGTERM)
        _, written = server.communicate(timeout=300)
    assert events_of(run) == ["master", *(f"worker /{n}" for n in range(6))], written


def _get(address: Path, path: str) -> bytes:
    import socket

    end = time.monotonic() + 300
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(address))
                connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                return b"".join(iter(lambda: connection.recv(4_096), b""))
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


def _read(path: str) -> Any:
    request = urllib.request.Request(f"{URL}/openapi/v1{path}", headers={"x-api-key": KEY})
    with urllib.request.urlopen(request, timeout=300) as reply:
        return reply.read()
