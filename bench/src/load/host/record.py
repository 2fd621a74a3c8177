"""Records model calls with one of the recorders, in a process of its own: the same as record.ts."""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK = "bench-model-7"
PROMPT_TOKENS, COMPLETION_TOKENS = 1_204, 310

Record = Callable[[str, str], object]


def with_tacho(url: str) -> tuple[Record, Callable[[], object]]:
    import tacho_sdk as tacho

    client = tacho.Tacho(api_key="bench", base_url=url, client_id="bench")
    run = client.start_run(agent_id="bench", agent_name="Bench", session_id="session")

    def record(given: str, output: str) -> None:
        usage = {"promptTokens": PROMPT_TOKENS, "completionTokens": COMPLETION_TOKENS}
        run.llm_call(model=MARK, latency=340, usage=usage, messages=given, output=output)

    return record, lambda: client.flush(60)


def with_opentelemetry(url: str) -> tuple[Record, Callable[[], object]]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import SpanKind

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{url}/v1/traces")))
    tracer = provider.get_tracer("bench")

    def record(given: str, output: str) -> None:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": MARK,
            "gen_ai.usage.input_tokens": PROMPT_TOKENS,
            "gen_ai.usage.output_tokens": COMPLETION_TOKENS,
            "gen_ai.input.messages": given,
            "gen_ai.output.messages": output,
        }
        tracer.start_span("chat", kind=SpanKind.CLIENT, attributes=attributes).end()

    return record, lambda: provider.force_flush(60_000)


def with_langfuse(url: str) -> tuple[Record, Callable[[], object]]:
    from langfuse import Langfuse

    client = Langfuse(public_key="bench", secret_key="bench", base_url=url)

    def record(given: str, output: str) -> None:
        usage = {"input": PROMPT_TOKENS, "output": COMPLETION_TOKENS}
        client.start_observation(
            name="chat", as_type="generation", model=MARK, input=given, output=output, usage_details=usage
        ).end()

    return record, client.flush


def with_nothing(_url: str) -> tuple[Record, Callable[[], object]]:
    return lambda given, output: None, lambda: None


RECORDERS = {"nothing": with_nothing, "tacho": with_tacho, "opentelemetry": with_opentelemetry, "langfuse": with_langfuse}


SCHEDULE = Path("/proc/thread-self/schedstat")


def waited_seconds() -> float:
    """How long this thread could have run, while other programs did."""
    return int(SCHEDULE.read_text().split()[1]) / 1e9 if SCHEDULE.exists() else 0.0


class Load:
    def __init__(self, by: str, url: str) -> None:
        self.record, self.flush = RECORDERS[by](url)
        self.recorded = 0

    def measure(self, texts: list[str], burst: int, seconds: float) -> dict[str, float]:
        total, calls, pause = 0.0, [], 0.0
        begun, before = time.process_time(), self.recorded
        for _ in self._bursts(seconds * 0.4):
            for _ in range(burst):
                self._one(texts)
                time.sleep(0)  # Another thread may run, as in a host that waits for its model.
            self.flush()
        total = (time.process_time() - begun) / (self.recorded - before)
        for _ in self._bursts(seconds * 0.3):
            for _ in range(burst):
                from_ = time.perf_counter()
                self._one(texts)
                calls.append(time.perf_counter() - from_)
                time.sleep(0)
            self.flush()
        for _ in self._bursts(seconds * 0.3):
            pause = max(pause, self._longest_pause(texts, burst))
        return {"totalUs": total * 1e6, "callUs": statistics.median(calls) * 1e6, "pauseMs": pause * 1e3}

    def _one(self, texts: list[str]) -> None:
        n = self.recorded
        self.record(texts[n % len(texts)], texts[(n * 7 + 3) % len(texts)])
        self.recorded += 1

    def _bursts(self, seconds: float) -> Any:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            yield

    def _turn(self) -> float:
        from_, waited = time.perf_counter(), waited_seconds()
        time.sleep(0)
        return time.perf_counter() - from_ - (waited_seconds() - waited)

    def _longest_pause(self, texts: list[str], burst: int) -> float:
        """How long the host's own thread waits for others, while it records and delivers."""
        longest = 0.0
        for _ in range(burst):
            self._one(texts)
            longest = max(longest, self._turn())
        flushing = threading.Thread(target=self.flush)
        flushing.start()
        while flushing.is_alive():
            longest = max(longest, self._turn())
        flushing.join()
        return longest


load: Load | None = None
for line in sys.stdin:
    given = json.loads(line)
    texts = [json.loads(text) for text in Path(given["texts"]).read_text(encoding="utf-8").splitlines()]
    load = load or Load(given["by"], given["url"])
    load.recorded = 0
    cost = load.measure(texts, given["burst"], given["seconds"])
    load.flush()
    with urllib.request.urlopen(f"{given['url']}/counted") as reply:
        counted = int(reply.read())
    if given["by"] != "nothing" and counted != load.recorded:
        raise SystemExit(f"{given['by']}: {load.recorded} model calls were recorded, {counted} arrived")
    print(json.dumps(cost), flush=True)
