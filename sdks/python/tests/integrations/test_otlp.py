"""OpenTelemetry instrumentations, set up as users do, against a real service, without this SDK."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from .model_server import CALLS, FINAL, ModelServer

sdk = pytest.importorskip("opentelemetry.sdk.trace")
URL = os.environ.get("TACHO_TEST_URL", "")
KEY = os.environ.get("TACHO_TEST_KEY", "")
pytestmark = pytest.mark.skipif(not URL, reason="needs a service: run `npm test -- python`")


def refund(order: int, amount: int) -> str:
    """Refunds an order."""
    return f"refunded {amount} for {order}"


def _read(run_id: str) -> Any:
    request = urllib.request.Request(f"{URL}/openapi/v1/runs/{run_id}", headers={"x-api-key": KEY})
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.load(reply)


def _run_of(act: Callable[[Any], None]) -> Any:
    """The run of the spans that `act` creates. The spans are sent twice."""
    otlp = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    resources = pytest.importorskip("opentelemetry.sdk.resources")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    made = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider(resource=resources.Resource.create({"service.name": "shop"}))
    provider.add_span_processor(export.SimpleSpanProcessor(made))
    act(provider)
    spans = made.get_finished_spans()
    exporter = otlp.OTLPSpanExporter(endpoint=f"{URL}/openapi/v1/otlp/v1/traces", headers={"x-api-key": KEY})
    run_id = format(spans[0].get_span_context().trace_id, "032x")
    assert exporter.export(spans) is export.SpanExportResult.SUCCESS
    first = _read(run_id)
    assert exporter.export(spans) is export.SpanExportResult.SUCCESS
    second = _read(run_id)
    assert (second["usage"], len(second["events"])) == (first["usage"], len(first["events"]))
    provider.shutdown()
    return second


def _check(run: Any) -> None:
    """Asserts the run, which is the same for both instrumentations."""
    assert (run["status"], run["agent"]["name"]) == ("COMPLETED", "Refunds")
    assert (run["usage"]["promptTokens"], run["usage"]["completionTokens"]) == (20, 10)
    payloads: dict[str, list[Any]] = {}
    for event in run["events"]:
        payloads.setdefault(event["eventType"], []).append(event["payload"])
    first, last = payloads["LLM_CALL"]
    assert {"role": "user", "content": "Refund all"} in first["messages"]
    named = [(call["id"], call["name"], call["arguments"]) for call in first["output"]["toolCalls"]]
    assert named == [(id_, "refund", given) for id_, given in CALLS]
    assert [one["toolCallId"] for one in last["messages"] if one["role"] == "tool"] == [id_ for id_, _ in CALLS]
    assert last["output"]["content"] == FINAL
    tools = sorted(payloads["TOOL_CALL"], key=lambda call: int(call["input"]["order"]))
    assert [(call["toolName"], call["input"], call["output"]) for call in tools] == [
        ("refund", given, refund(**given)) for _, given in CALLS
    ]


def test_pydantic_ai(model: ModelServer) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    instrumented = pytest.importorskip("pydantic_ai.models.instrumented")

    def act(provider: Any) -> None:
        named = models.OpenAIChatModel("m", provider=providers.OpenAIProvider(base_url=f"{model.url}/v1", api_key="key"))
        agent = pydantic_ai.Agent(named, name="Refunds", tools=[refund])
        agent.instrument = instrumented.InstrumentationSettings(tracer_provider=provider)
        agent.run_sync("Refund all")

    _check(_run_of(act))


def test_openai_agents(model: ModelServer) -> None:
    agents = pytest.importorskip("agents")
    openai = pytest.importorskip("openai")
    inference = pytest.importorskip("openinference.instrumentation.openai_agents")

    def act(provider: Any) -> None:
        instrumentor = inference.OpenAIAgentsInstrumentor()
        instrumentor.instrument(tracer_provider=provider)
        # Another test of this process may have disabled it.
        agents.set_tracing_disabled(False)
        client = openai.AsyncOpenAI(base_url=f"{model.url}/v1", api_key="key")
        named = agents.OpenAIResponsesModel(model="m", openai_client=client)
        agent = agents.Agent(name="Refunds", model=named, tools=[agents.function_tool(refund)])
        agents.Runner.run_sync(agent, "Refund all")
        instrumentor.uninstrument()

    _check(_run_of(act))
