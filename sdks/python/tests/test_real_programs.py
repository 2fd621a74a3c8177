"""
Small real programs with popular frameworks: which events arrive, and which calls are blocked. They need the packages of
requirements-programs.txt: TACHO_TEST_FRAMEWORKS=1 npm test -- python. docs/sdk/programs.md has the results.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import Service


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}: set TACHO_TEST_FRAMEWORKS=1")


TOOL = """
import asyncio, os, tacho_sdk as tacho

@tacho.guard
def refund(order: int, amount: float) -> str:
    return f"refunded {amount} for {order}"

def answer(order, amount):
    try:
        return refund(order, amount)
    except tacho.ToolBlockedError as blocked:
        return blocked.code
"""


@pytest.fixture
def guarding(service: Service) -> Service:
    service.deploy('tool.name == "refund" && tool.input.amount > 100', "BLOCK")
    return service


class Program:
    """A folder with the program, and the variables of its environment."""

    def __init__(self, folder: Path, service: Service, code: str) -> None:
        self.folder = folder
        self.service = service
        (folder / "program.py").write_text(TOOL + textwrap.dedent(code))
        path = [str(Path(__file__).parents[1] / "src"), str(folder)]
        self.variables = {
            **os.environ,
            "TACHO_URL": service.url,
            "TACHO_API_KEY": "key",
            "PYTHONPATH": os.pathsep.join(path),
        }

    def run(self, *args: str) -> str:
        done = subprocess.run(
            [sys.executable, *args], cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def serving(self, *args: str) -> Iterator[None]:
        with open(self.folder / "log", "w") as log:
            process = subprocess.Popen(
                [sys.executable, *args], cwd=self.folder, env=self.variables, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(600)

    def get(self, path: str, parts: int | None = None) -> bytes:
        """The reply of a server on the socket of this folder. `parts`: reads only until this much has arrived."""
        address = str(self.folder / "socket")
        connection = socket.socket(socket.AF_UNIX)

        def connect() -> bool:
            try:
                connection.connect(address)
                return True
            except OSError:
                return False

        self.service.until(connect)
        with connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            received = b""
            while True:
                piece = connection.recv(4_096)
                received += piece
                if not piece or (parts is not None and received.count(b"piece") >= parts):
                    return received


def by_run(service: Service) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = {}
    for event in service.events:
        labels.setdefault(event["runId"], []).append(event["label"])
    return labels


CHAT = ["piece 0", "refund", "refund", "piece 1", "BLOCK refund", "completed"]
CHAT_PIECES = """
def say(n):
    tacho.record("PIECE", f"piece {n}")
    return f"piece {n}: {answer(n, 10 if n == 0 else 500)}\\n"
"""
FASTAPI = (
    CHAT_PIECES
    + """
from contextlib import asynccontextmanager
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

@asynccontextmanager
async def lifespan(app):
    yield
    # Uvicorn ends the process by the signal that it got, without atexit.
    await tacho.aflush()

app = FastAPI(lifespan=lifespan)

async def pieces(count):
    for n in range(count):
        yield say(n)
        await asyncio.sleep(0)

@app.get("/async/{name}")
@tacho.run(agent_name="Chat")
async def chat(name: str):
    tacho.current_run().annotate(path=name)
    return StreamingResponse(pieces(2))

@app.get("/sync")
@tacho.run(agent_name="Chat")
def sync_chat():
    return StreamingResponse(say(n) for n in range(2))

@app.get("/endless")
@tacho.run(agent_name="Chat", run_id="endless")
async def endless():
    async def forever():
        while True:
            yield "piece\\n"
            await asyncio.sleep(0.001)
    return StreamingResponse(forever())

@app.get("/plain/{amount}")
@tacho.run(run_id="plain")
async def plain(amount: int):
    return {"answer": await asyncio.to_thread(answer, 1, amount)}
