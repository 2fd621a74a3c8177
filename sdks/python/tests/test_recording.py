"""Runs, spans and events: what is recorded, on which run, in which thread or task."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Client, Service, assert_balanced
from tacho_sdk import core

Make = Callable[..., Client]


def sent(client: Client, service: Service) -> list[dict[str, Any]]:
    assert client.tacho.flush(120).left == 0
    return service.events


def test_a_run_records_its_events_and_outcome(make: Make, service: Service) -> None:
    client = make(agent_id="support", agent_name="Support agent")
    with client.tacho.run(session_id="s", run_id="r") as run:
        run.user_input("Hello")
        run.llm_call(model="m", latency=12, cost=0.1, usage={"promptTokens": 1}, output="Hi", other=1)
        run.tool_call("find", input={"order": 7}, output={"status": "sent"}, latency=3)
        run.error(ValueError("no"))
        client.tacho.record("HANDOVER", "to a person", {"reason": "angry"})
    events = sent(client, service)
    assert [event["eventType"] for event in events] == [
        *("USER_INPUT", "LLM_CALL", "TOOL_CALL", "ERROR", "HANDOVER", "SESSION_OUTCOME"),
    ]
    assert events[0]["payload"] == {"text": "Hello"}
    assert events[1]["payload"]["usage"] == {"promptTokens": 1} and events[1]["payload"]["other"] == 1
    exception = {"type": "ValueError", "message": "no", "stack": "ValueError: no\n"}
    assert events[3]["payload"] == {"message": "no", "exception": exception} and events[3]["label"] == "ValueError"
    assert events[-1]["payload"] == {"status": "COMPLETED"}
    for event in events:
        assert (event["runId"], event["sessionId"], event["clientId"]) == ("r", "s", "c")
        assert (event["agentId"], event["agentName"]) == ("support", "Support agent")
        assert uuid.UUID(event["eventId"]).version == 7
        assert re.fullmatch("[0-9a-f]{16}", event["spanId"])
    assert len({event["eventId"] for event in events}) == len(events)
    assert_balanced(client.tacho)


def test_what_an_answer_asked_for_is_recorded_under_the_names_of_the_protocol(make: Make, service: Service) -> None:
    asked = [{"id": "c1", "name": "find", "arguments": {"order": 7}}]
    client = make()
    with client.tacho.run() as run:
        run.llm_call(model="m", output="I look.", tool_calls=asked, finish_reason="tool_calls")
        run.tool_call("find", input={"order": 7}, output="sent", tool_call_id="c1")
    answer, call, _ = (event["payload"] for event in sent(client, service))
    assert answer == {"model": "m", "output": "I look.", "toolCalls": asked, "finishReason": "tool_calls"}
    assert call == {"toolName": "find", "input": {"order": 7}, "output": "sent", "toolCallId": "c1"}


@pytest.mark.parametrize(
    ("error", "status", "text", "said"),
    [
        (ValueError("no"), "FAILED", "ValueError: no", "ValueError: no"),
        (asyncio.CancelledError(), "CANCELLED", None, "asyncio.exceptions.CancelledError: Its task was cancelled."),
        (KeyboardInterrupt(), "CANCELLED", "KeyboardInterrupt", "KeyboardInterrupt: The process was interrupted."),
        (
            tacho.ToolBlockedError("policy", "pay"),
            "FAILED",
            "ToolBlockedError: The tool pay was not run (policy)",
            "tacho_sdk.ToolBlockedError: The tool pay was not run (policy)",
        ),
    ],
)
def test_the_outcome_follows_the_exception(
    make: Make, service: Service, error: BaseException, status: str, text: str | None, said: str
) -> None:
    client = make()
    with suppress(BaseException), client.tacho.run():
        raise error
    payload = sent(client, service)[0]["payload"]
    assert payload["status"] == status
    exception = payload["exception"]
    assert (payload.get("error"), f"{exception['type']}: {exception['message']}") == (text, said)


def test_decorators_make_a_run_for_each_call(make: Make, service: Service) -> None:
    client = make()

    @client.tacho.run(agent_name="sync")
    def work() -> int:
        client.tacho.record("X", "x")
        return 1

    @client.tacho.run(agent_name="async")
    async def work_async() -> int:
        await asyncio.sleep(0)
        client.tacho.record("X", "x")
        return 2

    @client.tacho.run(agent_name="generator")
    def stream() -> Iterator[int]:
        for n in range(3):
            client.tacho.record("X", "x")
            yield n

    assert (work(), work(), asyncio.run(work_async())) == (1, 1, 2)
    items = []
    for n in stream():
        # The caller's current run is not the generator's.
        assert client.tacho.current_run() is None
        items.append(n)
    assert items == [0, 1, 2]
    events = sent(client, service)
    assert len({event["runId"] for event in events}) == 4
    assert [event["payload"]["status"] for event in events if event["eventType"] == "SESSION_OUTCOME"] == ["COMPLETED"] * 4
    assert client.tacho.counters().dropped == {}


def test_decorated_generators_have_a_context_of_their_own(make: Make, service: Service) -> None:
    client = make()

    def name() -> str | None:
        run = client.tacho.current_run()
        return run.run_id if run else None

    closed: list[int] = []

    @client.tacho.run(run_id="sync")
    def items() -> Iterator[str | None]:
        try:
            yield name()
            yield name()
        finally:
            client.tacho.record("CLOSED", "closed")

    @client.tacho.run(run_id="async")
    async def stream() -> Any:
        try:
            sent = yield name()
            assert sent == "sent"
            assert {*await asyncio.gather(asyncio.to_thread(name), inner())} == {"async"}
            yield name()
        finally:
            await asyncio.sleep(0)
            client.tacho.record("CLOSED", "closed")
            closed.append(1)

    async def inner() -> str | None:
        await asyncio.sleep(0)
        return name()

    async def main() -> None:
        async with client.tacho.run(run_id="host"):
            for item in items():
                assert (item, name()) == ("sync", "host")
                break
            generator = stream()
            assert await generator.asend(None) == "async" and name() == "host"
            assert await generator.asend("sent") == "async" and name() == "host"
            await generator.aclose()
        async for item in stream():
            assert (item, name()) == ("async", None)
            break
        assert name() is None
        while len(closed) < 2:
            await asyncio.sleep(0)

    asyncio.run(main())
    events = sent(client, service)
    assert sorted((event["runId"], event["label"]) for event in events) == [
        *(("async", "cancelled"), ("async", "cancelled"), ("async", "closed"), ("async", "closed")),
        *(("host", "completed"), ("sync", "cancelled"), ("sync", "closed")),
    ]


def test_a_generator_passes_on_what_is_thrown_and_returned(make: Make, service: Service) -> None:
    client = make()

    @client.tacho.run
    async def fails() -> Any:
        try:
            yield 1
        except KeyError:
            yield 2
        raise ValueError("no")

    async def main() -> None:
        generator = fails()
        assert await generator.__anext__() == 1
        assert await generator.athrow(KeyError("k")) == 2
        with pytest.raises(ValueError, match="no"):
            await generator.__anext__()

    asyncio.run(main())

    @client.tacho.run
    def returns() -> Any:
        given = yield 1
        return given

    generator = returns()
    next(generator)
    with pytest.raises(StopIteration) as end:
        generator.send(7)
    assert end.value.value == 7
    statuses = [event["payload"]["status"] for event in sent(client, service)]
    assert statuses == ["FAILED", "COMPLETED"]
    assert inspect.isasyncgenfunction(fails) and inspect.isgeneratorfunction(returns)


def test_a_run_that_ended_is_current_nowhere(make: Make) -> None:
    client = make()
    with client.tacho.run(run_id="outer"), client.tacho.run(run_id="inner") as inner:
        inner.end()
        current = client.tacho.current_run()
        assert current is not None and current.run_id == "outer"

    async def left() -> Any:
        async with client.tacho.run():
            yield 1

    async def main() -> None:
        async for _ in left():
            break
        while client.tacho.current_run() is not None:
            await asyncio.sleep(0)
        assert client.tacho.record("X", "x") is None

    asyncio.run(main())


def test_a_generator_that_is_never_read_ends_its_run(make: Make, service: Service) -> None:
    client = make()

    def items() -> Iterator[int]:
        yield 1

    generator = client.tacho.run(lambda: items())()
    del generator
    gc.collect()
    assert [event["payload"]["status"] for event in sent(client, service)] == ["CANCELLED"]


def test_observe_records_any_function(make: Make, service: Service) -> None:
    client = make()

    @client.tacho.observe
    def plan(question: str, *, depth: int = 1) -> list[str]:
        return [question]

    @client.tacho.observe(name="Answer")
    async def answer(question: str, notes: list[int]) -> str:
        notes.append(1)
        await asyncio.sleep(0)
        return plan(question)[0]

    @client.tacho.observe(content=False)
    def secret(word: str) -> str:
        raise ValueError("no")

    class Agent:
        @client.tacho.observe
        def act(self, n: int) -> Iterator[int]:
            yield n

    assert asyncio.run(answer("q", [])) == "q"
    with pytest.raises(ValueError):
        secret("s")
    assert list(Agent().act(1)) == [1]
    events = sent(client, service)
    assert [(event["eventType"], event["label"]) for event in events] == [
        *(("AGENT_STEP", "plan"), ("AGENT_STEP", "Answer"), ("SESSION_OUTCOME", "completed")),
        *(("AGENT_STEP", "secret"), ("SESSION_OUTCOME", "failed")),
        *(("AGENT_STEP", "act"), ("SESSION_OUTCOME", "completed")),
    ]
    inner, outer = events[0], events[1]
    assert (inner["payload"]["input"], inner["payload"]["output"]) == ({"question": "q", "depth": 1}, ["q"])
    assert (outer["payload"]["input"], outer["payload"]["output"]) == ({"question": "q", "notes": []}, "q")
    assert inner["parentSpanId"] == outer["spanId"] and inner["runId"] == outer["runId"]
    assert "input" not in events[3]["payload"] and "no" in events[3]["payload"]["error"]
    assert events[5]["payload"]["input"] == {"n": 1}


@pytest.mark.parametrize("kind", ["block", "decorated", "started"])
def test_a_run_begins_when_it_was_entered(make: Make, service: Service, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(core, "RUN_STARTED_MS", 50)
    client = make()

    def work() -> None:
        time.sleep(0.2)
        client.tacho.record("LLM_CALL", "m")
        time.sleep(0.2)
        client.tacho.record("X", "x")

    before = time.time_ns() // 1_000_000
    if kind == "decorated":
        client.tacho.run(work)()
    elif kind == "started":
        run = client.tacho.start_run()
        with run.within():
            work()
        run.end()
    else:
        with client.tacho.run():
            work()
    with monkeypatch.context() as patch:
        # On a busy machine, the first event comes later than the real limit.
        patch.setattr(core, "RUN_STARTED_MS", 600_000)
        with client.tacho.run():
            client.tacho.record("X", "at once")
    continued = client.tacho.start_run(run_id="elsewhere")
    time.sleep(0.1)
    continued.step("late")
    events = sent(client, service)
    labels = [event["label"] for event in events]
    assert labels == ["run started", "m", "x", "completed", "at once", "completed", "late"]
    assert before <= events[0]["timestamp"] <= events[1]["timestamp"] - 200 and events[0]["spanId"] == events[1]["spanId"]


def test_closing_an_observed_generator_is_no_error(make: Make, service: Service) -> None:
    client = make()

    @client.tacho.observe
    async def pieces() -> Any:
        yield 1
        yield 2

    async def main() -> None:
        generator = pieces()
        await generator.asend(None)
        await generator.aclose()

    asyncio.run(main())
    step, end = sent(client, service)
    assert "error" not in step["payload"] and "exception" not in step["payload"]
    assert end["payload"] == {"status": "CANCELLED"}


def test_a_run_ends_when_what_its_function_returned_has_run(make: Make, service: Service) -> None:
    client = make()

    async def body() -> int:
        await asyncio.sleep(0)
        client.tacho.record("X", "x")
        return 1

    def items() -> Iterator[int]:
        client.tacho.record("X", "x")
        yield 2

    async def pieces() -> Any:
        client.tacho.record("X", "x")
        yield 3

    async def gather(stream: Any) -> list[int]:
        return [item async for item in stream]

    class Agent:
        async def __call__(self) -> int:
            return await body()

    decorate: Any = client.tacho.run(agent_name="a")
    for coroutine in (decorate(lambda: body()), decorate(Agent()), decorate(functools.partial(body))):
        assert asyncio.run(coroutine()) == 1
    for generator in (decorate(lambda: items()), decorate(functools.partial(items))):
        assert list(generator()) == [2]
    for stream in (decorate(lambda: pieces()), decorate(functools.partial(pieces))):
        assert asyncio.run(gather(stream())) == [3]
    assert client.tacho.current_run() is None
    events = sent(client, service)
    assert [event["eventType"] for event in events] == ["X", "SESSION_OUTCOME"] * 7
    assert [event["payload"]["status"] for event in events[1::2]] == ["COMPLETED"] * 7
    assert client.tacho.counters().dropped == {}


def test_spans_nest_and_tell_their_latency(make: Make, service: Service) -> None:
    client = make()
    with client.tacho.run() as run, run.span("outer"):
        client.tacho.record("A", "a")
        with suppress(ValueError), run.span("inner"):
            client.tacho.record("B", "b")
            raise ValueError("no")
    events = {event["label"]: event for event in sent(client, service)}
    assert events["a"]["spanId"] == events["outer"]["spanId"]
    assert events["b"]["spanId"] == events["inner"]["spanId"]
    assert events["inner"]["parentSpanId"] == events["outer"]["spanId"]
    assert events["outer"]["parentSpanId"] == events["completed"]["spanId"]
    assert events["inner"]["payload"]["error"] == "ValueError: no"
    assert events["outer"]["payload"]["latency"] >= 0


def test_tasks_keep_their_own_run_and_threads_enter_one(make: Make, service: Service) -> None:
    client = make()

    async def agent(name: str) -> None:
        async with client.tacho.run(run_id=name) as run:
            for _ in range(5):
                await asyncio.sleep(0)
                client.tacho.record("X", name)
            async with run.span("s"):
                await asyncio.gather(*(child(name) for _ in range(3)))

    async def child(name: str) -> None:
        await asyncio.sleep(0)
        client.tacho.record("Y", name)

    async def main() -> None:
        await asyncio.gather(*(agent(f"run-{n}") for n in range(10)))

    asyncio.run(main())

    def in_thread(run: tacho.Run) -> None:
        client.tacho.record("LOST", "no run in a new thread")
        with run.within():
            client.tacho.record("Z", "thread")

    with client.tacho.run(run_id="thread") as run:
        thread = threading.Thread(target=in_thread, args=(run,))
        thread.start()
        thread.join()
    events = sent(client, service)
    for event in events:
        assert event["label"] in (event["runId"], "s", "completed", "thread")
    assert len(events) == 10 * 10 + 2
    assert client.tacho.counters().dropped == {"no_run": 1}


def test_two_clients_do_not_share_runs(make: Make) -> None:
    one, two = make(), make()
    with one.tacho.run(run_id="one"), two.tacho.run(run_id="two"):
        assert one.tacho.current_run().run_id == "one"  # type: ignore[union-attr]
        assert two.tacho.current_run().run_id == "two"  # type: ignore[union-attr]


def test_a_run_continues_in_another_process(make: Make, service: Service) -> None:
    client = make()
    run = client.tacho.start_run(session_id="s", agent_name="a")
    with run.span("part") as span:
        handle = run.to_handle()
    assert {"runId": run.run_id, "sessionId": "s", "agentName": "a", "parentSpanId": span.span_id}.items() <= handle.items()
    client.tacho.resume(handle).end("FAILED")
    outcome = sent(client, service)[-1]
    assert (outcome["runId"], outcome["sessionId"], outcome["parentSpanId"]) == (run.run_id, "s", span.span_id)


def test_faulty_ids_never_lose_a_run(make: Make, service: Service) -> None:
    client = make()
    with client.tacho.run(run_id="x" * 256, session_id="s" * 2_000, agent_name="😀" * 1_025) as run:
        run.record("T" * 60, "l" * 300)
    event = sent(client, service)[0]
    assert uuid.UUID(event["runId"]).version == 7
    assert [len(event[name]) for name in ("sessionId", "agentName", "eventType", "label")] == [1_024, 1_024, 50, 255]
    assert {"invalid_run_id", "text_cut"} <= set(client.codes)


def test_the_sample_keeps_outcomes_and_decisions(make: Make, service: Service) -> None:
    client = make(sample_rate=0)
    with client.tacho.run() as run:
        assert run.step("not recorded") is None
        run.record("POLICY_DECISION", "recorded")
    events = sent(client, service)
    assert [event["eventType"] for event in events] == ["POLICY_DECISION", "SESSION_OUTCOME"]
    assert events[1]["payload"] == {"sampleRate": 0, "status": "COMPLETED"}
    assert client.tacho.counters().dropped == {"sampled": 1}


def test_the_same_runs_are_sampled_as_in_other_sdks() -> None:
    from tacho_sdk.recording.sampling import is_sampled

    # Computed by packages/sdk/src/recording/sampling.ts.
    assert [is_sampled(f"run-{n}", 0.5) for n in range(12)] == SAMPLED


SAMPLED = [True, False, False, False, False, False, False, False, False, False, False, True]


def test_annotations_are_added_unless_the_payload_has_them(make: Make, service: Service) -> None:
    client = make()
    run = client.tacho.start_run()
    run.annotate(release="1", tenant="t")
    run.step("x", {"tenant": "own"})
    assert sent(client, service)[0]["payload"] == {"release": "1", "tenant": "own"}


def test_recording_never_raises(make: Make, service: Service) -> None:
    client = make()

    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError("no")

        __repr__ = __str__

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    run = client.tacho.start_run()
    run.step("x", {"value": Hostile(), "key": {Hostile(): 1}})
    run.step(Hostile())  # type: ignore[arg-type]
    run.error(Hostile())
    run.record("X", "x", at=float("nan"))
    run.record("X", "x", [1, 2])  # type: ignore[arg-type]
    run.record("X", "x", "text")  # type: ignore[arg-type]
    run.llm_call(usage=7, cost="free")  # type: ignore[arg-type]
    client.tacho.flush(120)
    assert_balanced(client.tacho)
    assert service.events[0]["payload"] == {"value": "[unreadable]", "key": "[unreadable]"}


def test_without_a_key_nothing_is_recorded_and_one_sentence_says_so() -> None:
    said: list[str] = []
    client = tacho.Tacho(api_key="", base_url="http://x", on_diagnostic=lambda one: said.append(one.message))
    with client.run() as run:
        assert run.step("x") is None
    assert client.counters().dropped == {"disabled": 2}
    assert len(said) == 1 and "api_key" in said[0]


@pytest.mark.parametrize("capture", ["full", "metadata-only"])
def test_each_payload_names_the_release_of_the_agent(make: Make, service: Service, capture: str) -> None:
    client = make(release="1.4.0", capture=capture)
    run = client.tacho.start_run()
    run.step("step")
    run.step("step", {"release": "own"})
    payloads = [event["payload"] for event in sent(client, service)]
    assert payloads == [{"release": "1.4.0"}, {"release": "own"}]


def test_the_release_may_come_from_the_environment(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACHO_RELEASE", "x" * 101)
    assert make().tacho.core.settings.released == {"release": "x" * 100}
    wrong = make(release="y" * 101)
    assert wrong.codes == ["invalid_option"]
    assert make(release="1.5.0").tacho.core.settings.released == {"release": "1.5.0"}
    monkeypatch.delenv("TACHO_RELEASE")
    assert make().tacho.core.settings.released == {}


def test_wrong_options_get_their_defaults(make: Make) -> None:
    client = make(sample_rate=2, flush_timeout="x", capture="all", masking={"email": True}, agent_name="")
    settings = client.tacho.core.settings
    assert client.codes == ["invalid_option"]
    assert (settings.sample_rate, settings.flush_timeout, settings.agent_name) == (1, 5, "agent")
    assert settings.capture == "metadata-only"


def test_the_key_is_in_no_printed_object(make: Make) -> None:
    client = make(api_key="tacho_id_secret").tacho
    seen: set[int] = set()

    def walk(value: object, levels: int) -> None:
        assert "tacho_id_secret" not in repr(value)
        if levels == 0 or id(value) in seen:
            return
        seen.add(id(value))
        for inner in getattr(value, "__dict__", {}).values():
            walk(inner, levels - 1)

    walk(client, 5)


def _refuse(*_: object) -> Any:
    raise RuntimeError("hostile")


_METHODS = ("__getattribute__", "__str__", "__repr__", "__bool__", "__eq__", "__hash__", "__len__", "__iter__", "__format__")
_HOSTILE = dict.fromkeys(_METHODS, _refuse) | {"__class__": property(_refuse)}


@pytest.mark.parametrize("base", [object, str, int, float, dict, list, Exception, SystemExit])
@pytest.mark.parametrize("capture", ["full", "metadata-only"])
def test_no_recording_call_raises_whatever_a_value_does(make: Callable[..., Client], base: type, capture: str) -> None:
    value: Any = type("Hostile", (base,), dict(_HOSTILE))()
    client = make(capture=capture)
    with client.tacho.run(session_id=value, agent_id=value, run_id=value, parent_span_id=value, traceparent=value) as run:
        run.user_input(value, value)
        run.step(value, {"value": value})
        run.llm_call(model=value, latency=value, cost=value, usage=value, messages=value, more=value)
        run.llm_call(usage={"totalTokens": value})
        run.tool_call(value, input=value, error=value, started_at=value, latency=value)
        run.llm_call(started_at=1, latency=value)
        run.error(value)
        run.error(value, value)
        run.record(value, value, value, at=value, event_id=value)
        run.score(value, value, value, event_id=value, author=value, id=value)
        run.score("helpful", 1, value, event_id=value, author=value, id=value)
        client.tacho.score(value, "helpful", 1)
        client.tacho.score("r", value, value, agent_id=value, agent_name=value)
        client.tacho.record(value, value, {"status": [value]})
        with run.span(value, value) as span:
            span.set(value=value)
        run.annotate(value=value)
        run.step("annotated")
        client.tacho.resume(value)
        client.tacho.report_issue(value)
        client.tacho.report_issue(tacho.IssueReport(value, policy_id=value, payload={"toolName": value}))
        run.end(value, value)
    assert_balanced(client.tacho)


@pytest.mark.parametrize("capture", ["full", "metadata-only"])
def test_scores_say_how_good_a_run_is_whatever_is_sampled(make: Make, service: Service, capture: str) -> None:
    client = make(capture=capture, sample_rate=0, agent_name="assistant")
    run = client.tacho.start_run(run_id="r")
    step = run.step("not sampled", {"name": "Ada", "value": 7})
    assert step is None
    run.score("helpful", True, "a secret", event_id="step", author="user-1")
    run.score("accuracy", 0.5)
    assert client.tacho.score("elsewhere", "tone", "kind", id="click-1", agent_name="bot") == "click-1"
    first, second, third = sent(client, service)
    comment = {"comment": "a secret"} if capture == "full" else {}
    assert first["payload"] == {"name": "helpful", "value": True, "targetEventId": "step", "author": "user-1", **comment}
    assert (second["eventType"], second["payload"], second["runId"]) == ("SCORE", {"name": "accuracy", "value": 0.5}, "r")
    assert (third["runId"], third["agentName"], third["payload"]) == ("elsewhere", "bot", {"name": "tone", "value": "kind"})
    assert "n" not in third and third["eventId"] == "click-1"


def test_what_is_no_score_is_left_out(make: Make, service: Service) -> None:
    client = make()
    run = client.tacho.start_run()
    values: list[Any] = [float("nan"), float("inf"), 1e308, 10**400, None, {}, [], ""]
    assert [run.score("x", value) for value in values] == [None] * len(values)
    names: list[Any] = ["", " x", "x ", "a<b", "x" * 65, 7, None]
    assert [run.score(name, 1) for name in names] == [None] * len(names)
    nowhere: Any = None
    assert client.tacho.score(nowhere, "x", 1) is None
    assert run.score("__class__", 1) is not None
    assert [event["payload"] for event in sent(client, service)] == [{"name": "__class__", "value": 1}]
    assert set(client.codes) == {"invalid_score"}


INCOMING = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def test_a_span_records_what_was_set_on_it_and_the_latest_value_counts(make: Make, service: Service) -> None:
    client = make()
    run = client.tacho.start_run()
    with pytest.raises(ValueError), run.span("search", {"hits": 0, "query": "refund"}) as span:
        span.set(hits=1)
        span.set(hits=2)
        raise ValueError("on purpose")
    (step,) = sent(client, service)
    assert step["spanId"] == span.span_id and step["payload"].pop("latency") >= 0
    assert {"hits": 2, "query": "refund", "error": "ValueError: on purpose"}.items() <= step["payload"].items()


def test_a_call_with_the_time_of_its_start_has_the_time_of_its_end_and_its_latency(make: Make, service: Service) -> None:
    client = make()
    run = client.tacho.start_run()
    begun = time.time() - 5
    then = datetime.fromtimestamp(begun, tz=timezone.utc)
    run.llm_call(model="small-1", started_at=begun)
    run.tool_call("find", started_at=then, latency=80, input_hash="h", approval_id="a")
    run.tool_call("faulty", started_at=float("nan"), latency=3)
    run.record("NOTE", "then", at=then)
    model, tool, faulty, note = sent(client, service)
    assert 5_000 <= model["payload"]["latency"] < 60_000
    assert model["timestamp"] == pytest.approx(begun * 1_000 + model["payload"]["latency"], abs=2)
    assert tool["payload"] == {"toolName": "find", "latency": 80, "inputHash": "h", "approvalId": "a"}
    assert (tool["timestamp"], note["timestamp"]) == (round(begun * 1_000 + 80), round(begun * 1_000))
    assert faulty["payload"] == {"toolName": "faulty", "latency": 3} and faulty["timestamp"] > begun * 1_000 + 4_000


def test_a_run_that_serves_a_request_continues_its_trace(make: Make, service: Service) -> None:
    client = make()
    with client.tacho.run(traceparent=INCOMING) as run:
        own = run.traceparent
        with run.span("ask") as span:
            assert run.traceparent == f"00-{INCOMING[3:35]}-{span.span_id}-00"
        assert run.to_handle()["traceparent"] == INCOMING
    ask, outcome = sent(client, service)
    for event in (ask, outcome):
        assert (event["payload"]["traceId"], event["payload"]["traceSpanId"]) == (INCOMING[3:35], INCOMING[36:52])
    assert own == f"00-{INCOMING[3:35]}-{outcome['spanId']}-00"


def test_a_run_without_a_trace_begins_one_when_its_traceparent_is_read(make: Make, service: Service) -> None:
    client = make()
    faulty: list[Any] = ["", "00-x", f"01{INCOMING[2:]}", 7, {}]
    for given in faulty:
        client.tacho.start_run(traceparent=given).step("faulty")
    run = client.tacho.start_run()
    run.step("before")
    given = run.traceparent
    run.step("after")
    assert run.traceparent == given
    *events, after = sent(client, service)
    assert all("traceId" not in event["payload"] for event in events)
    version, trace_id, span_id, flags = given.split("-")
    assert (version, len(trace_id), span_id, flags) == ("00", 32, after["spanId"], "01")
    assert (after["payload"]["traceId"], after["payload"]["traceSpanId"]) == (trace_id, span_id)


def test_what_is_missing_or_unknown_in_an_event_is_a_diagnostic(make: Any, service: Service) -> None:
    client, wrong = make(), [{"eventType": "LLM_CALL"}, None, ""]
    with client.tacho.run() as run:
        run.record("X", "x", {"a": 1})
        assert client.codes == []
        for given in wrong:
            run.record(given, "x")
        run.record("X", None)
        run.record("X", "x", ["a"])
        run.end("DONE")
    client.tacho.flush(120)
    assert set(client.codes) == {"invalid_call"}
    assert len(service.events) == 7


def test_an_error_without_a_message_has_the_name_of_its_class(make: Any, service: Service) -> None:
    client = make().tacho
    with client.run() as run:
        run.error(TimeoutError())
    client.flush(120)
    assert [event["payload"].get("message") for event in service.events if event["eventType"] == "ERROR"] == ["TimeoutError"]


@pytest.mark.parametrize("capture", ["full", "metadata-only"])
def test_a_run_has_tags_metadata_and_an_end_user(make: Make, service: Service, capture: Any) -> None:
    client = make(capture=capture)
    run = client.tacho.start_run()
    run.tag("beta", "eu")
    run.metadata(task="refund", tries=2)
    run.user("customer-7")
    found = [(one["eventType"], one["payload"]) for one in sent(client, service)]
    assert found == [
        ("RUN_TAGS", {"runTags": ["beta", "eu"]}),
        ("RUN_TAGS", {"runMetadata": {"task": "refund", "tries": 2}}),
        ("RUN_TAGS", {"userId": "customer-7"}),
    ]
