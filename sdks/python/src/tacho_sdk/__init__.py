"""
The flight recorder and firewall for AI agents.

    import tacho_sdk as tacho

    with tacho.run(agent_name="assistant") as run:
        run.user_input("Where is my order?")

The functions of this module use one client, made from TACHO_API_KEY and TACHO_URL or by `configure`. For several: `Tacho`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, overload

from .client import Tacho
from .configuration.configuration import Configuration, DeployedPrompt, Policy, ToolLabels
from .configuration.prompt import Prompt
from .configuration.source import ConfigurationState, RuntimeConfiguration
from .delivery.diagnostics import Counters, Diagnostic
from .delivery.issue_records import IssueRecordCounters, IssueReport
from .delivery.sender import FlushResult
from .delivery.transport import StopSignal
from .guarding.blocked import BlockCode, PendingCall, ToolBlockedError
from .guarding.decorator import guarded
from .guarding.detectors import Budget, Detection, Loop
from .guarding.rules import Action, Authorization, CallDecision, GuardDefaults, Rules
from .observe import ObserveBlock
from .recording.mask import Masking
from .recording.moment import Moment
from .recording.payload import Payload
from .recording.run import OpenSpan, Outcome, Run, RunBlock
from .recording.score import ScoreDetails, ScoreValue
from .recording.threads import ThreadPoolExecutor, carry_runs, in_this_run

if TYPE_CHECKING:
    from typing_extensions import Unpack

__version__ = "0.1.0"

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
P = ParamSpec("P")

_lock: threading.RLock = globals().get("_lock") or threading.RLock()
_client: Tacho | None = globals().get("_client")  # `importlib.reload` keeps it, and its open runs.


def _with_options_of(_made: Callable[P, T]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Signature for type checkers: an option with a wrong name is an error."""
    return lambda function: function


@_with_options_of(Tacho)
def configure(**options: Any) -> Tacho:
    """
    Makes the client of this module's functions, with the options of `Tacho`. Ends the one before it. If the service refused the
    key of that one, its open runs and queued events go on with the new key: before you change the environment, call `shutdown`.
    """
    global _client
    with _lock:
        before, _client = _client, Tacho(**options)
        made = _client
    if before is not None and not before.is_closed:
        before.flush()
        if not made._take_over(before):
            before.shutdown(0)
    return made


def client() -> Tacho:
    """The client of this module's functions; made from the environment at first use, and anew after its shutdown."""
    global _client
    made = _client
    if made is None or made.is_closed:
        with _lock:
            made = _client
            if made is None or made.is_closed:
                made = _client = Tacho() if made is None else made._again()
    return made


class _CallOptions(TypedDict, total=False):
    """Signature for type checkers, as above."""

    risk_signals: Sequence[str]
    rules: Rules | None
    stop: StopSignal | None
    key: str | None


class _ToolOptions(_CallOptions, total=False):
    left_out: Collection[str]
    pauses: tuple[type[BaseException], ...]


# Each function is the method of the same name of `Tacho`, on the client at the time of the call.


@overload
def run(function: F, /) -> F: ...


@overload
def run(
    *,
    run_id: str | None = None,
    session_id: str | None = None,
    agent_id: str | None = None,
    agent_name: str | None = None,
    parent_span_id: str | None = None,
    traceparent: str | None = None,
) -> RunBlock: ...


def run(
    function: Callable[..., Any] | None = None,
    /,
    *,
    run_id: str | None = None,
    session_id: str | None = None,
    agent_id: str | None = None,
    agent_name: str | None = None,
    parent_span_id: str | None = None,
    traceparent: str | None = None,
) -> Any:
    """An agent execution: a context manager and a decorator, sync and async. See `Tacho.run`."""
    run_options = {"run_id": run_id, "session_id": session_id, "agent_id": agent_id, "agent_name": agent_name}
    # A decorator may be applied before `configure`.
    block = RunBlock(lambda: client().core, {**run_options, "parent_span_id": parent_span_id, "traceparent": traceparent})
    return block if function is None else block(function)