"""
)


@needs("fastapi", "uvicorn")
def test_fastapi_with_streaming(guarding: Service, tmp_path: Path) -> None:
    program = Program(tmp_path, guarding, FASTAPI)
    with program.serving("-m", "uvicorn", "program:app", "--uds", "socket"):
        for path in ("/async/a", "/sync"):
            reply = program.get(path)
            assert b"piece 0: refunded 10" in reply and b"piece 1: policy" in reply
        assert b'{"answer":"policy"}' in program.get("/plain/500")
        program.get("/endless", 3)
        guarding.until(lambda: by_run(guarding).get("endless") == ["cancelled"])
        # The run of this request is recorded immediately before the server ends.
        program.get("/plain/700")
    runs = by_run(guarding)
    assert runs.pop("endless") == ["cancelled"] and runs.pop("plain") == ["BLOCK refund", "completed"] * 2
    assert [*runs.values()] == [CHAT, CHAT]


DJANGO = (
    CHAT_PIECES
    + """
import django
from django.conf import settings
from django.http import JsonResponse, StreamingHttpResponse
from django.urls import path

settings.configure(ROOT_URLCONF="program", ALLOWED_HOSTS=["*"], SECRET_KEY="s", MIDDLEWARE=[])
django.setup()

@tacho.run(agent_name="Chat")
def chat(request):
    return StreamingHttpResponse(say(n) for n in range(2))

@tacho.run(agent_name="Chat")
async def async_chat(request):
    async def pieces():
        for n in range(2):
            yield say(n)
            await asyncio.sleep(0)
    return StreamingHttpResponse(pieces())

@tacho.run(run_id="plain")
def plain(request):
    return JsonResponse({"answer": answer(1, 500)})

urlpatterns = [path("chat", chat), path("async", async_chat), path("plain", plain)]

from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

wsgi, asgi = get_wsgi_application(), get_asgi_application()
"""
)


@needs("django", "gunicorn", "uvicorn")
@pytest.mark.parametrize(
    ("path", "server"),
    [
        ("/chat", ("gunicorn", "-w", "2", "-b", "unix:socket", "program:wsgi")),
        ("/async", ("uvicorn", "program:asgi", "--uds", "socket")),
    ],
    ids=["wsgi", "asgi"],
)
def test_django_with_streaming(guarding: Service, tmp_path: Path, path: str, server: tuple[str, ...]) -> None:
    program = Program(tmp_path, guarding, DJANGO)
    with program.serving("-m", *server):
        reply = program.get(path)
        assert b"piece 0: refunded 10" in reply and b"piece 1: policy" in reply
        assert b'{"answer": "policy"}' in program.get("/plain")
        if server[0] == "uvicorn":
            # Django has no hook at the end of the server, so wait until the runs have arrived.
            guarding.until(lambda: len(by_run(guarding).get("plain", [])) == 2)
    runs = by_run(guarding)
    assert runs.pop("plain") == ["BLOCK refund", "completed"]
    assert [*runs.values()] == [CHAT]


FLASK = (
    CHAT_PIECES
    + """
from flask import Flask, Response

app = Flask("program")

@app.get("/chat")
@tacho.run(agent_name="Chat")
def chat():
    return Response(say(n) for n in range(2))
"""
)


@needs("flask", "gunicorn")
def test_flask_with_streaming_in_threads_of_gunicorn(guarding: Service, tmp_path: Path) -> None:
    program = Program(tmp_path, guarding, FLASK)
    with program.serving("-m", "gunicorn", "--threads", "2", "-b", "unix:socket", "program:app"):
        reply = program.get("/chat")
        assert b"piece 0: refunded 10" in reply and b"piece 1: policy" in reply
    assert [*by_run(guarding).values()] == [CHAT]


CELERY = """
from celery import Celery

app = Celery("program", broker="filesystem://", backend="file://results")
app.conf.broker_transport_options = {"data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control"}
for folder in ("queue", "results", "control"):
    os.makedirs(folder, exist_ok=True)

