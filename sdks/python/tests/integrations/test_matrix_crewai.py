"""CrewAI: the promise of the guard for each way of defining a tool (matrix.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import Client, Service

from .life import rows_of
from .matrix import WAYS, Spy, Way, check, check_results

pytest.importorskip("crewai")

import crewai
from crewai.tools import BaseTool, tool

import tacho_sdk as tacho
from tacho_sdk.integrations.crewai import guard_tools
from tacho_sdk.integrations.unguarded import CannotGuardError

# CrewAI passes nested models to a tool as plain dicts, without the fields that the models' own serializers omit.
LEFT_OUT = "model that hides a field when written"


def _class(spy: Spy, name: str) -> Any:
    class Own(BaseTool):  # type: ignore[misc, unused-ignore]
        def _run(self, order: int, amount: int = 500) -> str:
            return spy.take(name, order=order, amount=amount)

    return Own(name=name, description="Does it.")


def _async_class(spy: Spy, name: str) -> Any:
    class Own(BaseTool):  # type: ignore[misc, unused-ignore]
        def _run(self, order: int, amount: int) -> str:
            return spy.take(name, order=order, amount=amount)

        async def _arun(self, order: int, amount: int) -> str:
            return self._run(order, amount)

    return Own(name=name, description="Does it.")


OWN = [
    Way("class", "method", _class, {"order": "1"}, {"order": 1, "amount": 500}),
    Way("async class", "method", _async_class, {"order": "1", "amount": 500}, {"order": 1, "amount": 500}),
]
ALL = [way for way in [*WAYS, *OWN] if way.name != LEFT_OUT]


def wrap(function: Any, name: str) -> Any:
    return function if isinstance(function, BaseTool) else tool(name)(function)


def run_of(is_native: bool, turns: int = 1) -> Any:
    """Runs tools whose calls the model sends as tool calls, or writes into its text."""

    def run(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
        answers: dict[str, str] = {}

        class Scripted(crewai.BaseLLM):  # type: ignore[misc, unused-ignore]
            def call(self, messages: Any, *args: Any, **named: Any) -> Any:
                if is_native:
                    said = [message for message in messages if message["role"] == "tool"]
                    if len(said) < turns * len(calls):
                        return [_call(name, given) for name, given in calls.items()]
                    answers.update((message["tool_call_id"], message["content"]) for message in said)
                    return "done"
                self.asked = getattr(self, "asked", [])
                if self.asked:
                    answers[self.asked[-1]] = str([message["content"] for message in messages])
                left = [name for name in calls if name not in self.asked]
                if not left:
                    return "Thought: I know\nFinal Answer: done"
                self.asked.append(left[0])
                return f"Thought: I act\nAction: {left[0]}\nAction Input: {json.dumps(calls[left[0]])}"

            def supports_function_calling(self) -> bool:
                return is_native

        guarded = guard_tools(list(tools.values()), client.tacho)
        agent = crewai.Agent(role="R", goal="G", backstory="B", llm=Scripted(model="scripted"), tools=guarded, verbose=False)
        task = crewai.Task(description="Go", expected_output="A word", agent=agent)
        crewai.Crew(agents=[agent], tasks=[task], verbose=False).kickoff()
        return answers

    return run


def _call(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}


@pytest.mark.parametrize("is_native", [True, False], ids=["native", "text"])
@pytest.mark.parametrize("way", ALL, ids=lambda way: way.name)
def test_a_tool(way: Way, is_native: bool, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, way, run_of(is_native), wrap)


def test_what_a_model_hides_does_not_reach_a_tool() -> None:
    (way,) = [way for way in WAYS if way.name == LEFT_OUT]
    with pytest.raises(KeyError, match="amount"):
        wrap(way.make(Spy(), "act"), "act").run(**way.given)


def test_a_retry(service: Service, make: Callable[..., Client]) -> None:
    check(service, make, WAYS[0], run_of(is_native=True, turns=2), wrap, RuntimeError("busy"))


def test_a_renamed_tool(service: Service, make: Callable[..., Client]) -> None:
    service.deploy('tool.name == "renamed"', "BLOCK")
    spy = Spy()
    for way in (WAYS[0], OWN[0]):
        (guarded,) = guard_tools([wrap(way.make(spy, "other"), "other")], make().tacho)
        guarded.name = "Renamed"
        assert "A policy forbids this call" in str(guarded.run(order=1, amount=500))
    assert spy.got == []


def test_a_tool_is_guarded_when_a_checkpoint_restores_it(
    service: Service, make: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint stores the class of a tool and its fields."""
    service.deploy('tool.name == "pay" && tool.input.amount > 100.0', "BLOCK")
    client, paid = make(), []

    class Pay(BaseTool):  # type: ignore[misc, unused-ignore]
        def _run(self, amount: int) -> str:
            paid.append(amount)
            return "paid"

    plain = Pay(name="pay", description="Pays.")
    monkeypatch.setattr(tacho, "client", lambda: client.tacho)
    task = crewai.Task(description="Go", expected_output="A word", tools=guard_tools([plain], client.tacho))
    restored = crewai.Task.model_validate(task.model_dump(mode="json"), context={"from_checkpoint": True})
    (pay,) = restored.tools
    assert "A policy forbids this call" in str(pay.run(amount=500))
    assert pay.run(amount=5) == "paid"
    assert paid == [5]
    # Another tool of the same class stays unguarded.
    unguarded = crewai.Task(description="Go", expected_output="A word", tools=[plain])
    (same,) = crewai.Task.model_validate(unguarded.model_dump(mode="json"), context={"from_checkpoint": True}).tools
    assert type(same) is Pay


def test_what_cannot_be_guarded_is_refused_or_recorded(service: Service, make: Callable[..., Client]) -> None:
    client = make()

    @tool  # type: ignore[untyped-decorator, unused-ignore]
    def streams(order: int) -> Iterator[str]:
        """Streams."""
        yield "piece"

    class Ran(BaseTool):  # type: ignore[misc, unused-ignore]
        def run(self, *args: Any, **named: Any) -> str:
            return "ran"

        def _run(self) -> str:
            return ""

    given: list[Any] = [streams, Ran(name="ran", description=""), {"type": "web_search"}]
    for one in given:
        with pytest.raises(CannotGuardError, match="cannot be guarded"):
            guard_tools([one], client.tacho)
    assert guard_tools(given, client.tacho, unguarded="allow") == given


def test_the_page_says_so() -> None:
    others = {
        "generator": "refused",
        "streaming": "guarded",
        "retry": "guarded",
        "resumed": "guarded",
        "renamed": "guarded",
        "unknown shape": "refused",
        **rows_of("crewai"),
    }
    outside = [
        "Tools that CrewAI adds by itself: delegation, memory, files, code execution, and `mcps` of an agent.",
        "Agents of another framework that a crew runs (adapters).",
    ]
    check_results("python-crewai", "CrewAI", ["crewai"], ALL, others, outside)
