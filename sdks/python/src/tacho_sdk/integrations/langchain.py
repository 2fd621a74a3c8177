"""
LangChain and LangGraph.

    agent = create_agent(model, guard_tools([refund]))
    agent.invoke({"messages": "Refund order 7"}, {"callbacks": [TachoHandler()]})
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import BaseTool

import tacho_sdk as tacho_module

from ..client import Tacho
from ..guarding.asked_calls import NeverRan, is_cut, record_never_ran
from ..recording.context import CURRENT, Context, RunScope, Span
from ..recording.plain import read_safely
from ..recording.run import Run, begin_scope, failure_of, outcome_of
from ..recording.usage_shapes import call_usage, metadata_cost
from .border import Bordered, safely
from .langchain_agents import Kind, Places
from .langchain_answers import CallPieces, as_received, names_of, reason_of
from .langchain_tools import GUARDED_KEY, GUARDED_NAMES, PAUSES, guard_tool
from .messages import Message, fields_of, messages_of
from .model_call import ModelCall
from .unguarded import Unguarded

T = TypeVar("T", bound=BaseTool)

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "tool": "tool", "system": "system"}
# Bounds the chains whose end LangChain never reports.
_OPEN_MAX = 10_000

_CLAIMS: dict[tuple[int, object], object] = {}
_CLAIMS_LOCK = threading.Lock()
_CLAIMS_MAX = 10_000


def _claim(key: tuple[int, object], owner: object) -> bool:
    with _CLAIMS_LOCK:
        first = _CLAIMS.setdefault(key, owner)
        if len(_CLAIMS) > _CLAIMS_MAX:
            del _CLAIMS[next(iter(_CLAIMS))]
    return first == owner


class TachoHandler(Bordered, BaseCallbackHandler):
    """
    Records the model calls of a chain or graph as LLM_CALL events, tools that are not guarded as TOOL_CALL events, and nodes of
    a graph as AGENT_STEP events, of the current run. Outside a run, the outermost chain becomes a run of its own. Pass it in
    `callbacks`. One handler may serve all chains.
    """

    # A callback in a thread pool could come after the tool has run.
    run_inline = True

    def __init__(self, tacho: Tacho | None = None) -> None:
        self._tacho = tacho
        self._lock = threading.Lock()
        self._calls: dict[UUID, ModelCall] = {}
        self._scopes: dict[UUID, RunScope] = {}
        self._own: dict[UUID, Run] = {}
        self._steps: dict[UUID, _Step] = {}
        self._offered: dict[UUID, set[str]] = {}
        self._pieces: dict[UUID, CallPieces] = {}
        self._places = Places()

    @property
    def _client(self) -> Tacho:
        return self._tacho or tacho_module.client()

    def on_chain_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **more: Any) -> None:
        safely(self._tacho, lambda: self._begin_chain(run_id, parent_run_id), None)
        name = more.get("name")
        is_node = _is_node(more.get("tags"), name)
        self._enter(run_id, parent_run_id, "node" if is_node else "chain", more)
        if is_node:
            self._begin_step(run_id, "AGENT_STEP", name, lambda: {"node": name})

    def on_chain_end(self, outputs: Any = None, *, run_id: UUID, **more: Any) -> None:
        self._end_step(run_id, dict)
        self._leave(run_id, outputs)
        self._end_chain(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self._end_step(run_id, lambda: _failure(error))
        self._leave(run_id, None)
        self._end_chain(run_id, error)

    def on_tool_start(
        self, serialized: Any, input_str: Any = None, *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        safely(self._tacho, lambda: self._begin_chain(run_id, parent_run_id), None)
        name = more.get("name") or fields_of(serialized).get("name") or "tool"
        self._enter(run_id, parent_run_id, "tool", {**more, "name": name})
        self._is_first(more.get("tool_call_id"))
        if fields_of(more.get("metadata")).get(GUARDED_KEY):
            return
        given = more.get("inputs")
        facts = {"toolName": name, "input": input_str if given is None else given}
        self._begin_step(run_id, "TOOL_CALL", name, lambda: facts)

    def on_tool_end(self, output: Any = None, *, run_id: UUID, **more: Any) -> None:
        self._end_step(run_id, lambda: {"output": getattr(output, "content", output)})
        self._leave(run_id, output)
        self._end_chain(run_id, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self._end_step(run_id, lambda: _failure(error))
        self._leave(run_id, None)
        self._end_chain(run_id, error)

    def on_chat_model_start(
        self, serialized: Any, messages: list[list[Any]], *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        def request() -> dict[str, Any]:
            said = [_message_of(message) for batch in messages for message in batch]
            return {**_model_of(more), "messages": [one for given in said for one in messages_of([given])]}

        safely(self._tacho, lambda: self._record_declined(messages[0]), None)
        self._begin_call(run_id, parent_run_id, request)
        offered = read_safely(lambda: names_of(more["invocation_params"]["tools"]), set[str]())
        _add(self._offered, run_id, offered)

    def on_llm_start(
        self, serialized: Any, prompts: list[str], *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        def request() -> dict[str, Any]:
            return {**_model_of(more), "messages": [{"role": "user", "content": prompt} for prompt in prompts]}

        self._begin_call(run_id, parent_run_id, request)

    def on_llm_new_token(self, *args: Any, run_id: UUID, **more: Any) -> None:
        call = self._calls.get(run_id)
        if call:
            call.token()
            pieces = self._pieces[run_id]
            token = args[0] if args else None
            read_safely(lambda: pieces.add(token, getattr(more.get("chunk"), "message", None)), None)
            call.opened(lambda: call.abort(pieces.result))

    def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
        call, pieces = self._calls.pop(run_id, None), self._pieces.pop(run_id, CallPieces())
        if call:
            call.end(lambda: _result_of(response, pieces))
            safely(self._tacho, lambda: self._record_lost(response, self._offered.pop(run_id, None)), None)

    def _record_lost(self, response: Any, offered: set[str] | None) -> None:
        """Records calls that LangGraph answers itself or leaves out."""
        message = response.generations[0][0].message
        for call in message.invalid_tool_calls:
            answer = str(call.get("error") or "The arguments are not a JSON object.")
            self._lost(call, "unreadable", answer, call.get("args"))
        scope = self._client.core.current_scope()
        for call in message.tool_calls if offered else ():
            if scope is not None and call["name"] in GUARDED_NAMES:
                self._client.core.asked_calls.waits(scope, call["name"], call["id"])
            if offered and call["name"] not in offered:
                self._lost(call, "unknown_tool", f"There is no tool {call['name']}.", call["args"])

    def _record_declined(self, messages: Sequence[Any]) -> None:
        """
        Records calls that middleware or a node, such as one that asks a person, answered with an error in place of a tool.
        """
        asked = {call["id"]: call for message in messages for call in getattr(message, "tool_calls", None) or ()}
        for answer in reversed(messages):
            if answer.type != "tool":
                return
            self._client.core.asked_calls.goes_on(self._client.core, answer.tool_call_id)
            call = asked.get(answer.tool_call_id)
            if call is not None and answer.status == "error" and self._is_first(call["id"]):
                said = str(answer.content)
                is_unknown = said.startswith(f"Error: {call['name']} is not a valid tool")
                self._lost(call, "unknown_tool" if is_unknown else "declined", said, call["args"])

    def _is_first(self, call_id: Any) -> bool:
        """Whether the outcome of this call is not recorded yet. True only the first time."""
        scope = self._client.core.current_scope()
        return call_id is not None and _claim((id(self._client.core), (scope and scope.run_id, call_id)), object())

    def _lost(self, call: Mapping[str, Any], code: NeverRan, answer: str, arguments: object) -> None:
        self._is_first(call.get("id"))
        record_never_ran(self._client.guarding, str(call.get("name")), code, answer, arguments, call.get("id"))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        call = self._calls.pop(run_id, None)
        pieces = self._pieces.pop(run_id, CallPieces())
        if call:
            call.fail(error, pieces.result)

    def _begin_call(self, run_id: UUID, parent_run_id: UUID | None, request: Callable[[], dict[str, Any]]) -> None:
        if not self._claims(run_id):
            return
        parent = self._scopes.get(parent_run_id) if parent_run_id else None
        scope = self._client.core.current_scope() or parent
        if scope is not None:
            safely(self._tacho, lambda: self._places.call_model(self._client.core, scope, parent_run_id), None)
        agent = None if scope is None else scope.team.naming(self._places.agent_of(parent_run_id))
        named = request if agent is None else lambda: {**request(), "agent": agent}
        call = ModelCall(self._client, named, scope)
        call.enter()
        _add(self._calls, run_id, call)
        _add(self._pieces, run_id, CallPieces())

    def _enter(self, run_id: UUID, parent_run_id: UUID | None, kind: Kind, more: Mapping[str, Any]) -> None:
        scope = self._scopes.get(run_id)
        if scope is not None:
            place = (scope, run_id, parent_run_id, kind, more, kind == "chain" or self._claims(run_id))
            safely(self._tacho, lambda: self._places.enter(self._client.core, *place), None)

    def _leave(self, run_id: UUID, answer: object) -> None:
        safely(self._tacho, lambda: self._places.leave(self._client.core, self._scopes.get(run_id), run_id, answer), None)

    def _claims(self, run_id: UUID) -> bool:
        """
        Whether this handler records the call: handlers of a model, a call and a sub-agent may see the same one, and the first
        records it.
        """
        return _claim((id(self._client.core), run_id), id(self))

    def _begin_chain(self, run_id: UUID, parent_run_id: UUID | None) -> None:
        core = self._client.core
        scope = core.current_scope() or (self._scopes.get(parent_run_id) if parent_run_id else None)
        with self._lock:
            if scope is None:
                scope = begin_scope(core, {})
                _add(self._own, run_id, Run(core, scope))
            _add(self._scopes, run_id, scope)
        # Guarded tools are on this run too: LangChain calls them in a copy of this context.
        if core.current_scope() is None:
            CURRENT.set(Context(core.lineage, scope, scope.span, CURRENT.get()))

    def _begin_step(self, run_id: UUID, event_type: str, label: Any, read: Callable[[], dict[str, Any]]) -> None:
        if not self._claims(run_id):
            return
        facts: dict[str, Any] = read_safely(read, dict[str, Any]())
        _add(self._steps, run_id, _Step(event_type, str(label), facts, time.monotonic()))

    def _end_step(self, run_id: UUID, read: Callable[[], dict[str, Any]]) -> None:
        step, scope = self._steps.pop(run_id, None), self._scopes.get(run_id)
        if step is None or scope is None:
            return
        latency = max(0, round((time.monotonic() - step.begun) * 1_000))
        facts = read_safely(read, dict[str, Any]())
        if step.event_type == "TOOL_CALL" and "paused" not in facts:
            facts = {"outcome": "failed" if "error" in facts else "returned", **facts}
        agent = self._places.agent_of(run_id)
        named = {} if agent is None else {"agent": scope.team.naming(agent)}
        payload = {**step.facts, "latency": latency, **facts, **{name: one for name, one in named.items() if one is not None}}
        core = self._client.core
        span = Span(core.ids.span(), core.span_of(scope).span_id)
        core.record(scope, step.event_type, step.label, payload, span=span)

    def _end_chain(self, run_id: UUID, error: BaseException | None) -> None:
        with self._lock:
            scope = self._scopes.pop(run_id, None)
            own = self._own.pop(run_id, None)
        if own is None:
            return
        status = outcome_of(error)
        own.end(status, failure_of(status, error))
        current = CURRENT.get()
        if current is not None and current.scope is scope:
            CURRENT.set(current.outer)


@dataclass(frozen=True)
class _Step:
    """A tool or a node that runs now."""

    event_type: str
    label: str
    facts: dict[str, Any]
    begun: float


def _is_node(tags: Any, name: Any) -> bool:
    """Whether a chain is a node of a graph: LangGraph tags nodes with their step, and hides its own nodes."""
    if not isinstance(tags, list) or not isinstance(name, str) or name.startswith("__") or "langsmith:hidden" in tags:
        return False
    return any(isinstance(tag, str) and tag.startswith("graph:step:") for tag in tags)


def _failure(error: BaseException) -> dict[str, Any]:
    """The outcome of an error. A pause of a graph, or a hand-over to another graph, is no failure."""
    if isinstance(error, PAUSES):
        return {"paused": type(error).__name__}
    return {"outcome": "cancelled"} if outcome_of(error) == "CANCELLED" else {"error": error}


def _add(entries: dict[UUID, Any], key: UUID, value: Any) -> None:
    if len(entries) >= _OPEN_MAX:
        entries.pop(next(iter(entries)), None)
    entries[key] = value


def _model_of(more: Mapping[str, Any]) -> dict[str, Any]:
    metadata, params = more.get("metadata") or {}, more.get("invocation_params") or {}
    model = metadata.get("ls_model_name") or params.get("model") or params.get("model_name")
    return {"model": model, "provider": metadata.get("ls_provider")}


def _message_of(message: Any) -> Message:
    kind = getattr(message, "type", None)
    given: Message = {"role": _ROLES.get(str(kind), kind), "content": getattr(message, "content", None)}
    # Parts that are tool calls are in `tool_calls` too.
    calls = getattr(message, "tool_calls", None)
    if calls:
        content = given["content"]
        parts = content if isinstance(content, list) else []
        given["content"] = [part for part in parts if fields_of(part).get("type") == "text"] if parts else content or None
        given["tool_calls"] = calls
    lost = getattr(message, "invalid_tool_calls", None)
    if lost:
        given["tool_calls"] = [*(calls or ()), *lost]
    call_id = getattr(message, "tool_call_id", None)
    return {**given, "tool_call_id": call_id} if call_id else given


def _result_of(response: Any, pieces: CallPieces) -> dict[str, Any]:
    generation = response.generations[0][0]
    message = getattr(generation, "message", None)
    if message is None:
        return {"output": {"role": "assistant", "content": getattr(generation, "text", None)}}
    usage = getattr(message, "usage_metadata", None)
    metadata = getattr(message, "response_metadata", None) or {}
    said, reason = _message_of(message), reason_of(metadata, getattr(generation, "generation_info", None))
    if pieces.calls:
        said["tool_calls"] = pieces.calls
    elif is_cut(reason):
        said["tool_calls"] = as_received(message) or said.get("tool_calls")
    output = messages_of([said])
    return {
        "model": metadata.get("model_name") or metadata.get("model"),
        "output": output[0] if output else None,
        "finishReason": reason,
        "usage": call_usage(usage),
        "cost": metadata_cost(None, metadata),
        # LangChain sets this for an answer from its cache, which repeats the usage of the first one.
        "notCounted": "cache" if fields_of(usage).get("total_cost") == 0 else None,
    }


def guard_tools(tools: Sequence[T], tacho: Tacho | None = None, *, unguarded: Unguarded = "refuse") -> list[T]:
    """
    Copies of the tools, guarded: policies decide each call on the arguments that the tool's function gets, a person approves it
    if a policy requires that, and the call is recorded as a TOOL_CALL. A refusal is a tool error with a text that the model
    reads; the agent goes on. Raises CannotGuardError for what it cannot guard, such as a tool that runs at the provider;
    `unguarded="allow"` lets it run unguarded, and reports that.
    """
    return [guard_tool(tool, tacho, unguarded) for tool in tools]