@overload
def observe(function: F, /) -> F: ...


@overload
def observe(*, name: str | None = None, content: bool = True) -> Callable[[F], F]: ...


def observe(function: Callable[..., Any] | None = None, /, *, name: str | None = None, content: bool = True) -> Any:
    """Records each call of any function: a span, and a run if there is none. See `Tacho.observe`."""
    block = ObserveBlock(lambda: client().core, name, content)
    return block if function is None else block(function)


def start_run(
    *,
    run_id: str | None = None,
    session_id: str | None = None,
    agent_id: str | None = None,
    agent_name: str | None = None,
    parent_span_id: str | None = None,
    traceparent: str | None = None,
) -> Run:
    """Begins a run without a block, with the options of `run`. Call its `end`, or the run stays RUNNING."""
    run_options = {"run_id": run_id, "session_id": session_id, "agent_id": agent_id, "agent_name": agent_name}
    return client().start_run(**run_options, parent_span_id=parent_span_id, traceparent=traceparent)


def resume(handle: Mapping[str, Any]) -> Run:
    """Continues a run that began elsewhere, from its `to_handle`."""
    return client().resume(handle)


def current_run() -> Run | None:
    """The innermost run around this call."""
    return client().current_run()


def record(
    event_type: str, label: str, payload: Payload | None = None, *, at: Moment | None = None, event_id: str | None = None
) -> str | None:
    """Records an event on the current run. Returns its id; None if it was dropped. `at`, `event_id`: see `Run.record`."""
    return client().record(event_type, label, payload, at=at, event_id=event_id)


def score(run_id: str, name: str, value: ScoreValue, comment: str | None = None, **about: Unpack[ScoreDetails]) -> str | None:
    """Says how good a run is, from any process and at any later time. See `Tacho.score`."""
    return client().score(run_id, name, value, comment, **about)


def ready(timeout: float | None = None) -> bool:
    """Waits until what dead processes left in the spool is queued. See `Tacho.ready`."""
    return client().ready(timeout)


async def aready(timeout: float | None = None) -> bool:
    """The same for asyncio."""
    return await client().aready(timeout)


def prompt(name: str, fallback: str) -> Prompt:
    """The deployed version of a prompt, or the fallback."""
    return client().prompt(name, fallback)


@overload
def guard(function: F, /) -> F: ...


@overload
def guard(
    *,
    name: str | None = None,
    input: Callable[..., object] | None = None,
    risk_signals: Callable[..., Sequence[str]] | None = None,
    rules: Rules | None = None,
    key: Callable[..., str] | None = None,
) -> Callable[[F], F]: ...


def guard(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    input: Callable[..., object] | None = None,
    risk_signals: Callable[..., Sequence[str]] | None = None,
    rules: Rules | None = None,
    key: Callable[..., str] | None = None,
) -> Any:
    """Decorates a tool: policies decide each call, and a person approves it if a policy requires that. See `Tacho.guard`."""
    decorate = guarded(client, name, input, risk_signals, rules, key)
    return decorate if function is None else decorate(function)


def call_guarded(tool_name: str, input: object, act: Callable[[], T], **options: Unpack[_CallOptions]) -> T:
    """Runs `act` as one guarded call. See `Tacho.call_guarded`."""
    return client().call_guarded(tool_name, input, act, **options)


async def acall_guarded(tool_name: str, input: object, act: Callable[[], Awaitable[T]], **options: Unpack[_CallOptions]) -> T:
    """The same for asyncio."""
    return await client().acall_guarded(tool_name, input, act, **options)


def run_tool(
    tool_name: str,
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    named: Mapping[str, Any] | None = None,
    **options: Unpack[_ToolOptions],
) -> Any:
    """Calls a function as one guarded call of a tool. See `Tacho.run_tool`."""
    return client().run_tool(tool_name, function, args, named, **options)


async def arun_tool(
    tool_name: str,
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    named: Mapping[str, Any] | None = None,
    **options: Unpack[_ToolOptions],
) -> Any:
    """The same for asyncio."""
    return await client().arun_tool(tool_name, function, args, named, **options)


