"""The part of a client that guards tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

from ..core import Core
from ..delivery.transport import StopSignal
from ..recording.context import continuing, current_of
from ..recording.run_state import OpenCall
from .arguments import Arguments
from .blocked import ToolBlockedError
from .decorator import guarded
from .guard import Guard
from .guarded_call import Request, aauthorize_call, acall_tool, authorize_call, call_tool, decide_call
from .rules import Authorization, CallDecision, Rules

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Calls:
    core: Core
    guarding: Guard

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
        key: Callable[..., str] | None = None,
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
        key: Callable[..., str] | None = None,
    ) -> Any:
        """
        Decorates a tool, a function or a coroutine function. Policies decide each call, the call is recorded, and a person
        approves it first if a policy requires that. Raises ToolBlockedError if the tool may not run.

        `name`: in policies, approvals and events; default: the function's. `input`: what conditions see as `tool.input`,
        from the arguments; default: the arguments by name, or the only argument if it is a dict. `risk_signals`: names of
        risks, for `risk.signals` in conditions. `key`: tells a call apart from others of the run with the same input, for
        example the id of the model's tool call; one approval lets it run once, in all processes. Default: its number.
        """

        decorate = guarded(lambda: self, name, input, risk_signals, rules, key)
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
        key: str | None = None,
        tool_call_id: str | None = None,
    ) -> T:
        """
        Runs `act` as one guarded call of a tool, for tools that are no functions of yours. `input`: what conditions see, or a
        function that reads it; it is read again before `act` runs, and must be the same. `stop` ends the wait for approval.
        `tool_call_id`: the model's id of the call, recorded with it; also its key, if it has no other. Raises ToolBlockedError
        if the tool may not run.
        """
        request = Request(
            tool_name,
            _reader(input),
            act,
            risk_signals,
            rules or Rules(),
            stop,
            key=key,
            tool_call_id=tool_call_id,
            args=[input],
        )
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
        key: str | None = None,
        tool_call_id: str | None = None,
    ) -> T:
        """The same for asyncio: `act` returns an awaitable."""
        request = Request(
            tool_name,
            _reader(input),
            act,
            risk_signals,
            rules or Rules(),
            stop,
            key=key,
            tool_call_id=tool_call_id,
            args=[input],
        )
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
        key: str | None = None,
        tool_call_id: str | None = None,
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
            Request(
                tool_name,
                bound.input,
                bound.call,
                risk_signals,
                rules or Rules(),
                stop,
                pauses,
                key,
                tool_call_id,
                args,
                named or {},
            ),
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
        key: str | None = None,
        tool_call_id: str | None = None,
    ) -> Any:
        """The same for asyncio. What the function returns is awaited if it can be."""
        bound = Arguments(function, args, named or {}, left_out)
        return await acall_tool(
            self.guarding,
            Request(
                tool_name,
                bound.input,
                bound.call,
                risk_signals,
                rules or Rules(),
                stop,
                pauses,
                key,
                tool_call_id,
                args,
                named or {},
            ),
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
        call_rules = rules or Rules()
        self.guarding.prepare(call_rules)
        return decide_call(self.guarding, tool_name, _reader(input), risk_signals, call_rules)

    async def adecide(
        self,
        tool_name: str,
        input: object = None,
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
    ) -> CallDecision:
        """The same for asyncio."""
        call_rules = rules or Rules()
        await self.guarding.aprepare(call_rules)
        return decide_call(self.guarding, tool_name, _reader(input), risk_signals, call_rules)

    def authorize(
        self,
        tool_name: str,
        input: object = None,
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
        stop: StopSignal | None = None,
        key: str | None = None,
        tool_call_id: str | None = None,
    ) -> Authorization:
        """
        Decides about a call, records the decision, and waits for a person if a policy requires that, without running
        anything: for tools that another program runs. Record the result with `tool_call`. `stop` ends the wait for approval.
        Raises ToolBlockedError if the tool may not run.
        """
        request = Request(
            tool_name,
            _reader(input),
            _nothing,
            risk_signals,
            rules or Rules(),
            stop,
            key=key,
            tool_call_id=tool_call_id,
            args=[input],
        )
        return authorize_call(self.guarding, request)

    async def aauthorize(
        self,
        tool_name: str,
        input: object = None,
        *,
        risk_signals: Sequence[str] = (),
        rules: Rules | None = None,
        stop: StopSignal | None = None,
        key: str | None = None,
        tool_call_id: str | None = None,
    ) -> Authorization:
        """The same for asyncio."""
        request = Request(
            tool_name,
            _reader(input),
            _nothing,
            risk_signals,
            rules or Rules(),
            stop,
            key=key,
            tool_call_id=tool_call_id,
            args=[input],
        )
        return await aauthorize_call(self.guarding, request)

    def continue_call(self, approval_id: str, tool: Callable[..., T]) -> T:
        """
        Continues a call of the current run that waits for a person, with the arguments that were approved. `tool`: the guarded
        tool. It runs once for an approval, in one of all processes, and only under the policy for which the person approved.
        Raises ToolBlockedError as the tool itself does: `approval_pending` as long as no person has decided.
        """
        call = self._waiting(approval_id)
        with continuing(self.core, call):
            return tool(*(call.args or ()), **call.named)

    async def acontinue_call(self, approval_id: str, tool: Callable[..., Awaitable[T]]) -> T:
        """The same for asyncio."""
        call = self._waiting(approval_id)
        with continuing(self.core, call):
            return await tool(*(call.args or ()), **call.named)

    def _waiting(self, approval_id: str) -> OpenCall:
        current = current_of(self.core)
        call = current.scope.state.open_calls.get(approval_id) if current else None
        if call is None:
            raise LookupError(
                f"No call of the current run waits for approval {approval_id}: resume the handle that was made after the call."
            )
        if call.is_over:
            raise ToolBlockedError("approval_used", call.tool_name, approval_id=approval_id)
        if call.args is None:
            raise LookupError(f"The handle has no arguments of {call.tool_name}: call the tool again yourself.")
        return call


def _reader(input: object) -> Callable[[], object]:
    return input if callable(input) else lambda: input


def _nothing() -> None:
    """An authorized call runs nothing here: another program runs the tool."""
