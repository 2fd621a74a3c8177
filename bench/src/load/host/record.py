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

# Before the texts, so that none comes twice.
NUMBER_CHARS = 12

Input = str | list[dict[str, str]] | dict[str, int]
Record = Callable[[Input, str], object]


def with_tacho(url: str) -> tuple[Record, Callable[[], object]]:
    import tacho_sdk as tacho

    client = tacho.Tacho(api_key="bench", base_url=url, client_id="bench")
    run = client.start_run(agent_id="bench", agent_name="Bench", session_id="session")

    def record(given: Input, output: str) -> None:
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

    def record(given: Input, output: str) -> None:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": MARK,
            "gen_ai.usage.input_tokens": PROMPT_TOKENS,
            "gen_ai.usage.output_tokens": COMPLETION_TOKENS,
            # Its conventions for a backend that takes no nested attributes.
            "gen_ai.input.messages": given if isinstance(given, str) else json.dumps(given),
            "gen_ai.output.messages": output,
        }
        tracer.start_span("chat", kind=SpanKind.CLIENT, attributes=attributes).end()

    return record, lambda: provider.force_flush(60_000)


def with_langfuse(url: str) -> tuple[Record, Callable[[], object]]:
    from langfuse import Langfuse

    client = Langfuse(public_key="bench", secret_key="bench", base_url=url)

    def record(given: Input, output: str) -> None:
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
    def __init__(self, by: str, url: str, texts: list[str], messages: int, keys: int) -> None:
        self._texts, self._messages = texts, messages
        self._fields = {f"field {index}": index for index in range(keys)}
        self._window: list[dict[str, str]] = []
        self._made = self._at = 0
        first = self._calls(1)
        self.record, self.flush = RECORDERS[by](url)
        # At once: a run whose first event comes late records one more.
        self.record(*first[0])
        self.recorded = 1

    def measure(self, burst: int, seconds: float) -> dict[str, float]:
        total, calls, pause, before = 0.0, [], 0.0, self.recorded
        for batch in self._bursts(burst, seconds * 0.4):
            begun = time.process_time()
            for call in batch:
                self.record(*call)
                time.sleep(0)  # Another thread may run, as in a host that waits for its model.
            self.flush()
            total += time.process_time() - begun
        total /= self.recorded - before
        for batch in self._bursts(burst, seconds * 0.3):
            for call in batch:
                from_ = time.perf_counter()
                self.record(*call)
                calls.append(time.perf_counter() - from_)
                time.sleep(0)
            self.flush()
        for batch in self._bursts(burst, seconds * 0.3):
            pause = max(pause, self._longest_pause(batch))
        return {"totalUs": total * 1e6, "callUs": statistics.median(calls) * 1e6, "pauseMs": pause * 1e3}

    def _calls(self, count: int) -> list[tuple[Input, str]]:
        return [self._next() for _ in range(count)]

    def _next(self) -> tuple[Input, str]:
        if self._fields:
            return self._fields, self._text()
        if self._messages == 0:
            return self._text(), self._text(7)
        while len(self._window) < self._messages:
            self._window.append({"role": "user", "content": self._text()})
        call = list(self._window), self._text()
        self._window = [
            *self._window[2:],
            {"role": "assistant", "content": call[1]},
            {"role": "user", "content": self._text()},
        ]
        return call

    def _text(self, step: int = 1) -> str:
        self._made += 1
        self._at += step
        text = self._texts[self._at % len(self._texts)]
        return f"{self._made:{NUMBER_CHARS - 2}}{text[NUMBER_CHARS - 2 :]}"

    def _bursts(self, burst: int, seconds: float) -> Any:
        """The texts of a burst are made before it is measured."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            yield self._calls(burst)
            self.recorded += burst

    def _turn(self) -> float:
        from_, waited = time.perf_counter(), waited_seconds()
        time.sleep(0)
        return time.perf_counter() - from_ - (waited_seconds() - waited)

    def _longest_pause(self, batch: list[tuple[Input, str]]) -> float:
        """How long the host's own thread waits for others, while it records and delivers."""
        longest = 0.0
        for call in batch:
            self.record(*call)
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
    if load is None:
        load = Load(given["by"], given["url"], texts, given["messages"], given["keys"])
    else:
        load.recorded = 0
    cost = load.measure(given["burst"], given["seconds"])
    load.flush()
    with urllib.request.urlopen(f"{given['url']}/counted") as reply:
        counted = int(reply.read())
    if given["by"] != "nothing" and counted != load.recorded:
        raise SystemExit(f"{given['by']}: {load.recorded} model calls were recorded, {counted} arrived")
    print(json.dumps(cost), flush=True)
