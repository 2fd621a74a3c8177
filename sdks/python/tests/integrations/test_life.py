"""The life of a call in each framework: the last rows of docs/integrations/guarded.md."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import Client, Service

from .answers import Answer, AnswerServer
from .conftest import Leaving
from .life import HAND_OFFS, PLAYS, Play, installed

Make = Callable[..., Client]
CUT = '{"order": 7, "amount": 5'
each = pytest.mark.parametrize("name", installed())
streamed_too = pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED", "OPENAI_AGENTS_DISABLE_TRACING"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    servers: list[AnswerServer] = []

    def start(*answers: Answer) -> str:
        servers.append(AnswerServer(*answers))
        return servers[-1].url

    yield start
    for server in servers:
        server.close()


class Shop:
    def __init__(self) -> None:
        self.ran: list[tuple[int, int]] = []

    def tools(self) -> list[Any]:
        def refund(order: int, amount: int) -> str:
            """Refunds an order."""
            self.ran.append((order, amount))
            return "refunded"

        return [refund]


def run(client: Client, play: Play, url: str, shop: Shop, is_stream: bool = False) -> None:
    async def main() -> None:
        async with client.tacho.run():
            await play(client.tacho, url, shop.tools(), is_stream)

    asyncio.run(main())
    client.tacho.flush(120)


def calls_of(service: Service) -> list[tuple[Any, ...]]:
    payloads = [event["payload"] for event in service.events if event["eventType"] == "TOOL_CALL"]
    return sorted((one.get("toolCallId"), one["outcome"], one.get("reasonCode")) for one in payloads)


@each
@streamed_too
@pytest.mark.parametrize("text", [CUT, CUT + "}"], ids=["open", "closed"])
def test_a_cut_call_does_not_run(make: Make, service: Service, answering: Any, name: str, is_stream: bool, text: str) -> None:
    client, shop = make(), Shop()
    run(client, PLAYS[name], answering(Answer((("c1", "refund", text),), is_cut=True)), shop, is_stream)
    assert shop.ran == []
    assert calls_of(service) == [("c1", "never_ran", "cut")]
    (asked,) = [event["payload"]["toolCalls"] for event in service.events if event["payload"].get("toolCalls")]
    assert asked[0]["problem"] == "cut"
    # In whole answers of Anthropic, arguments are not a text.
    if text == CUT and (is_stream or name != "anthropic"):
        assert asked[0]["arguments"] == CUT


@each
@streamed_too
def test_calls_that_never_reach_their_tool_are_recorded(
    make: Make, service: Service, answering: Any, name: str, is_stream: bool
) -> None:
    client, shop = make(), Shop()
    unknown = Answer((("c2", "no_such_tool", '{"order": 7}'),))
    # In whole answers of Anthropic, arguments are not a text, so they cannot be unreadable.
    broken = () if name == "anthropic" else (("c1", "refund", '{"order": 7, "amount": '),)
    others = Answer(
        (*broken, ("c3", "refund", '{"order": "seven", "amount": 5}'), ("c4", "refund", '{"order": 8, "amount": 6}'))
    )
    run(client, PLAYS[name], answering(others, unknown), shop, is_stream)
    assert shop.ran == [(8, 6)]
    assert calls_of(service) == [
        *([("c1", "never_ran", "unreadable")] if broken else []),
        ("c2", "never_ran", "unknown_tool"),
        ("c3", "never_ran", "unfit"),
        ("c4", "returned", None),
    ]
    assert len([one for one in service.of("/issue-records") if one["recordKind"] == "DETECTION"]) == 2 + len(broken)


@streamed_too
@pytest.mark.parametrize(
    ("others", "codes"), [((("c2", "no_such_tool", "{}"),), ["unknown_tool"]), ((("c1", "refund", "{}"),), [None])]
)
def test_calls_that_an_ending_run_leaves_behind_never_ran(
    make: Make, service: Service, answering: Any, others: Any, codes: list[str | None], is_stream: bool
) -> None:
    pytest.importorskip("agents")
    client, shop = make(), Shop()
    answer = Answer((("c1", "refund", '{"order": 7, "amount": 5}'), *others))
    run(client, PLAYS["openai_agents"], answering(answer), shop, is_stream)
    events = [(event["eventType"], event["payload"]) for event in service.events]
    (asked,) = [one["toolCalls"] for kind, one in events if kind == "LLM_CALL"]
    calls = [(one["toolCallId"], one["outcome"], one.get("reasonCode")) for kind, one in events if kind == "TOOL_CALL"]
    assert shop.ran == [] and len(asked) == 2
    known = [(call_id, "never_ran", code) for (call_id, _, _), code in zip(others, codes, strict=True)]
    assert calls == [*known, ("c1", "never_ran", None)]
    assert events[-1][0] == "SESSION_OUTCOME"


@each
def test_nothing_runs_for_a_caller_that_gave_up(make: Make, service: Service, answering: Any, name: str) -> None:
    leaving, client, shop = Leaving(service), make(), Shop()
    url = answering(Answer((("c1", "refund", '{"order": 7, "amount": 5}'),)))

    async def main() -> None:
        async with client.tacho.run():
            running = asyncio.ensure_future(PLAYS[name](client.tacho, url, shop.tools(), False))
            await asyncio.to_thread(leaving.until_held, 1)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(running, 0.1)

    asyncio.run(main())
    leaving.check(client.tacho, [order for order, _ in shop.ran], {"cancelled", "run_ended"}, {"c1"})


@each
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_next_call_after_a_fork_is_judged_by_what_is_deployed_now(
    make: Make, service: Service, answering: Any, name: str
) -> None:
    """The parent has called the tool, and does not refresh its policies for an hour."""
    client, shop = make(refresh_interval=3_600), Shop()
    call = Answer((("c1", "refund", '{"order": 7, "amount": 5}'),))
    run(client, PLAYS[name], answering(call), shop)
    assert shop.ran == [(7, 5)]
    service.deploy('tool.name == "refund"', "BLOCK")
    service.revision = "r2"
    url = answering(call)
    pid = os.fork()
    if pid == 0:
        try:
            run(client, PLAYS[name], url, shop)
            os._exit(len(shop.ran))
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    decided = [event["payload"]["action"] for event in service.events if event["eventType"] == "POLICY_DECISION"]
    assert decided == ["BLOCK"]


WAYS = [(play, call) for name in installed() for play, call in HAND_OFFS.get(name, ())]


@streamed_too
@pytest.mark.parametrize(("play", "call"), WAYS, ids=[play.__name__ for play, _ in WAYS])
def test_a_hand_off_is_an_event_and_what_follows_names_the_agent(
    make: Make, service: Service, answering: Any, play: Play, call: tuple[str, str] | None, is_stream: bool
) -> None:
    client, shop = make(), Shop()
    service.deploy("tool.name == 'refund'", "WARN")
    giving = Answer((("c1", *call),)) if call else Answer()
    taking = Answer((("c2", "refund", '{"order": 7, "amount": 5}'),))
    run(client, play, answering(giving, taking), shop, is_stream)
    assert shop.ran == [(7, 5)]
    payloads = [(event["eventType"], event["payload"]) for event in service.events]
    (over,) = [payload for kind, payload in payloads if kind == "HANDOFF"]
    assert {name: over.get(name) for name in ("from", "to", "toolCallId")} == {
        "from": "first",
        "to": "billing",
        "toolCallId": "c1" if call else None,
    }
    models = [payload.get("agent") for kind, payload in payloads if kind == "LLM_CALL"]
    assert models[:3] == [None, "billing", "billing"] and set(models[3:]) <= {None}
    acts = [(kind, one.get("agent")) for kind, one in payloads if one.get("toolName") == "refund"]
    assert acts == [(kind, "billing") for kind in ("POLICY_DECISION", "TOOL_START", "TOOL_CALL")]
