"""Guards toolsets of Pydantic AI where their tools get validated arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from pydantic_ai._run_context import get_current_run_context
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.toolsets import (
    AbstractToolset,
    ApprovalRequiredToolset,
    CombinedToolset,
    ExternalToolset,
    FilteredToolset,
    FunctionToolset,
    PreparedToolset,
    WrapperToolset,
)
from pydantic_core import ValidationError

import tacho_sdk as tacho_module

from ..client import Tacho
from ..guarding.asked_calls import NeverRan, record_never_ran
from ..guarding.blocked import ToolBlockedError
from ..recording.context import RunScope, acting
from ..recording.plain import read_safely
from ..shared import shared
from .border import safely
from .unguarded import Unguarded, cannot_guard, is_generator, own_method

# These toolsets keep names and arguments, and may stop a call, so the guard decides only on calls that they pass on.
_OUTER = (ApprovalRequiredToolset, FilteredToolset, PreparedToolset)
_OWN = "pydantic_ai."


def guarded_toolset(toolset: AbstractToolset[Any], client: Tacho | None, unguarded: Unguarded) -> AbstractToolset[Any]:
    if isinstance(toolset, CombinedToolset):
        return replace(toolset, toolsets=[guarded_toolset(one, client, unguarded) for one in toolset.toolsets])
    if isinstance(toolset, _OUTER) and type(toolset).__module__.startswith(_OWN):
        return replace(toolset, wrapped=guarded_toolset(toolset.wrapped, client, unguarded))
    if isinstance(toolset, GuardedToolset):
        return toolset
    if not isinstance(toolset, AbstractToolset):
        cannot_guard(unguarded, client, getattr(toolset, "__name__", type(toolset).__name__), "it is no toolset")
        return toolset
    _check(toolset, client, unguarded)
    return GuardedToolset(toolset, client, unguarded)


def _check(toolset: AbstractToolset[Any], client: Tacho | None, unguarded: Unguarded) -> None:
    for tool_part in _parts_of(toolset):
        for name, why in _refusals_of(tool_part):
            cannot_guard(unguarded, client, name, why)


def _parts_of(toolset: AbstractToolset[Any]) -> Iterator[AbstractToolset[Any]]:
    yield toolset
    inner = [toolset.wrapped] if isinstance(toolset, WrapperToolset) else getattr(toolset, "toolsets", ())
    # A toolset that a function makes for each run.
    made = getattr(toolset, "_toolset", None)
    for one in [*inner, made]:
        if isinstance(one, AbstractToolset):
            yield from _parts_of(one)


def _refusals_of(toolset: AbstractToolset[Any]) -> Iterator[tuple[str, str]]:
    kind = type(toolset)
    if isinstance(toolset, ExternalToolset):
        for definition in toolset.tool_defs:
            yield definition.name, "it runs outside of the agent, which gets only its result"
    elif method := _own_method(toolset):
        yield kind.__name__, f"its {method} may change the arguments; put guard_toolset inside of it"
    elif getattr(toolset, "process_tool_call", None) is not None:
        yield kind.__name__, "its process_tool_call may change the arguments"
    elif isinstance(toolset, FunctionToolset):
        for name, tool in toolset.tools.items():
            if is_generator(tool.function):
                yield name, "it is a generator, whose body runs after the call"
            elif str(getattr(tool.function, "__module__", "")).startswith("pydantic_ai.ext."):
                yield name, "another framework parses its arguments; guard it there"


def _own_method(toolset: AbstractToolset[Any]) -> str | None:
    """The first method that a host overrides and that runs before the tool."""
    kinds = type(toolset).__mro__
    if not any(kind.__module__.startswith(_OWN) and kind is not AbstractToolset for kind in kinds):
        # The host's own toolset runs its tools itself.
        return None
    return own_method(toolset, ("call_tool", "direct_call_tool"), "pydantic_ai")


@dataclass
class GuardedToolset(WrapperToolset[Any]):
    """Decides each call before the toolset runs it."""

    tacho: Tacho | None = None
    unguarded: Unguarded = "refuse"

    async def get_tools(self, ctx: Any) -> dict[str, Any]:
        tools = await super().get_tools(ctx)
        # Checked again, because toolsets change; allowed ones are recorded already.
        if self.unguarded != "allow":
            _check(self.wrapped, self.tacho, self.unguarded)
        for name, tool in tools.items():
            if tool.tool_def.kind == "external" and self.unguarded != "allow":
                cannot_guard(self.unguarded, self.tacho, name, "it runs outside of the agent, which gets only its result")
        return {name: replace(tool, args_validator=self._validator(name, tool.args_validator)) for name, tool in tools.items()}

    def _validator(self, name: str, validator: Any) -> Any:
        return validator if isinstance(validator, _Validator) else _Validator(name, validator, self.tacho)

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        client = self.tacho or tacho_module.client()
        inherited = super().call_tool

        async def act(**named_arguments: Any) -> Any:
            return await inherited(name, named_arguments, ctx, tool)

        scope, name_of_agent = client.core.current_scope(), read_safely(lambda: _name_of(ctx), None)
        token = _caller.set(None if scope is None else _Caller(scope, name_of_agent, ctx.tool_call_id))
        try:
            with acting(client.core, name_of_agent):
                return await client.arun_tool(
                    name, act, (), tool_args, pauses=(ApprovalRequired, CallDeferred), tool_call_id=ctx.tool_call_id
                )
        except ToolBlockedError as error:
            return error.model_text
        finally:
            _caller.reset(token)


@dataclass(frozen=True)
class _Caller:
    """The caller whose guarded call runs here."""

    scope: RunScope
    name: str | None
    call_id: str | None


_caller: ContextVar[_Caller | None] = shared("pydantic_ai_call", lambda: ContextVar("tacho_pydantic_ai", default=None))
# For each of our runs, Pydantic AI's runs with the names of their agents. The run that last asked its model is at the end.
_runs: WeakKeyDictionary[RunScope, dict[str, str | None]] = shared("pydantic_ai_runs", lambda: WeakKeyDictionary())
_RUNS_MAX = 1_000


def note_agent(client: Tacho) -> str | None:
    """
    The name for events of the agent that asks its model now; None for the run's first agent. Records a hand-over if the agent
    begins in a tool of another agent, or after it.
    """
    ctx, scope = get_current_run_context(), client.core.current_scope()
    if ctx is None or scope is None:
        return None
    name, runs, caller = _name_of(ctx), _runs.setdefault(scope, {}), _caller.get()
    is_new, key = ctx.run_id not in runs, str(ctx.run_id)
    before = next(reversed(runs.values()), name)
    call_id = None
    if caller is not None and caller.scope is scope:
        before, call_id = caller.name, caller.call_id
    runs.pop(key, None)
    runs[key] = name
    if len(runs) > _RUNS_MAX:
        del runs[next(iter(runs))]
    if is_new and name is not None and name != before:
        client.core.hand_over(scope, before or scope.agent_name, name, call_id)
    return scope.team.naming(name)


def _name_of(ctx: Any) -> str | None:
    name = getattr(ctx.agent, "name", None)
    return name if isinstance(name, str) else None


class _Validator:
    """Records arguments that do not fit, because they never reach the toolset."""

    def __init__(self, name: str, validator: Any, client: Tacho | None) -> None:
        self._name = name
        self._validator = validator
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._validator, name)

    def validate_json(self, raw_arguments: Any, **more: Any) -> Any:
        return self._validated(self._validator.validate_json, raw_arguments, more)

    def validate_python(self, raw_arguments: Any, **more: Any) -> Any:
        return self._validated(self._validator.validate_python, raw_arguments, more)

    def _validated(self, validate: Any, raw_arguments: Any, more: dict[str, Any]) -> Any:
        try:
            return validate(raw_arguments, **more)
        except ValidationError as error:
            if more.get("allow_partial") in (None, False, "off"):
                failure = error
                # Pydantic AI passes the model's id of the call only to its own method.
                caller = sys._getframe(2)
                call_id = read_safely(lambda: caller.f_locals["call"].tool_call_id, None)
                safely(self._client, lambda: self._record(failure, raw_arguments, call_id), None)
            raise

    def _record(self, error: ValidationError, raw_arguments: Any, call_id: Any) -> None:
        client = self._client or tacho_module.client()
        is_read = not any(one["type"] == "json_invalid" for one in error.errors(include_context=False))
        is_cut = client.core.asked_calls.is_cut(client.core, call_id)
        code: NeverRan = "cut" if is_cut else "unfit" if is_read else "unreadable"
        record_never_ran(client.guarding, self._name, code, str(error), raw_arguments, call_id)