@app.task
def work(handle, amount):
    with tacho.resume(handle).within() as run:
        result = answer(7, amount)
        run.leave()
        return result
"""
CELERY_HOST = """
import tacho_sdk as tacho
from program import work

with tacho.run(run_id="celery", agent_name="Worker") as run:
    results = [work.delay(run.to_handle(), amount) for amount in (10, 500)]
    print([result.get(timeout=300) for result in results])
"""


@needs("celery")
def test_celery_continues_a_run(guarding: Service, tmp_path: Path) -> None:
    program = Program(tmp_path, guarding, CELERY)
    (tmp_path / "host.py").write_text(CELERY_HOST)
    with program.serving("-m", "celery", "-A", "program", "worker", "--pool", "prefork", "-c", "2", "--without-mingle"):
        assert program.run("host.py").strip() == "['refunded 10 for 7', 'policy']"
    (labels,) = by_run(guarding).values()
    assert sorted(labels) == ["BLOCK refund", "completed", "left the run", "left the run", "refund", "refund"]
    assert {event["agentName"] for event in guarding.events} == {"Worker"}


POOL = """
from concurrent.futures import ProcessPoolExecutor

def work(handle, amount):
    with tacho.resume(handle).within() as run:
        result = answer(7, amount)
        run.leave()
        return result

if __name__ == "__main__":
    with tacho.run(run_id="pool") as run, ProcessPoolExecutor(2) as pool:
        print([*pool.map(work, [run.to_handle()] * 4, (10, 500, 20, 30))])
"""


def test_a_process_pool_continues_a_run(guarding: Service, tmp_path: Path) -> None:
    program = Program(tmp_path, guarding, POOL)
    assert program.run("program.py").count("refunded") == 3
    (labels,) = by_run(guarding).values()
    assert sorted(labels) == ["BLOCK refund", "completed", *["left the run"] * 4, *["refund"] * 6]


JUPYTER = """
import nbformat
from nbclient import NotebookClient

cells = [
    "from program import answer, tacho",
    "run = tacho.start_run(run_id='open'); run.step('cell')",
    "async with tacho.run(run_id='cell', agent_name='Notebook'):\\n    print(answer(1, 10), answer(1, 500))",
    "raise ValueError('a cell that fails ends nothing')",
    "run.step('later'); run.end()",
    "@tacho.observe\\nasync def research(topic):\\n    return topic\\nawait research('whales')",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, allow_errors=True).execute()
print(notebook.cells[2].outputs[0].text)
"""


@needs("ipykernel", "nbclient")
def test_jupyter(guarding: Service, tmp_path: Path) -> None:
    program = Program(tmp_path, guarding, "")
    (tmp_path / "notebook.py").write_text(JUPYTER)
    assert "refunded 10 for 1 policy" in program.run("notebook.py")
    runs = by_run(guarding)
    assert runs.pop("open") == ["cell", "later", "completed"]
    assert runs.pop("cell") == ["refund", "refund", "BLOCK refund", "completed"]
    assert [*runs.values()] == [["research", "completed"]]


# `find_spec` raises for a module inside a missing package.
SQLITE = "langgraph.checkpoint.sqlite" if importlib.util.find_spec("langgraph") else "langgraph"
LANGGRAPH = """
import asyncio, sys, tacho_sdk as tacho
from typing import TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from tacho_sdk.integrations.langchain import TachoHandler
from program import answer

class State(TypedDict, total=False):
    amount: int
    said: str

def ask(state):
    return {"amount": interrupt("How much?")}

def pay(state):
    return {"said": answer(7, state["amount"])}

graph = StateGraph(State)
graph.add_node("ask", ask)
graph.add_node("pay", pay)
graph.add_edge(START, "ask")
graph.add_edge("ask", "pay")
graph.add_edge("pay", END)

