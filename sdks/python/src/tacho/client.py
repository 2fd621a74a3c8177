"""A client of one environment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from .configuration.prompt import Prompt, to_prompt
from .configuration.source import RuntimeConfiguration
from .core import Core
from .delivery import process_end
from .delivery.diagnostics import Counters, Diagnostic
from .delivery.issue_records import IssueRecordCounters, IssueRecords, IssueReport
from .delivery.sender import FlushResult
from .delivery.transport import StopSignal
from .guarding.arguments import Arguments
from .guarding.decorator import guarded
from .guarding.guard import Guard
from .guarding.guarded_call import Request, aauthorize_call, acall_tool, authorize_call, call_tool, decide_call
from .guarding.rules import Authorization, CallDecision, GuardDefaults, Rules
from .policy.compile import forget_lock
from .recording.context import current_of, use_prompt
from .recording.mask import Masking
from .recording.payload import Capture, Payload
from .recording.plain import read_safely
from .recording.run import Run, RunBlock, begin_scope, create_scope, end_with_process

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Tacho:
    """A client of one environment. Recording never raises, never waits and never ends its host process."""

    configuration: RuntimeConfiguration
    """The deployed prompts and policies."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client_id: str | None = None,
        enabled: bool | None = None,
        agent_name: str | None = None,
        agent_id: str | None = None,
        schema_version: str | None = None,
        capture: Capture | None = None,
        metadata_keys: Sequence[str] | None = None,
        masking: Masking | None = None,
        sample_rate: float | None = None,
        max_queued_events: int | None = None,
        max_queued_bytes: int | None = None,
        flush_interval: float | None = None,
        request_timeout: float | None = None,
        flush_timeout: float | None = None,
        compression: Literal["auto", "never"] | None = None,
        refresh_interval: float | None = None,
        configuration_file: str | None = None,
        configuration_max_age: float | None = None,
        spool: str | None = None,
        guard: GuardDefaults | None = None,
        on_diagnostic: Callable[[Diagnostic], object] | None = None,
    ) -> None:
        """docs/sdk/python.md lists the options. Times are in seconds. None: the default."""
        given = {name: value for name, value in locals().items() if name != "self"}
        self.core = self._make_core(given)
        self.configuration = RuntimeConfiguration(self.core)
        self._issues = IssueRecords(self.core)
        self.guarding = Guard(self.core, self.configuration, self._issues, guard or GuardDefaults())
        if self.core.spool is not None:
            self.core.spool.watch()
        process_end.watch(self)

    def _make_core(self, given: dict[str, Any]) -> Core:
        """A test's fake has another network."""
        return Core(given)

    def run(
        self,
        *,
        run_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        agent_name: str | None = None,
        parent_span_id: str | None = None,
    ) -> RunBlock:
        """
        One agent execution: a context manager and a decorator, sync and async. Records the outcome when it ends: COMPLETED,
        FAILED if it raises, CANCELLED if it is cancelled. `run_id`: 1 to 255 characters; default: a new UUIDv7.
        `session_id` groups related runs.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        return RunBlock(lambda: self.core, given)

    def start_run(
        self,
        *,
        run_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        agent_name: str | None = None,
        parent_span_id: str | None = None,
    ) -> Run:
        """Begins a run without a block. Call its `end`, or the run stays RUNNING."""
        given = {name: value for name, value in locals().items() if name != "self"}
        return Run(self.core, begin_scope(self.core, given, has_block=False))

    def resume(self, handle: Mapping[str, Any]) -> Run:
        """Continues a run that began elsewhere, from its `to_handle`. Only one of its processes should call `end`."""
        names = {
            "run_id": "runId",
            "session_id": "sessionId",
            "agent_id": "agentId",
            "agent_name": "agentName",
        }
        names["parent_span_id"] = "parentSpanId"
        given: dict[str, Any] = read_safely(lambda: {name: handle.get(key) for name, key in names.items()}, {})
        return Run(self.core, create_scope(self.core, given))

    def current_run(self) -> Run | None:
        """The innermost run around this call."""
        current = current_of(self.core)
        return Run(self.core, current.scope) if current else None

    def record(self, event_type: str, label: str, payload: Payload | None = None, *, event_id: str | None = None) -> str | None:
        """Records an event on the current run: the innermost `run` or `within` around this call. See `Run.record`."""
        return self.core.record(self.core.current_scope(), event_type, label, payload, event_id=event_id)

    def ready(self, timeout: float | None = None) -> bool:
        """
        Waits until what dead processes left in the spool is queued, at most `timeout` seconds (default: `flush_timeout`). True
        if it is. You need not wait: the spool keeps events from the first call on.
        """
        given = self.core.settings.flush_timeout if timeout is None else timeout
        return self.core.spool is None or self.core.spool.ready(given)

    async def aready(self, timeout: float | None = None) -> bool:
        """The same for asyncio."""
        return await asyncio.to_thread(self.ready, timeout)

    def prompt(self, name: str, fallback: str) -> Prompt:
        """
        The deployed version of a prompt. Returns the fallback while nothing is loaded (see `configuration.ready`) or
        deployed. Inside a run, later events and issue records of this task and span carry its `promptVersionId`.
        """
        self.configuration.start()
        current = self.configuration.current
        prompts = current.prompts if current else ()
        deployed = next((prompt for prompt in prompts if prompt.name == name), None)
        use_prompt(self.core, deployed.version_id if deployed else None)
        return to_prompt(name, fallback, deployed)

    @overload
    def guard(self, function: F, /) -> F: ...

    @overload
    def guard(
        self,
        /,
        *,
        name: str | None = None,
        input: Callable[..., object] | None = None,
        risk_signals: Callable[..., Sequence[str]] | None = None,
        rules: Rules | None = None,
    ) -> Callable[[F], F]: ...

    def guard(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        input: Callable[..., object] | None = None,
        risk_signals: Callable[..., Sequence[str]] | None = None,
        rules: Rules | None = None,
    ) -> Any:
        """
        Decorates a tool, a function or a coroutine function. Policies decide each call, the call is recorded, and a person
        approves it first if a policy requires that. Raises ToolBlockedError if the tool may not run.

        `name`: in policies, approvals and events; default: the function's. `input`: what conditions see as `tool.input`,
        from the arguments; default: the arguments by name, or the only argument if it is a dict. `risk_signals`: names of
        risks, for `risk.signals` in conditions.
        """

        decorate = guarded(lambda: self, name, input, risk_signals, rules)
        return decorate if function is None else decorate(function)

    def call_guarded(
        self,
        tool_name: str,
        input: object,
        act: Callable[[], T],
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
        stop: StopSignal | None = None,
    ) -> T:
        """
        Runs `act` as one guarded call of a tool, for tools that are no functions of yours. `input`: what conditions see, or a
        function that reads it; it is read again before `act` runs, and must be the same. `stop` ends the wait for approval.
        Raises ToolBlockedError if the tool may not run.
        """
        request = Request(tool_name, _reader(input), act, risk_signals, rules or Rules(), stop)
        return cast(T, call_tool(self.guarding, request))

    async def acall_guarded(
        self,
        tool_name: str,
        input: object,
        act: Callable[[], Awaitable[T]],
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
        stop: StopSignal | None = None,
    ) -> T:
        """The same for asyncio: `act` returns an awaitable."""
        request = Request(tool_name, _reader(input), act, risk_signals, rules or Rules(), stop)
        return cast(T, await acall_tool(self.guarding, request))

    def run_tool(
        self,
        tool_name: str,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
        *,
        left_out: Collection[str] = (),
        pauses: tuple[type[BaseException], ...] = (),
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
        stop: StopSignal | None = None,
    ) -> Any:
        """
        Calls a function as one guarded call of a tool: for integrations, which call it where the framework calls the tool's
        own function. Conditions see the arguments by name, and the function gets copies of these same values. `left_out`:
        parameters that the framework fills, not the model. `pauses`: exceptions that are no failures. Raises
        ToolBlockedError if the tool may not run; otherwise whatever the function raises.
        """
        bound = Arguments(function, args, named or {}, left_out)
        return call_tool(
            self.guarding,
            Request(tool_name, bound.input, bound.call, risk_signals, rules or Rules(), stop, pauses),
        )

    async def arun_tool(
        self,
        tool_name: str,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
        *,
        left_out: Collection[str] = (),
        pauses: tuple[type[BaseException], ...] = (),
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
        stop: StopSignal | None = None,
    ) -> Any:
        """The same for asyncio. What the function returns is awaited if it can be."""
        bound = Arguments(function, args, named or {}, left_out)
        return await acall_tool(
            self.guarding,
            Request(tool_name, bound.input, bound.call, risk_signals, rules or Rules(), stop, pauses),
        )

    def decide(
        self,
        tool_name: str,
        input: object = None,
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
    ) -> CallDecision:
        """
        Decides about a call and records the decision, without running anything: for tools that `guard` cannot wrap. It
        requests no approval; on REQUIRE_APPROVAL, the caller must. Waits for the first policies, at most two seconds.
        """
        given = rules or Rules()
        self.guarding.prepare(given)
        return decide_call(self.guarding, tool_name, _reader(input), risk_signals, given)

    async def adecide(
        self,
        tool_name: str,
        input: object = None,
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
    ) -> CallDecision:
        """The same for asyncio."""
        given = rules or Rules()
        await self.guarding.aprepare(given)
        return decide_call(self.guarding, tool_name, _reader(input), risk_signals, given)

    def authorize(
        self,
        tool_name: str,
        input: object = None,
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
        stop: StopSignal | None = None,
    ) -> Authorization:
        """
        Decides about a call, records the decision, and waits for a person if a policy requires that, without running
        anything: for tools that another program runs. Record the result with `tool_call`. `stop` ends the wait for approval.
        Raises ToolBlockedError if the tool may not run.
        """
        request = Request(tool_name, _reader(input), _nothing, risk_signals, rules or Rules(), stop)
        return authorize_call(self.guarding, request)

    async def aauthorize(
        self,
        tool_name: str,
        input: object = None,
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
        stop: StopSignal | None = None,
    ) -> Authorization:
        """The same for asyncio."""
        request = Request(tool_name, _reader(input), _nothing, risk_signals, rules or Rules(), stop)
        return await aauthorize_call(self.guarding, request)

    def report_issue(self, report: IssueReport) -> str | None:
        """Queues an issue record: a detection, or the recovery from one. Returns at once."""
        return self._issues.report(self.core.current_scope(), report)

    def flush(self, timeout: float | None = None) -> FlushResult:
        """
        Waits until every event and issue record recorded before the call is delivered, rejected or dropped, or the time is
        up (default: `flush_timeout`). Never raises. Respects a Retry-After of the service.
        """
        given = self.core.settings.flush_timeout if timeout is None else timeout
        result = self.core.sender.flush(given)
        self._issues.flush(given if result.left == 0 else 0)
        return result

    async def aflush(self, timeout: float | None = None) -> FlushResult:
        """The same for asyncio."""
        return await asyncio.to_thread(self.flush, timeout)

    def shutdown(self, timeout: float | None = None) -> FlushResult:
        """Flushes, then stops recording. Remaining events count as dropped; the spool keeps them for the next process."""
        result = self.flush(timeout)
        self.configuration.close()
        self.core.sender.close()
        self._issues.close()
        self.core.connections.close()
        process_end.forget(self)
        return result

    async def ashutdown(self, timeout: float | None = None) -> FlushResult:
        """The same for asyncio."""
        return await asyncio.to_thread(self.shutdown, timeout)

    def counters(self) -> Counters:
        """Counts of recorded events by result so far."""
        return self.core.diagnostics.counters(*self.core.sender.held)

    def issue_record_counters(self) -> IssueRecordCounters:
        """The same for issue records."""
        return self._issues.counters

    def end_runs(self, how: process_end.HowItEnds) -> None:
        """Called when the process or a thread ends, for the runs that are still open."""
        runs = self.core.open_runs
        for scope in runs.of_process(how.is_normal) if how.thread is None else runs.of_thread(how.thread):
            end_with_process(self.core, scope, how)

    def flush_at_end(self) -> None:
        """Called when the process ends, after `end_runs`."""
        settings = self.core.settings
        left = self.core.sender.flush_at_end(settings.flush_timeout, settings.exit_patience).left
        self._issues.flush_at_end(settings.exit_patience if left == 0 else 0)
        if left > 0:
            message = f"Not delivered to {settings.base_url}: {left} events. {self.core.sender.fate}"
            self.core.diagnostics.report("error", "events_undelivered", message)

    def after_fork(self) -> None:
        """Called in a forked process."""
        forget_lock()
        self.core.reset()
        self._issues.reset()
        self.guarding.reset()
        self.configuration.reset()


def _reader(input: object) -> Callable[[], object]:
    return input if callable(input) else lambda: input


def _nothing() -> None:
    """What an authorized call runs: another program runs the tool."""
