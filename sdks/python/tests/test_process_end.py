"""Which events arrive for each way a process can end, tested with real processes. docs/sdk/delivery.md has the table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Service

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="needs os.fork: these programs fork, and end by signals of POSIX"
)
DOCS = Path(__file__).parents[3] / "docs" / "sdk" / "delivery.md"
MARKS = ("<!-- ends:python -->", "<!-- /ends:python -->")

# After the first event, nothing is sent before the end. The timeouts are long, for slow machines.
BEGIN = """
import asyncio, os, resource, signal, sys, threading, time, tacho_sdk as tacho
from tacho_sdk.integrations.model_call import ModelCall

guard = tacho.GuardDefaults(configuration_wait=120)
options = dict(flush_interval=3600, flush_timeout=120, request_timeout=120, guard=guard, spool=os.environ.get("SPOOL"))
client = tacho.configure(**options)

def report():
    tacho.report_issue(tacho.IssueReport("CUSTOM"))

def at_once():
    # The thread that sends gets no turn.
    client.core.sender._worker.wake = lambda: True

def a_second_later():
    while client.counters().accepted == 0:
        time.sleep(0.01)

def die():
    os.kill(os.getpid(), 9)

def fill_the_memory():
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 50_000_000, -1))
    kept = []
    while True:
        kept.append(bytearray(1_000))

def ready():
    print("ready", flush=True)
    while True:
        time.sleep(0.05)

def fail():
    try:
        {}["order"]
    except KeyError as error:
        raise ValueError("no order, password=hunter2") from error
"""


EVERYTHING = "everything"
NOTHING = "nothing"
BEFORE = "what was delivered before"


@dataclass(frozen=True)
class Way:
    name: str
    place: str
    program: str
    code: int
    """Exit code; negative: the signal. The same without the SDK."""
    outcome: str | None
    """None: no outcome arrives."""
    error: str = ""
    """How the outcome's `error` begins."""
    sends: int | None = None
    """The signal that ends it, once it is ready."""
    arrives: str = EVERYTHING
    """Without a spool. With one, everything does."""


def block(body: str) -> str:
    return "with tacho.run() as run:\n    run.step('step')\n    report()\n" + textwrap.indent(textwrap.dedent(body), "    ")


OPEN = "run = tacho.start_run()\nrun.step('step')\nreport()\n"
TOOL = "@tacho.guard\ndef refund(order: int):\n    {}\n"
CALL = "call = ModelCall(client, lambda: {'model': 'm'})\n"
IN_THREAD = "def work():\n{}\nthread = threading.Thread(target=work)\nthread.start()\nthread.join()"
FAILED = "ValueError: no order"
TERM = "SIGTERM: "
EXIT = "ProcessExit: "
RUN = "a run"
OPENED = "a run without a block"
CALLED = "the first call"
FIRST = """
async def work():
    async with tacho.run() as run:
        run.step('step')
        asyncio.current_task().cancel()
        await asyncio.sleep(3600)
async def main():
    await asyncio.wait([asyncio.ensure_future(work())])
asyncio.run(main())
"""
LEFT = "@tacho.run()\ndef work():\n    tacho.record('X', 'step')\n    yield\nleft = work()\nnext(left)"
LOCAL = "def work():\n    with tacho.Tacho(**options).run() as run:\n        run.step('step')\nwork()"
FAILING_CALL = CALL + "try:\n    fail()\nexcept ValueError as error:\n    call.fail(error)\n    raise"
LATER = "a_second_later()\nrun.step('later')\n" + CALL
HANDLER = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))\n"


def in_thread(body: str) -> str:
    return IN_THREAD.format(textwrap.indent(body, "    "))