with SqliteSaver.from_conn_string("checkpoints") as saver:
    agent = graph.compile(checkpointer=saver)
    given = {} if sys.argv[1] == "begin" else Command(resume=int(sys.argv[1]))
    with tacho.run(session_id="conversation", agent_name="Payer"):
        for chunk in agent.stream(given, {"configurable": {"thread_id": "1"}, "callbacks": [TachoHandler()]}):
            print(chunk)
"""
LEFT = """
import asyncio, tacho_sdk as tacho
from typing import TypedDict
from langgraph.graph import END, START, StateGraph
from tacho_sdk.integrations.langchain import TachoHandler
from program import answer

class State(TypedDict, total=False):
    n: int

def node(n):
    return lambda state: {"n": n}

graph = StateGraph(State)
for n in range(3):
    graph.add_node(str(n), node(n))
for edge in ((START, "0"), ("0", "1"), ("1", "2"), ("2", END)):
    graph.add_edge(*edge)
agent = graph.compile()

async def customer(n):
    async for _ in agent.astream({}, {"callbacks": [TachoHandler()]}):
        break
    await asyncio.sleep(0.01)
    with tacho.run(run_id=f"after-{n}") as run:
        pass
    while tacho.current_run() is not None:
        await asyncio.sleep(0.01)
    # Outside any run: a call of its own.
    answer(n, 10)

async def main():
    for n in range(2):
        await customer(n)

asyncio.run(main())
"""


@needs(SQLITE)
def test_langgraph_with_a_checkpointer_continues_in_another_process(guarding: Service, tmp_path: Path) -> None:
    program = Program(tmp_path, guarding, "")
    (tmp_path / "agent.py").write_text(LANGGRAPH)
    assert "__interrupt__" in program.run("agent.py", "begin")
    assert "'said': 'policy'" in program.run("agent.py", "500")
    assert [*by_run(guarding).values()] == [["ask", "completed"], ["ask", "BLOCK refund", "pay", "completed"]]
    assert {event["sessionId"] for event in guarding.events} == {"conversation"}


@needs(SQLITE)
def test_a_stream_of_langgraph_that_is_left_leaves_no_run_behind(guarding: Service, tmp_path: Path) -> None:
    program = Program(tmp_path, guarding, "")
    (tmp_path / "agent.py").write_text(LEFT)
    program.run("agent.py")
    runs = by_run(guarding)
    assert runs.pop("after-0") == runs.pop("after-1") == ["completed"]
    assert sorted(labels[-1] for labels in runs.values()) == ["cancelled", "cancelled", "completed", "completed"]
    assert sum(labels == ["refund", "refund", "completed"] for labels in runs.values()) == 2


PANDAS = """
import numpy, pandas

@tacho.guard
def store(amount, rows):
    return rows

with tacho.run():
    try:
        store(numpy.float64(500), pandas.DataFrame({"a": [1, 2]}))
    except tacho.ToolBlockedError as blocked:
        print(blocked.code)
    assert list(store(numpy.float64(5), pandas.DataFrame({"a": [1, 2]}))["a"]) == [1, 2]
    tacho.record("X", "x", {"frame": pandas.DataFrame({"a": [1, 2]})})
"""


@needs("numpy", "pandas")
def test_numpy_and_pandas(service: Service, tmp_path: Path) -> None:
    service.deploy('tool.name == "store" && tool.input.amount > 100.0', "BLOCK", "MEDIUM")
    program = Program(tmp_path, service, PANDAS)
    assert program.run("program.py").strip() == "policy"
    call = next(event for event in service.events if event["eventType"] == "TOOL_CALL")
    assert "0  1" in call["payload"]["input"]["rows"] and "0  1" in call["payload"]["output"]
    last = next(event for event in service.events if event["label"] == "x")
    assert last["payload"]["frame"].split() == ["a", "0", "1", "1", "2"]
