"""A spool keeps events when processes die, tested with real processes. Same rules as packages/sdk/test/exit.test.ts."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Client, Service, accept_all, assert_balanced, refuse

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of POSIX")
Make = Callable[..., Client]

BEGIN = """
import os, sys, threading, time, tacho_sdk as tacho

client = tacho.configure(spool=os.environ["SPOOL"], flush_interval=0, flush_timeout=0.2)
run = tacho.start_run(run_id="spooled")

def ready():
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
"""


def start(service: Service, spool: Path, program: str) -> subprocess.Popen[str]:
    given = {"TACHO_URL": service.url, "TACHO_API_KEY": "key", "TACHO_CLIENT_ID": "child", "SPOOL": str(spool)}
    command = [sys.executable, "-W", "ignore", "-c", BEGIN + textwrap.dedent(program)]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env={**os.environ, **given}, **streams)


def kill(service: Service, spool: Path, program: str) -> None:
    """Starts a program and kills it as soon as it is ready."""
    child = start(service, spool, program)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    child.kill()
    child.communicate(timeout=120)


def labels(service: Service) -> list[str]:
    # A killed process may leave a request without its body.
    events = [event for batch in service.batches if batch for event in batch]
    return sorted({event["eventId"]: event["label"] for event in events}.values())


def never(_: Any) -> tuple[int, Any, dict[str, str]]:
    time.sleep(3_600)
    return accept_all([])


def test_kill_9_loses_no_event_and_every_event_keeps_its_id(make: Make, service: Service, tmp_path: Path) -> None:
    # The service never answers, so some events are in a request when the process dies.
    service.script("/events/batch", never)
    kill(service, tmp_path, "for n in range(350): run.step(f'step {n}')\nready()")
    before = {event["eventId"] for event in service.events}
    service.script("/events/batch", accept_all)
    client = make(spool=str(tmp_path))
    assert client.tacho.ready(120)
    assert client.tacho.flush(120).left == 0
    ids = {event["eventId"] for event in service.events}
    assert len(ids) == 350 and before <= ids
    assert sorted(labels(service)) == sorted(f"step {n}" for n in range(350))
    assert client.tacho.counters().recovered == 350
    assert_balanced(client.tacho)
    client.tacho.shutdown(120)
    assert [file.stat().st_size for file in tmp_path.iterdir()] == []


def test_kill_9_after_the_first_call_loses_neither_its_event_nor_an_issue_record(
    make: Make, service: Service, tmp_path: Path
) -> None:
    service.script("/events/batch", never)
    service.script("/issue-records", never)
    kill(service, tmp_path, "run.step('first')\ntacho.report_issue(tacho.IssueReport('LOOP_DETECTED'))\nready()")
    service.script("/events/batch", accept_all)
    service.script("/issue-records", lambda _: (202, {"recordId": "r"}, {}))
    client = make(spool=str(tmp_path))
    assert client.tacho.ready(120)
    assert client.tacho.flush(120).left == 0
    assert labels(service) == ["first"]
    # The killed process may have sent the record too, with the same id.
    records = {record["clientRecordId"]: record["detectionType"] for record in service.of("/issue-records") if record}
    assert list(records.values()) == ["LOOP_DETECTED"]
    counts = client.tacho.issue_record_counters()
    assert (counts.recorded, counts.recovered, counts.accepted) == (1, 1, 1)


def test_forked_processes_keep_their_own_lines_and_none_is_lost_or_taken_from_a_live_one(
    make: Make, service: Service, tmp_path: Path
) -> None:
    service.script("/events/batch", refuse(503))
    program = """
        assert client.ready(120)  # It looks again in a minute.
        run.step("parent")
        children = []
        for n in range(3):
            pid = os.fork()
            if pid == 0:
                run.step(f"child {n}")
                os.kill(os.getpid(), 9)
            children.append(pid)
        for pid in children: os.waitpid(pid, 0)
        run.step("parent again")
        ready()
    """
    child = start(service, tmp_path, program)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    living = make(spool=str(tmp_path))
    assert living.tacho.ready(120)
    assert living.tacho.counters().recovered == 3
    child.kill()
    child.communicate(timeout=120)
    living.tacho.shutdown(0)
    service.script("/events/batch", accept_all)
    next_ = make(spool=str(tmp_path))
    assert next_.tacho.ready(120)
    assert next_.tacho.flush(120).left == 0
    assert next_.tacho.counters().accepted == 5
    assert labels(service) == ["child 0", "child 1", "child 2", "parent", "parent again"]


def test_a_pool_and_workers_of_gunicorn_leave_everything_when_they_are_killed(
    make: Make, service: Service, tmp_path: Path
) -> None:
    service.script("/events/batch", refuse(503))
    (tmp_path / "web.py").write_text(
        textwrap.dedent(
            """
            import multiprocessing, os, tacho_sdk as tacho

            client = tacho.configure(spool=os.environ["SPOOL"], flush_timeout=0)
            run = tacho.start_run(run_id="spooled")
            run.step("master")

            def work(n):
                run.step(f"pool {n}")

            def app(environ, start_response):
                run.step("worker " + environ["PATH_INFO"])
                if environ["PATH_INFO"] == "/0":
                    with multiprocessing.get_context("fork").Pool(1) as pool:
                        pool.map(work, range(2))
                        pool.close()
                        pool.join()
                start_response("200 OK", [("content-type", "text/plain")])
                return [b"ok"]
            """
        )
    )
    spool = tmp_path / "spool"
    address = tmp_path / "socket"
    command = [sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"unix:{address}", "web:app"]
    given = {"TACHO_URL": service.url, "TACHO_API_KEY": "key", "SPOOL": str(spool), "PYTHONWARNINGS": "ignore"}
    paths = os.environ.get("PYTHONPATH", "src").split(os.pathsep)
    given["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, paths))
    server = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, **given}, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        for n in range(4):
            assert get(address, f"/{n}").endswith(b"ok")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(120)
    # The workers may be zombies, whose process ids are still in use. After a minute, their segments count as unowned.
    for file in spool.iterdir():
        os.utime(file, (0, 0))
    service.script("/events/batch", accept_all)
    client = make(spool=str(spool))
    assert client.tacho.ready(120)
    assert client.tacho.flush(120).left == 0
    assert labels(service) == ["master", "pool 0", "pool 1", *(f"worker /{n}" for n in range(4))]


def get(address: Path, path: str) -> bytes:
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


def test_several_processes_that_start_at_once_take_each_line_once(make: Make, service: Service, tmp_path: Path) -> None:
    service.script("/events/batch", refuse(503))
    for n in range(4):
        kill(service, tmp_path, f"for n in range(20): run.step('{n} ' + str(n))\nready()")
    service.requests.clear()
    service.script("/events/batch", accept_all)
    program = """
        assert client.ready(120)
        print(client.counters().recovered, client.shutdown(120).left)
    """
    children = [start(service, tmp_path, program) for _ in range(3)]
    ended = [child.communicate(timeout=300) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], ended
    counts = [line.split() for line, _ in ended]
    assert sum(int(recovered) for recovered, _ in counts) == 80
    assert {left for _, left in counts} == {"0"}
    assert len(labels(service)) == 80


def test_an_incomplete_last_line_is_reported_and_all_other_events_are_delivered(
    make: Make, service: Service, tmp_path: Path
) -> None:
    service.script("/events/batch", refuse(503))
    kill(service, tmp_path, "for n in range(10): run.step(f'step {n}')\nready()")
    (file,) = tmp_path.iterdir()
    with file.open("a") as more:
        more.write('{"eventId":"torn","eventTy')
    service.script("/events/batch", accept_all)
    client = make(spool=str(tmp_path))
    assert client.tacho.ready(120)
    client.tacho.shutdown(120)
    assert client.tacho.counters().accepted == 10
    assert "spool_damaged" in client.codes


def test_a_live_client_keeps_its_segments_and_they_are_empty_after_delivery(
    make: Make, service: Service, tmp_path: Path
) -> None:
    service.script("/events/batch", refuse(503))
    first, second = make(spool=str(tmp_path)), make(spool=str(tmp_path))
    first.tacho.start_run().step("kept")
    assert second.tacho.ready(120)
    child = start(service, tmp_path, "assert client.ready(120)\nprint(client.counters().recovered)")
    assert child.communicate(timeout=120)[0] == "0\n"
    assert second.tacho.counters().recovered == 0
    (file,) = tmp_path.glob(f"*.{os.getpid()}.*.events")
    assert file.stat().st_size > 0
    service.script("/events/batch", accept_all)
    assert first.tacho.flush(120).left == 0
    assert first.tacho.counters().accepted == 1
    assert file.stat().st_size == 0


def test_the_next_client_of_the_process_takes_what_a_closed_one_left_and_no_second_one_does(
    make: Make, service: Service, tmp_path: Path
) -> None:
    service.script("/events/batch", refuse(503))
    closed = make(spool=str(tmp_path))
    closed.tacho.start_run().step("left")
    assert closed.tacho.shutdown(0).left == 1
    next_ = make(spool=str(tmp_path))
    assert next_.tacho.ready(120)
    assert next_.tacho.counters().recovered == 1
    child = start(service, tmp_path, "assert client.ready(120)\nprint(client.counters().recovered)")
    assert child.communicate(timeout=120)[0] == "0\n"
    service.script("/events/batch", accept_all)
    next_.tacho.shutdown(120)
    assert next_.tacho.counters().accepted == 1


def line(event_id: str) -> str:
    return json.dumps({"eventId": event_id, "eventType": "X", "label": event_id}) + "\n"


def plant(spool: Path, name: str, text: str) -> Path:
    file = spool / f"elsewhere.1.1.{name}.events"
    file.write_text(text)
    os.utime(file, (0, 0))
    return file


def test_only_plain_files_of_this_user_are_read_and_a_repeated_event_is_sent_once(
    make: Make, service: Service, tmp_path: Path
) -> None:
    spool, elsewhere = tmp_path / "spool", tmp_path / "secret"
    spool.mkdir()
    elsewhere.write_text(line("linked"))
    (spool / "elsewhere.1.1.link.events").symlink_to(elsewhere)
    (spool / "elsewhere.1.1.folder.events").mkdir()
    os.mkfifo(spool / "elsewhere.1.1.pipe.events")
    for name in ("folder", "pipe"):
        os.utime(spool / f"elsewhere.1.1.{name}.events", (0, 0))
    plant(spool, "large", "x" * (2 * 1_048_576 + 1))
    plant(spool, "twice", line("same") + line("same"))
    # The name has the id of a living process, but the file was not changed for an hour.
    plant(spool, "pid", line("pid")).rename(spool / f"elsewhere.{os.getppid()}.1.pid.events")
    left = {"link", "folder", "pipe", "large"}
    if os.getuid() == 0:
        os.chown(plant(spool, "foreign", line("foreign")), 1, 1)
        left.add("foreign")
    client = make(spool=str(spool))
    assert client.tacho.ready(120)
    client.tacho.shutdown(120)
    assert client.tacho.counters().accepted == 2
    assert labels(service) == ["pid", "same"]
    assert client.codes == ["spool_skipped"]
    assert {name.name.split(".")[3] for name in spool.glob("elsewhere.*")} == left


def test_every_file_that_no_sdk_wrote_is_left_alone_whatever_its_ending(make: Make, tmp_path: Path) -> None:
    names = ["calendar.events", "github.issues", "a.b.c.d.events", ".1.events", "host.1.1.events", "host.1.1.an id.events"]
    for name in names:
        (tmp_path / name).write_text(line("e"))
        os.utime(tmp_path / name, (0, 0))
    client = make(spool=str(tmp_path))
    assert client.tacho.ready(120)
    client.tacho.shutdown(120)
    assert client.tacho.counters().recovered == 0
    assert sorted(os.listdir(tmp_path)) == sorted(names)


def test_what_dead_processes_left_fills_at_most_half_of_the_queue(make: Make, service: Service, tmp_path: Path) -> None:
    service.script("/events/batch", refuse(503))
    plant(tmp_path, "tiny", "".join("x\n" if n % 2 == 0 else f'{{"eventId":"{n}","eventType":"X"}}\n' for n in range(30_000)))
    client = make(spool=str(tmp_path), max_queued_events=10_000)
    assert client.tacho.ready(120)
    counts = client.tacho.counters()
    assert (counts.queued, counts.recovered, counts.dropped) == (5_000, 5_000, {})
    client.tacho.shutdown(0)
    # The next process delivers the remaining events.
    next_ = make(spool=str(tmp_path), max_queued_events=40_000)
    assert next_.tacho.ready(120)
    assert next_.tacho.counters().recovered == 15_000
    next_.tacho.shutdown(0)


def test_a_full_queue_drops_from_the_spool_too_and_the_spool_is_bounded(make: Make, service: Service, tmp_path: Path) -> None:
    service.script("/events/batch", refuse(503))
    client = make(spool=str(tmp_path), max_queued_bytes=1_048_576)
    run = client.tacho.start_run()
    for n in range(100):
        run.record("X", str(n), {"text": "x" * 100_000})
    assert client.tacho.counters().dropped["queue_full"] > 80
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 4 * 1_048_576
    assert client.codes.count("spool_failed") == 0
    # Only the first delivery reports this.
    service.script("/events/batch", accept_all)
    service.requests.clear()
    assert client.tacho.flush(120).left == 0
    run.record("X", "later")
    assert client.tacho.flush(120).left == 0
    said = [headers.get("x-tacho-spool") for _, _, headers, *_ in service.requests]
    assert said[0] == "full" and set(said[1:]) == {None}


def test_an_id_of_the_host_that_is_recorded_twice_leaves_nothing_in_the_spool(
    make: Make, service: Service, tmp_path: Path
) -> None:
    client = make(spool=str(tmp_path))
    run = client.tacho.start_run()
    assert [run.record("X", "own", event_id="order-7") for _ in range(2)] == ["order-7", "order-7"]
    assert client.tacho.flush(120).left == 0
    assert {event["eventId"] for event in service.events} == {"order-7"}
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) == 0


def test_a_disk_that_is_full_in_the_middle_of_a_line_is_reported_and_memory_delivers_everything(
    make: Make, service: Service, tmp_path: Path
) -> None:
    # A limit on the file size cuts a line in the middle, as a full disk does.
    limits = (20_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    program = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, {limits})
        # Nothing is delivered, and so removed, in between.
        worker = client.core.sender._worker
        worker.wake = lambda: True
        for n in range(150): run.step(f"step {{n}}")
        del worker.wake
        assert client.flush(120).left == 0
    """
    child = start(service, tmp_path, program)
    _, errors = child.communicate(timeout=120)
    assert errors == "tacho: The spool cannot be used (EFBIG): what is recorded is only in memory.\n"
    assert len(labels(service)) == 150
    # Complete lines survive, and the next process sends them again with the same ids.
    client = make(spool=str(tmp_path))
    assert client.tacho.ready(120)
    client.tacho.shutdown(120)
    assert 20 < client.tacho.counters().accepted < 150
    assert client.codes == ["spool_damaged"]
    assert len(labels(service)) == 150