def continue_call(approval_id: str, tool: Callable[..., T]) -> T:
    """Continues a call of the current run that waits for a person. See `Tacho.continue_call`."""
    return client().continue_call(approval_id, tool)


async def acontinue_call(approval_id: str, tool: Callable[..., Awaitable[T]]) -> T:
    """The same for asyncio."""
    return await client().acontinue_call(approval_id, tool)


def decide(
    tool_name: str, input: object = None, *, risk_signals: Sequence[str] = (), rules: Rules | None = None
) -> CallDecision:
    """Decides about a call and records the decision, without running anything. See `Tacho.decide`."""
    return client().decide(tool_name, input, risk_signals=risk_signals, rules=rules)


async def adecide(
    tool_name: str, input: object = None, *, risk_signals: Sequence[str] = (), rules: Rules | None = None
) -> CallDecision:
    """The same for asyncio."""
    return await client().adecide(tool_name, input, risk_signals=risk_signals, rules=rules)


def authorize(
    tool_name: str,
    input: object = None,
    *,
    risk_signals: Sequence[str] = (),
    rules: Rules | None = None,
    stop: StopSignal | None = None,
    key: str | None = None,
) -> Authorization:
    """Decides about a call, and waits for a person if a policy requires that. Runs nothing. See `Tacho.authorize`."""
    return client().authorize(tool_name, input, risk_signals=risk_signals, rules=rules, stop=stop, key=key)


async def aauthorize(
    tool_name: str,
    input: object = None,
    *,
    risk_signals: Sequence[str] = (),
    rules: Rules | None = None,
    stop: StopSignal | None = None,
    key: str | None = None,
) -> Authorization:
    """The same for asyncio."""
    return await client().aauthorize(tool_name, input, risk_signals=risk_signals, rules=rules, stop=stop, key=key)


def report_issue(report: IssueReport) -> str | None:
    """Queues an issue record: a detection, or the recovery from one. Returns at once."""
    return client().report_issue(report)


def flush(timeout: float | None = None) -> FlushResult:
    """Waits until everything recorded is delivered, or the time is up, in seconds. Never raises."""
    return client().flush(timeout)


async def aflush(timeout: float | None = None) -> FlushResult:
    """The same for asyncio."""
    return await client().aflush(timeout)


def shutdown(timeout: float | None = None) -> FlushResult:
    """Flushes, then ends this client. A later call of the module makes a new one, with the same options."""
    return (_client or client()).shutdown(timeout)


async def ashutdown(timeout: float | None = None) -> FlushResult:
    """The same for asyncio."""
    return await (_client or client()).ashutdown(timeout)


__all__ = [
    "Action",
    "Authorization",
    "BlockCode",
    "Budget",
    "CallDecision",
    "Configuration",
    "ConfigurationState",
    "Counters",
    "DeployedPrompt",
    "Detection",
    "Diagnostic",
    "FlushResult",
    "GuardDefaults",
    "IssueRecordCounters",
    "IssueReport",
    "Loop",
    "Masking",
    "Moment",
    "OpenSpan",
    "Outcome",
    "PendingCall",
    "Policy",
    "Prompt",
    "Rules",
    "Run",
    "RuntimeConfiguration",
    "StopSignal",
    "Tacho",
    "ThreadPoolExecutor",
    "ToolBlockedError",
    "ToolLabels",
    "aauthorize",
    "acall_guarded",
    "acontinue_call",
    "adecide",
    "aflush",
    "aready",
    "arun_tool",
    "ashutdown",
    "authorize",
    "call_guarded",
    "carry_runs",
    "client",
    "configure",
    "continue_call",
    "current_run",
    "decide",
    "flush",
    "guard",
    "in_this_run",
    "observe",
    "prompt",
    "ready",
    "record",
    "report_issue",
    "resume",
    "run",
    "run_tool",
    "score",
    "shutdown",
    "start_run",
]