WAYS = [
    Way("exception", RUN, block("fail()"), 1, "FAILED", FAILED),
    Way("exception", OPENED, OPEN + "fail()", 1, "FAILED", FAILED),
    Way("exception", "a tool", TOOL.format("fail()") + block("refund(7)"), 1, "FAILED", FAILED),
    Way("exception", "a model call", block(FAILING_CALL), 1, "FAILED", FAILED),
    Way("exception in a thread", RUN, in_thread(block("fail()")), 0, "FAILED", FAILED),
    Way("exception in a thread", OPENED, in_thread(OPEN + "fail()"), 0, "FAILED", FAILED),
    Way("`sys.exit(3)`", RUN, block("sys.exit(3)"), 3, "FAILED", "SystemExit: 3"),
    Way("`sys.exit(3)`", OPENED, OPEN + "sys.exit(3)", 3, None),
    Way("`sys.exit()`", RUN, block("sys.exit()"), 0, "COMPLETED"),
    Way("cancelled asyncio task", RUN, FIRST, 0, "CANCELLED"),
    Way("SIGINT", RUN, block("ready()"), -2, "CANCELLED", "KeyboardInterrupt", signal.SIGINT),
    Way("SIGINT", OPENED, OPEN + "ready()", -2, "CANCELLED", "KeyboardInterrupt", signal.SIGINT),
    Way("SIGTERM", RUN, block("ready()"), -15, "CANCELLED", TERM, signal.SIGTERM),
    Way("SIGTERM", OPENED, OPEN + "ready()", -15, "CANCELLED", TERM, signal.SIGTERM),
    Way("SIGTERM", "a tool", TOOL.format("ready()") + block("refund(7)"), -15, "CANCELLED", TERM, signal.SIGTERM),
    Way("SIGTERM", "a model call", block(CALL + "ready()"), -15, "CANCELLED", TERM, signal.SIGTERM),
    Way(
        "SIGTERM, your handler calls `sys.exit(4)`",
        RUN,
        HANDLER + block("ready()"),
        4,
        "FAILED",
        "SystemExit: 4",
        signal.SIGTERM,
    ),
    Way("end of work", RUN, block("pass"), 0, "COMPLETED"),
    Way("end of work", OPENED, OPEN, 0, None),
    Way("end of work", "a generator that was left", LEFT, 0, "FAILED", EXIT),
    Way("end of work", "a client that only a function had", LOCAL, 0, "COMPLETED"),
    Way("out of memory (RLIMIT_AS)", RUN, block("fill_the_memory()"), 1, "FAILED", "MemoryError"),
    Way("out of memory (RLIMIT_AS)", "a model call", block(CALL + "fill_the_memory()"), 1, "FAILED", "MemoryError"),
    Way("`os._exit()`", CALLED, "at_once()\n" + block("os._exit(5)"), 5, None, arrives=NOTHING),
    Way("kill -9, the system is out of memory", CALLED, "at_once()\n" + block("die()"), -9, None, arrives=NOTHING),
    Way("kill -9, the system is out of memory", "a second later", block("a_second_later()\ndie()"), -9, None),
    Way("kill -9, the system is out of memory", "a model call", block(LATER + "die()"), -9, None, arrives=BEFORE),
]


@pytest.fixture(scope="module")
def shared() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def environment(service: Service, client_id: str, spool: Path | None) -> dict[str, str]:
    given = {"TACHO_URL": service.url, "TACHO_API_KEY": "key", "TACHO_CLIENT_ID": client_id}
    return {**os.environ, **given, **({"SPOOL": str(spool)} if spool else {}), "PYTHONFAULTHANDLER": ""}


def end(
    service: Service,
    client_id: str,
    program: str,
    sends: int | None = None,
    begin: str = BEGIN,
    spool: Path | None = None,
) -> tuple[int, str]:
    command = [sys.executable, "-c", begin + program]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = subprocess.Popen(command, env=environment(service, client_id, spool), **streams)
    try:
        if sends is not None:
            assert started.stdout is not None and started.stdout.readline() == "ready\n"
            started.send_signal(sends)
        _, errors = started.communicate(timeout=300)
    finally:
        started.kill()
    return started.returncode, errors


def events_of(service: Service, client_id: str) -> list[dict[str, Any]]:
    """A killed process may leave a request without its body."""
    sent = [event for batch in service.batches if batch for event in batch]
    return list({event["eventId"]: event for event in sent if event["clientId"] == client_id}.values())


def issues_of(service: Service, client_id: str) -> set[str]:
    sent = [issue for issue in service.of("/issue-records") if issue and issue["sdkInstanceId"] == client_id]
    return {issue["clientRecordId"] for issue in sent if issue["detectionType"] == "CUSTOM"}