@pytest.mark.parametrize("folder", ["file/folder", "a\0b"])
def test_a_spool_that_cannot_be_written_is_reported_and_recording_continues(
    make: Make, service: Service, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "file").touch()
    client = make(spool=f"{tmp_path}/{folder}")
    assert client.tacho.ready(120)
    client.tacho.start_run().step("recorded")
    client.tacho.shutdown(120)
    assert client.tacho.counters().accepted == 1
    assert client.codes == ["spool_failed"]
    assert service.requests[-1][2].get("x-tacho-spool") == "failed"


def test_a_process_that_ends_while_the_service_is_down_says_that_the_spool_keeps_its_events(
    make: Make, service: Service, tmp_path: Path
) -> None:
    service.script("/events/batch", refuse(503))
    child = start(service, tmp_path, "run.step('step')")
    _, errors = child.communicate(timeout=120)
    assert f"Not delivered to {service.url}: 1 events. The spool keeps them." in errors
    service.script("/events/batch", accept_all)
    client = make(spool=str(tmp_path))
    assert client.tacho.ready(120)
    assert client.tacho.flush(120).left == 0
    assert client.tacho.counters().accepted == 1


def test_without_a_spool_there_is_nothing_to_wait_for_and_a_disabled_client_opens_none(make: Make, tmp_path: Path) -> None:
    assert make().tacho.ready(0)
    client = make(spool=str(tmp_path / "spool"), enabled=False)
    assert client.tacho.ready(0)
    assert not (tmp_path / "spool").exists()


def test_a_replay_leaves_the_events_on_disk_alone(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACHO_REPLAY", "http://127.0.0.1:9")
    client = make(spool=str(tmp_path / "spool")).tacho
    client.start_run(run_id="replayed").end("COMPLETED")
    client.shutdown(0)
    assert not (tmp_path / "spool").exists()
