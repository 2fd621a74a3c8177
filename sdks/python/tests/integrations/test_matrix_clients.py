"""The clients of OpenAI and Anthropic: the promise of the guard for each way of defining a tool (matrix.py)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import Client, Service

from .life import rows_of
from .matrix import WAYS, Spy, Way, check, check_results

pytest.importorskip("openai")
pytest.importorskip("anthropic")

from openai.types.chat import ChatCompletionMessage

from tacho_sdk.integrations import anthropic, openai

# These clients do not validate arguments, so a function gets exactly what the model wrote.
PLAIN = [
    way for way in WAYS if way.name in ("typed arguments", "async function", "default", "keyword-only", "changed argument")
]


def _any(spy: Spy, name: str) -> Any:
    def act(**given: Any) -> str:
        return spy.take(name, **given)

    return act


def _tool(spy: Spy, name: str) -> Any:
    class Shop:
        def act(self, amount: int) -> str:
            return spy.take(name, amount=amount)

    return Shop().act


OWN = [
    Way("raw JSON schema", "raw JSON schema", _any, {"amount": 500, "x": [1]}, {"amount": 500, "x": [1]}),
    Way("method", "method", _tool, {"amount": 500}, {"amount": 500}),
]


def _chat(calls: dict[str, str]) -> Any:
    asked = [{"id": name, "type": "function", "function": {"name": name, "arguments": text}} for name, text in calls.items()]
    return ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": asked})


def run_openai(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    message = _chat({name: json.dumps(given) for name, given in calls.items()})
    answers = asyncio.run(openai.acall_tools(message, tools, client.tacho))
    return {answer["tool_call_id"]: answer["content"] for answer in answers}


def run_anthropic(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    message = {"content": [{"type": "tool_use", "id": name, "name": name, "input": given} for name, given in calls.items()]}
    answers = asyncio.run(anthropic.acall_tools(message, tools, client.tacho))
    return {answer["tool_use_id"]: answer["content"] for answer in answers}


def run_sync(client: Client, tools: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, str]:
    message = _chat({name: json.dumps(given) for name, given in calls.items()})
    answers = openai.call_tools(message, tools, client.tacho)
    return {answer["tool_call_id"]: answer["content"] for answer in answers}


@pytest.mark.parametrize("run", [run_openai, run_anthropic], ids=["openai", "anthropic"])
@pytest.mark.parametrize("way", [*PLAIN, *OWN], ids=lambda way: way.name)
def test_a_tool(way: Way, run: Any, service: Service, make: Callable[..., Client]) -> None:
    check(service, make, way, run, lambda function, _: function)


@pytest.mark.parametrize("run", [run_openai, run_anthropic, run_sync], ids=lambda run: run.__name__)
def test_a_retry(run: Any, service: Service, make: Callable[..., Client]) -> None:
    def run_twice(*given: Any) -> dict[str, str]:
        run(*given)
        return dict(run(*given))

    check(service, make, WAYS[0], run_twice, lambda function, _: function, RuntimeError("busy"))


def test_without_asyncio(service: Service, make: Callable[..., Client]) -> None:
    check(service, make, WAYS[0], run_sync, lambda function, _: function)


@pytest.mark.parametrize("text", ['{"amount": 1, "amount": 500}', '{"amount": NaN}', "[1]", "not json"])
def test_arguments_with_more_than_one_meaning_do_not_run(text: str, make: Callable[..., Client]) -> None:
    client, spy = make(), Spy()
    answers = openai.call_tools(_chat({"act": text}), {"act": _any(spy, "act")}, client.tacho)
    assert answers[0]["content"] == "TypeError: The arguments are not a JSON object."
    assert spy.got == []


def test_a_large_number_does_not_run_if_a_policy_reads_it(service: Service, make: Callable[..., Client]) -> None:
    service.deploy("tool.input.amount > 1e300", "BLOCK", "LOW")
    client, spy = make(), Spy()
    answers = openai.call_tools(_chat({"act": '{"amount": 9007199254740993}'}), {"act": _any(spy, "act")}, client.tacho)
    assert "was not run" in answers[0]["content"]
    assert spy.got == []


def test_a_generator_does_not_run(make: Callable[..., Client]) -> None:
    ran: list[int] = []

    def streams(order: int) -> Iterator[str]:
        ran.append(order)
        yield "piece"

    answers = openai.call_tools(_chat({"streams": '{"order": 1}'}), [streams], make().tacho)
    assert "generator" in answers[0]["content"] and ran == []


def test_the_page_says_so() -> None:
    others = {
        "duplicate keys": "guarded",
        "large number": "guarded",
        "generator": "refused",
        "streaming": "guarded",
        "retry": "guarded",
    }
    outside = [
        "Tools that your own loop runs: decorate each with `@tacho.guard`, or run them with `call_tools`.",
        "Hosted tools: the provider runs them.",
    ]
    ways = [*PLAIN, *OWN]
    check_results("python-openai", "OpenAI `call_tools`", ["openai"], ways, others | rows_of("openai"), outside)
    others.pop("duplicate keys")
    others |= rows_of("anthropic")
    check_results("python-anthropic", "Anthropic `call_tools`", ["anthropic"], ways, others, outside)