@pytest.mark.parametrize("spooled", [False, True])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.name} in {way.place}")
def test_what_arrives(shared: Service, way: Way, spooled: bool, tmp_path: Path) -> None:
    client_id = f"{way.name} in {way.place}, {spooled}"
    code, errors = end(shared, client_id, way.program, way.sends, spool=tmp_path if spooled else None)
    assert code == way.code, errors
    arrived = {event["eventId"] for event in events_of(shared, client_id)}
    if spooled:
        next_ = tacho.Tacho(api_key="key", base_url=shared.url, spool=str(tmp_path), flush_timeout=120)
        assert next_.ready(120) and next_.shutdown(120).left == 0
    events = events_of(shared, client_id)
    labels = [event["label"] for event in events]
    arrives = EVERYTHING if spooled else way.arrives
    assert ("step" in labels) is (arrives != NOTHING)
    assert ("later" in labels) is ("'later'" in way.program and arrives == EVERYTHING)
    if way.arrives == EVERYTHING:
        # All events arrived without the help of another process.
        assert arrived == {event["eventId"] for event in events}
    if "report()" in way.program and (spooled or way.code != -9) and arrives == EVERYTHING:
        assert len(issues_of(shared, client_id)) == 1
    outcomes = [event["payload"] for event in events if event["eventType"] == "SESSION_OUTCOME"]
    assert [outcome["status"] for outcome in outcomes] == ([way.outcome] if way.outcome else [])
    error = outcomes[0].get("error", "") if outcomes else ""
    assert error.startswith(way.error) if way.error else error == ""
    # The SDK prints nothing, so the only output is the traceback of the exception.
    assert "Traceback" in errors or errors == ""
    if way.error == FAILED:
        exception = outcomes[0]["exception"]
        assert exception["type"] == "ValueError" and exception["causes"] == [{"type": "KeyError", "message": "'order'"}]
        assert "in fail" in exception["stack"] and "The above exception was the direct cause" in exception["stack"]
        assert "hunter2" not in str(outcomes) and FAILED in errors


def cell(way: Way, arrives: str) -> str:
    error = f": `{way.error.removesuffix(': ')}`" if way.error else ""
    return f"{arrives}; {'unknown' if arrives == NOTHING else way.outcome or 'RUNNING'}{error}"


def test_the_table_in_the_documents_is_this_one() -> None:
    lines = ["| Ends by | While | Without a spool | With a spool |", "|---|---|---|---|"]
    lines += [f"| {way.name} | {way.place} | {cell(way, way.arrives)} | {cell(way, EVERYTHING)} |" for way in WAYS]
    table = f"{MARKS[0]}\n\n" + "\n".join(lines) + f"\n\n{MARKS[1]}"
    text = DOCS.read_text(encoding="utf-8")
    found = MARKS[0] + text.partition(MARKS[0])[2].partition(MARKS[1])[0] + MARKS[1]
    if os.environ.get("UPDATE_DOCS"):
        DOCS.write_text(text.replace(found, table), encoding="utf-8")
    else:
        assert found == table, "Run this test with UPDATE_DOCS=1."


LATE = """
# A slow machine gets its time.
tacho.delivery.sender._LATE_SECONDS = 120

class Late:
    def __del__(self):
        tacho.record("X", "late")
        run.step("late")
run = tacho.start_run()
run.step("step")
late = Late()
late.itself = late
"""


def test_what_is_recorded_while_the_interpreter_is_finalized_arrives_and_the_process_ends(shared: Service) -> None:
    code, errors = end(shared, "late", LATE)
    assert code == 0, errors
    assert [event["label"] for event in events_of(shared, "late")] == ["step", "late"]


def test_with_the_service_down_the_process_ends_after_a_second_and_says_what_is_lost(service: Service) -> None:
    service.close()
    program = (
        "import tacho_sdk as tacho, sys\nrun = tacho.start_run()\nrun.step('step')\n"
        "assert tacho.client().core.settings.exit_patience == 1"
    )
    code, errors = end(service, "down", program, begin="")
    assert code == 0
    assert "1 events. They are lost." in errors


def test_a_run_that_was_handed_over_stays_open_and_a_fork_does_not_end_the_runs_of_its_parent(shared: Service) -> None:
    program = """
        tacho.start_run().step("failed")
        run = tacho.start_run()
        run.step("handed over")
        tacho.resume({"runId": "resumed"}).step("resumed")
        run.to_handle()
        if os.fork() == 0:
            raise ValueError
        os.wait()
        fail()
    """
    code, errors = end(shared, "elsewhere", textwrap.dedent(program))
    assert code == 1, errors
    assert [event["label"] for event in events_of(shared, "elsewhere")] == ["failed", "handed over", "resumed", "failed"]
