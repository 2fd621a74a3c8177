"""The Python SDK behind the conformance kit's protocol (docs/sdk/conformance.md)."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import tacho_sdk as tacho

_writing = threading.Lock()
_clients: dict[str, _Client] = {}


class _Client:
    def __init__(self, request: dict[str, Any]) -> None:
        self.tacho = tacho.Tacho(
            base_url=request["baseUrl"],
            api_key=request["apiKey"],
            client_id=request["clientId"],
            release=request["release"],
            guard=tacho.GuardDefaults(loop=None),
            flush_interval=0.05,
            # Diagnostics go to stderr, where the kit searches for the key.
            on_diagnostic=lambda said: print(said, file=sys.stderr),
        )
        handle = request.get("handle")
        self.run = self.tacho.resume(handle) if handle else self.tacho.start_run(agent_name="conformance")
        # Inputs of waiting calls, for `changeInput`.
        self.inputs: dict[str, dict[str, Any]] = {}

    def record(self, event: dict[str, Any], **_: Any) -> Any:
        return self.run.record(event.get("eventType", "AGENT_STEP"), event.get("label", "step"), event.get("payload"))

    def score(self, score: dict[str, Any], **_: Any) -> Any:
        given = dict(score)
        names = {"eventId": "event_id", "agentName": "agent_name", "runId": "run_id"}
        named = {names.get(name, name): value for name, value in given.items()}
        return self.tacho.score(**named) if "run_id" in named else self.run.score(**named)

    def flush(self, timeoutMs: float, **_: Any) -> Any:
        self.tacho.flush(timeoutMs / 1_000)

    def refresh(self, **_: Any) -> Any:
        self.tacho.configuration.refresh()

    def configuration(self, **_: Any) -> Any:
        current = self.tacho.configuration.current
        return {
            "revision": current.revision if current else None,
            "prompts": {one.name: one.content for one in current.prompts} if current else {},
            "policyIds": [one.policy_id for one in current.policies] if current else [],
        }

    def call(
        self,
        callId: str,
        toolName: str,
        input: dict[str, Any],
        approvalTimeoutMs: float,
        approvalWaitMs: float | None = None,
        **_: Any,
    ) -> Any:
        self.inputs[callId] = input
        wait = None if approvalWaitMs is None else approvalWaitMs / 1_000
        rules = tacho.Rules(approval_timeout=approvalTimeoutMs / 1_000, approval_wait=wait)
        return self._called(toolName, rules, lambda tool: tool(input))

    def handle(self, **_: Any) -> Any:
        return self.run.to_handle()

    def proceed(self, approvalId: str, toolName: str, **_: Any) -> Any:
        return self._called(toolName, tacho.Rules(), lambda tool: self.tacho.continue_call(approvalId, tool))

    def _called(self, name: str, rules: tacho.Rules, act: Callable[[Any], Any]) -> Any:
        got: list[dict[str, Any]] = []

        @self.tacho.guard(name=name, rules=rules)
        def tool(taken: dict[str, Any]) -> None:
            got.append(taken)

        try:
            with self.run.within():
                output = act(tool)
        except tacho.ToolBlockedError as error:
            return {"ran": bool(got), "code": error.code, "approvalId": error.approval_id}
        return {"ran": bool(got), "input": got[0] if got else None, "output": output}

    def changeInput(self, callId: str, input: dict[str, Any], **_: Any) -> Any:
        given = self.inputs[callId]
        given.clear()
        given.update(input)

    def report(self, record: dict[str, Any], **_: Any) -> Any:
        names = {"detectionType": "detection_type", "recordKind": "record_kind"}
        report = tacho.IssueReport(**{names.get(name, name): value for name, value in record.items()})
        with self.run.within():
            self.tacho.report_issue(report)

    def counters(self, **_: Any) -> Any:
        counts = self.tacho.counters()
        names = ("recorded", "accepted", "rejected", "queued")
        return {name: getattr(counts, name) for name in names} | {"dropped": sum(counts.dropped.values())}

    def stop(self, client: str, **_: Any) -> Any:
        del _clients[client]
        self.tacho.shutdown(0)


def answer(request: dict[str, Any]) -> Any:
    if request["op"] == "start":
        _clients[request["client"]] = _Client(request)
        return None
    operation = getattr(_clients[request["client"]], request["op"])
    return operation(**request)


def handle(request: dict[str, Any]) -> None:
    line: dict[str, Any]
    try:
        line = {"id": request["id"], "ok": True, "result": answer(request)}
    except Exception as error:
        line = {"id": request["id"], "ok": False, "error": f"{type(error).__name__}: {error}"}
    with _writing:
        print(json.dumps(line), flush=True)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] in ("start", "record", "score", "changeInput", "counters", "configuration", "report"):
            handle(request)
        else:
            # A call that waits must not block other operations.
            threading.Thread(target=handle, args=(request,), daemon=True).start()


if __name__ == "__main__":
    main()
