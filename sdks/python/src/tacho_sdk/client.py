"""A client of one environment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from .configuration.prompt import Prompt, prompt_of
from .configuration.source import RuntimeConfiguration
from .core import Core
from .delivery import process_end
from .delivery.diagnostics import Counters, Diagnostic
from .delivery.issue_records import IssueRecordCounters, IssueRecords, IssueReport
from .delivery.sender import FlushResult
from .exact import exact_text
from .guarding.calls import Calls
from .guarding.guard import Guard
from .guarding.rules import GuardDefaults, Rules
from .observe import ObserveBlock
from .options import GivenKey
from .policy.compile import forget_lock
from .recording.context import current_of, use_prompt
from .recording.handle import resumed_scope
from .recording.mask import Masking
from .recording.moment import Moment
from .recording.payload import Capture, Payload
from .recording.run import Run, RunBlock, begin_scope, end_with_process
from .recording.scope import create_scope
from .recording.score import ScoreValue

F = TypeVar("F", bound=Callable[..., Any])


class Tacho(Calls):
    """A client of one environment. Recording never raises, never waits and never ends its host process."""

    configuration: RuntimeConfiguration
    """The deployed prompts and policies."""

    def __init__(
        self,
        *,
        api_key: GivenKey | None = None,
        base_url: str | None = None,
        client_id: str | None = None,
        enabled: bool | None = None,
        agent_name: str | None = None,
        agent_id: str | None = None,
        schema_version: str | None = None,
        release: str | None = None,
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
        configuration_old_after: float | None = None,
        spool: str | None = None,
        guard: GuardDefaults | None = None,
        on_diagnostic: Callable[[Diagnostic], object] | None = None,
    ) -> None:
        """docs/sdk/python.md lists the options. Times are in seconds. None: the default."""
        options = {name: value for name, value in locals().items() if name != "self"}
        self.core = self._make_core(options)
        self.is_closed = False
        # The previous client, whose key was refused: it continues with the key of this client.
        self._before: Tacho | None = None
        # Makes the next client after `shutdown`. A function, so that no printable object holds the key.
        self._again: Callable[[], Tacho] = lambda: type(self)(**options)
        self.configuration = RuntimeConfiguration(self.core)
        self._issues = IssueRecords(self.core)
        self.guarding = Guard(self.core, self.configuration, self._issues, guard or GuardDefaults())
        self.core.on_run = self.guarding.prepare_early
        if self.core.spool is not None:
            self.core.spool.watch()
        process_end.watch(self)

    def _make_core(self, options: dict[str, Any]) -> Core:
        """Overridden by the fake of tests, which replaces the network."""
        return Core(options)

    @overload
    def run(self, function: F, /) -> F: ...

    @overload
    def run(
        self,
        /,
        *,
        run_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        agent_name: str | None = None,
        parent_span_id: str | None = None,
        traceparent: str | None = None,
    ) -> RunBlock: ...

    def run(
        self,
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
        """
        One agent execution: a context manager and a decorator, sync and async. Records the outcome when it ends: COMPLETED,
        FAILED if it raises, CANCELLED if it is cancelled. A decorated function that returns a streamed response ends its run
        after the body. `run_id`: 1 to 255 characters; default: a new UUIDv7. `session_id` groups related runs. `traceparent`:
        the W3C header of the request that the run serves; its events name that trace.
        """
        run_options = {"run_id": run_id, "session_id": session_id, "agent_id": agent_id, "agent_name": agent_name}
        block = RunBlock(lambda: self.core, {**run_options, "parent_span_id": parent_span_id, "traceparent": traceparent})
        return block if function is None else block(function)

    @overload
    def observe(self, function: F, /) -> F: ...

    @overload
    def observe(self, /, *, name: str | None = None, content: bool = True) -> Callable[[F], F]: ...

    def observe(self, function: Callable[..., Any] | None = None, /, *, name: str | None = None, content: bool = True) -> Any:
        """
        Decorates any function: each call records an AGENT_STEP with its latency, error and, unless `content` is False, its
        arguments and result. Outside a run, the call is a run of its own. Guards nothing. `name`: default: the function's.
        """
        block = ObserveBlock(lambda: self.core, name, content)
        return block if function is None else block(function)

    def start_run(
        self,
        *,
        run_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        agent_name: str | None = None,
        parent_span_id: str | None = None,
        traceparent: str | None = None,
    ) -> Run:
        """Begins a run without a block. Call its `end`, or the run stays RUNNING."""
        run_options = {name: value for name, value in locals().items() if name != "self"}
        return Run(self.core, begin_scope(self.core, run_options, has_block=False))

    def resume(self, handle: Mapping[str, Any]) -> Run:
        """Continues a run that began elsewhere, from its `to_handle`. Only one of its processes should call `end`."""
        return Run(self.core, resumed_scope(self.core, handle))

    def current_run(self) -> Run | None:
        """The innermost run around this call."""
        current = current_of(self.core)
        return Run(self.core, current.scope) if current else None

    def record(
        self,
        event_type: str,
        label: str,
        payload: Payload | None = None,
        *,
        at: Moment | None = None,
        event_id: str | None = None,
    ) -> str | None:
        """Records an event on the current run: the innermost `run` or `within` around this call. See `Run.record`."""
        return self.core.record(self.core.current_scope(), event_type, label, payload, at=at, event_id=event_id)

    def score(
        self,
        run_id: str,
        name: str,
        value: ScoreValue,
        comment: str | None = None,
        *,
        event_id: str | None = None,
        author: str | None = None,
        id: str | None = None,
        agent_id: str | None = None,
        agent_name: str | None = None,
    ) -> str | None:
        """
        Says how good a run is, or one step of it, from any process and at any later time: a user's feedback, for example. If it
        may arrive before the run's first event, name the run's agent. See `Run.score`.
        """
        if exact_text(run_id) is None:
            self.core.diagnostics.report("warning", "invalid_score", "A score was left out: it names no run.")
            return None
        scope = create_scope(self.core, {"run_id": run_id, "agent_id": agent_id, "agent_name": agent_name})
        return self.core.score(scope, name, value, comment, event_id, author, id, is_late=True)

    def ready(self, timeout: float | None = None) -> bool:
        """
        Waits until what dead processes left in the spool is queued, at most `timeout` seconds (default: `flush_timeout`). True
        if it is. You need not wait: the spool keeps events from the first call on.
        """
        wait_timeout = self.core.settings.flush_timeout if timeout is None else timeout
        return self.core.spool is None or self.core.spool.ready(wait_timeout)

    async def aready(self, timeout: float | None = None) -> bool:
        """The same for asyncio."""
        return await asyncio.to_thread(self.ready, timeout)

    def prompt(self, name: str, fallback: str) -> Prompt:
        """
        The deployed version of a prompt. Waits for the first configuration as guarded tools do, at most two seconds. Returns
        the fallback if nothing is loaded or deployed. Inside a run, later events and issue records of this task and span carry
        its `promptVersionId`, or `promptFallback`.
        """
        self.guarding.prepare(Rules())
        current = self.configuration.current
        if current is None and not self.core.settings.turned_off:
            message = f"The prompt {name!r} is the one of the code: no configuration was loaded in time."
            self.core.diagnostics.report("warning", "prompt_fallback", message)
        scope = self.core.current_scope()
        named_prompt = prompt_of(current, name, fallback, self.core.diagnostics, scope)
        use_prompt(self.core, named_prompt.version_id)
        return named_prompt

    def report_issue(self, report: IssueReport) -> str | None:
        """Queues an issue record: a detection, or the recovery from one. Returns at once."""
        return self._issues.report(self.core.current_scope(), report)

    def flush(self, timeout: float | None = None) -> FlushResult:
        """
        Waits until every event and issue record recorded before the call is delivered, rejected or dropped, or the time is
        up (default: `flush_timeout`). Never raises. Respects a Retry-After of the service.
        """
        wait_timeout = self.core.settings.flush_timeout if timeout is None else timeout
        if self._before is not None:
            self._before.flush(wait_timeout)
        result = self.core.sender.flush(wait_timeout)
        self._issues.sender.flush(wait_timeout if result.left == 0 else 0)
        return result

    async def aflush(self, timeout: float | None = None) -> FlushResult:
        """The same for asyncio."""
        return await asyncio.to_thread(self.flush, timeout)

    def shutdown(self, timeout: float | None = None) -> FlushResult:
        """Flushes, then stops recording. Remaining events count as dropped; the spool keeps them for the next process."""
        result = self.flush(timeout)
        if self._before is not None:
            self._before.shutdown(0)
        self.configuration._say_goodbye(self.core.settings.flush_timeout if timeout is None else timeout)
        self.configuration.close()
        self.core.sender.close()
        self._issues.sender.close()
        self.core.connections.close()
        process_end.forget(self)
        self.is_closed = True
        return result

    async def ashutdown(self, timeout: float | None = None) -> FlushResult:
        """The same for asyncio."""
        return await asyncio.to_thread(self.shutdown, timeout)

    def _take_over(self, before: Tacho) -> bool:
        """
        If the service refused the key of `before`, this client takes over its runs, and sends its queue with the new key.
        Returns whether it did: not for another address, because another service must get nothing. Whether the key belongs to
        another environment cannot be checked.
        """
        is_same = before.core.settings.base_url == self.core.settings.base_url
        # The key of earlier clients may have been refused too.
        all_before = [before]
        while all_before[-1]._before is not None:
            all_before.append(all_before[-1]._before)
        is_refused = any(one.core.sender.is_key_refused for one in all_before)
        if not is_same or not is_refused or not self.core.settings.enabled:
            return False
        before.configuration.close()
        for one in all_before:
            one.core.go_on_as(self.core)
            one._issues.sender.go_on_with(self.core.request)
        self._before = before
        return True

    def counters(self) -> Counters:
        """Counts of recorded events by result so far."""
        return self.core.sender.counters

    def issue_record_counters(self) -> IssueRecordCounters:
        """The same for issue records."""
        return self._issues.counters

    def end_runs(self, how: process_end.HowItEnds) -> None:
        """Called when the process or a thread ends, for the runs that are still open."""
        if how.thread is None:
            self.core.leaving_callers.leave("process_ended")
        runs = self.core.open_runs
        for scope in runs.of_process(how.is_normal) if how.thread is None else runs.of_thread(how.thread):
            end_with_process(self.core, scope, how)

    def flush_at_end(self) -> None:
        """Called when the process ends, after `end_runs`."""
        settings = self.core.settings
        left = self.core.sender.flush_at_end(settings.flush_timeout, settings.exit_patience).left
        patience = settings.exit_patience if left == 0 else 0
        self._issues.sender.flush_at_end(patience, patience)
        if left > 0:
            message = f"Not delivered to {settings.base_url}: {left} events. {self.core.sender.fate}"
            self.core.diagnostics.report("error", "events_undelivered", message)
        else:
            self.configuration._say_goodbye(settings.flush_timeout)

    def after_fork(self) -> None:
        """Called in a forked process."""
        forget_lock()
        self.core.reset()
        self._issues.reset()
        self.guarding.reset()
        self.configuration.reset()
