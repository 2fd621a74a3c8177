"""With the real OpenTelemetry SDK: events and handles name its spans, and the SDK's own requests create none."""

from __future__ import annotations

from typing import Any

import pytest

import tacho_sdk as tacho
from conftest import Service

sdk = pytest.importorskip("opentelemetry.sdk.trace")


@pytest.fixture
def spans() -> Any:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test"), exporter


def made(service: Service) -> tacho.Tacho:
    return tacho.Tacho(api_key="k", base_url=service.url, capture="metadata-only", on_diagnostic=lambda _: None)


def recorded(client: tacho.Tacho, service: Service, count: int) -> list[Any]:
    client.flush(120)
    service.until(lambda: len(service.events) >= count)
    return [event["payload"].get("traceSpanId") for event in service.events]


def test_events_name_the_trace_and_the_span_in_which_they_were_recorded(service: Service, spans: Any) -> None:
    tracer, exporter = spans
    client = made(service)
    run = client.start_run()
    run.step("outside")
    with tracer.start_as_current_span("request") as span:
        run.step("inside")
        client.configuration.refresh()
    found = span.get_span_context()
    assert recorded(client, service, 2) == [None, f"{found.span_id:016x}"]
    assert service.events[1]["payload"]["traceId"] == f"{found.trace_id:032x}"
    # The SDK's own requests make no spans.
    assert [one.name for one in exporter.get_finished_spans()] == ["request"]
    client.shutdown()


def test_a_handle_carries_the_trace_to_the_next_process_whose_own_trace_comes_first(service: Service, spans: Any) -> None:
    tracer, _ = spans
    client = made(service)
    with tracer.start_as_current_span("request") as span:
        handle = client.start_run().to_handle()
    found = span.get_span_context()
    assert handle["traceparent"] == f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"
    run = client.resume(handle)
    run.step("in the worker")
    with tracer.start_as_current_span("worker") as own:
        run.step("in its trace")
    assert recorded(client, service, 2) == [f"{found.span_id:016x}", f"{own.get_span_context().span_id:016x}"]
    assert "traceparent" not in client.resume({**handle, "traceparent": "00-x"}).to_handle()
    client.shutdown()
