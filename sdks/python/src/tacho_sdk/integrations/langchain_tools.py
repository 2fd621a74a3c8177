"""Guards tools of LangChain where they call their function."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import typing
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, Tool, ToolException

import tacho_sdk as tacho

from ..client import Tacho
from ..guarding.asked_calls import record_never_ran
from ..guarding.blocked import ToolBlockedError
from ..guarding.json_form import is_readable, json_form
from ..recording.plain import read_safely
from ..shared import shared
from .border import Bordered
from .fitting import Unfit, fitted
from .unguarded import GUARDED, Unguarded, cannot_guard, is_generator, own_method

try:
    from langgraph.errors import GraphBubbleUp
except ImportError:
    PAUSES: tuple[type[BaseException], ...] = ()
else:
    # Raised by `interrupt`, and for a Command to a parent graph.
    PAUSES = (GraphBubbleUp,)

T = TypeVar("T", bound=BaseTool)

# In the metadata of a guarded tool, so that the handler leaves its calls to the guard.
GUARDED_KEY = "tacho_guarded"
_CLIENT = "__tacho_client__"
# A call of such a tool that no guard begins waits for a person, whom middleware or a node asks.
GUARDED_NAMES: set[str] = shared("langchain_names", set)
_NAMES_MAX = 10_000
# Parameters that LangChain fills itself, in place of what a model wrote.
_GIVEN = {"func": "callbacks", "coroutine": "callbacks", "_run": "run_manager", "_arun": "run_manager"}


class _Refused(ToolException):
    """A guarded call that may not run; the message is for the model."""


def guard_tool(tool: T, client: Tacho | None, unguarded: Unguarded) -> T:
    name = getattr(tool, "name", None) or type(tool).__name__
    if isinstance(tool, dict):
        name = str(tool.get("name") or tool.get("type"))
    why = _why_not(tool)
    if why is not None:
        cannot_guard(unguarded, client, name, why)
        return tool
    if len(GUARDED_NAMES) < _NAMES_MAX:
        GUARDED_NAMES.add(name)
    guarded = copy.copy(tool)
    for tool_part in _parts_of(tool):
        function = getattr(tool, tool_part)
        if function is None or getattr(function, GUARDED, False):
            continue
        is_async = tool_part in ("coroutine", "_arun")
        call_of = functools.partial(_call_of, tool, function, _injected(tool, tool_part, function))
        # Bypasses the model's own __setattr__, which accepts only fields. The function stays bound to the tool, so an
        # asynchronous method that calls the synchronous one is one guarded call.
        object.__setattr__(guarded, tool_part, (_guarded_async if is_async else _guarded)(client, name, function, call_of))
    object.__setattr__(guarded, "__class__", _class_of(type(tool)))
    guarded.metadata = {**(tool.metadata or {}), GUARDED_KEY: True}
    object.__setattr__(guarded, _CLIENT, client)
    if not isinstance(tool.handle_tool_error, _Handler):
        guarded.handle_tool_error = _Handler(tool.handle_tool_error)
    return guarded


def _parts_of(tool: BaseTool) -> list[str]:
    """The members that hold the tool's function: fields of a tool that is made from functions, methods of a class."""
    kind = type(tool)
    made_of = next((base_class for base_class in (StructuredTool, Tool) if isinstance(tool, base_class)), BaseTool)
    own_parts = [("_run", "func", kind._run is made_of._run), ("_arun", "coroutine", kind._arun is made_of._arun)]
    parts = [field if is_inherited else method for method, field, is_inherited in own_parts]
    # The inherited asynchronous method calls the synchronous one.
    return [tool_part for tool_part in parts if tool_part.startswith("_") or tool_part in made_of.model_fields]


def _why_not(tool: object) -> str | None:
    if not isinstance(tool, BaseTool):
        return "it is no tool of LangChain; a function needs @tool, and a tool of the provider runs there"
    if method := own_method(tool, ("invoke", "ainvoke", "run", "arun"), "langchain_core"):
        return f"it has its own {method}, which may call anything"
    if any(is_generator(getattr(tool, tool_part)) for tool_part in _parts_of(tool)):
        return "it is a generator, whose body runs after the call"
    return None


class _Called(Bordered):
    """The tool that is called, and the model's id of the call."""

    name: str | None = None
    call_id: Any = None
    is_taken = False

    def __init__(self, tool: BaseTool, tool_input: object, call_id: Any) -> None:
        self._tacho: Tacho | None = vars(tool).get(_CLIENT)
        self.name = tool.name
        self.call_id = call_id
        self._given = tool_input

    def end(self, error: BaseException | None, answer: object) -> None:
        """Records a call whose arguments did not fit, so that it never reached the tool's function."""
        if self.is_taken or (error is not None and not isinstance(error, Exception)):
            return
        client = self._tacho or tacho.client()
        answer_text = str(getattr(answer, "content", answer) if error is None else error)
        record_never_ran(client.guarding, str(self.name), "unfit", answer_text, self._given, self.call_id)


_called: ContextVar[_Called | None] = shared("langchain_call", lambda: ContextVar("tacho_langchain_call", default=None))


def _take_called() -> tuple[str | None, Any]:
    """Takes the called tool, so that calls which the tool itself makes do not count as this call."""
    called = _called.get()
    if called is None or called.is_taken:
        return None, None
    called.is_taken = True
    return called.name, called.call_id


@functools.cache
def _class_of(kind: type[BaseTool]) -> type[BaseTool]:
    """A class that notes the model's id of a call: LangChain passes it to `run` and `arun`, not to the tool's function."""
    if hasattr(kind, GUARDED):
        return kind

    @functools.wraps(kind.run)
    def run(self: BaseTool, *args: Any, **named: Any) -> Any:
        called = _Called(self, args[0] if args else named.get("tool_input"), named.get("tool_call_id"))
        token = _called.set(called)
        try:
            answer = kind.run(self, *args, **named)
        except BaseException as error:
            called.end(error, None)
            raise
        finally:
            _called.reset(token)
        called.end(None, answer)
        return answer

    @functools.wraps(kind.arun)
    async def arun(self: BaseTool, *args: Any, **named: Any) -> Any:
        called = _Called(self, args[0] if args else named.get("tool_input"), named.get("tool_call_id"))
        token = _called.set(called)
        try:
            answer = await kind.arun(self, *args, **named)
        except BaseException as error:
            called.end(error, None)
            raise
        finally:
            _called.reset(token)
        called.end(None, answer)
        return answer

    members = {"run": run, "arun": arun, GUARDED: True, "__module__": kind.__module__, "__doc__": kind.__doc__}
    make: Any = type(kind)
    made: type[BaseTool] = make(kind.__name__, (kind,), members)
    return made


def _guarded(given_client: Tacho | None, name: str, function: Callable[..., Any], call_of: _CallOf) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any, **named: Any) -> Any:
        client, call = given_client or tacho.client(), call_of(args, named)
        called, call_id = _take_called()
        try:
            more: dict[str, Any] = {"left_out": call.left_out, "pauses": PAUSES, "tool_call_id": call_id}
            return client.run_tool(called or name, call.function, call.args, call.named, **more)
        except ToolBlockedError as error:
            raise _Refused(error.model_text) from error

    setattr(guarded, GUARDED, True)
    return guarded


def _guarded_async(given_client: Tacho | None, name: str, function: Callable[..., Any], call_of: _CallOf) -> Callable[..., Any]:
    @functools.wraps(function)
    async def guarded(*args: Any, **named: Any) -> Any:
        client, call = given_client or tacho.client(), call_of(args, named)
        called, call_id = _take_called()
        try:
            more: dict[str, Any] = {"left_out": call.left_out, "pauses": PAUSES, "tool_call_id": call_id}
            return await client.arun_tool(called or name, call.function, call.args, call.named, **more)
        except ToolBlockedError as error:
            raise _Refused(error.model_text) from error

    setattr(guarded, GUARDED, True)
    return guarded


@dataclass(frozen=True)
class _Call:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    named: dict[str, Any]
    left_out: frozenset[str] = frozenset()


_CallOf = Callable[[tuple[Any, ...], dict[str, Any]], _Call]


def _call_of(
    tool: BaseTool, function: Callable[..., Any], injected: dict[str, bool], args: tuple[Any, ...], named: dict[str, Any]
) -> _Call:
    if isinstance(tool, Tool) and len(args) == 1:
        # The model does not see this parameter's name.
        name = _only_name(tool)
        return _Call(lambda **given: function(given.pop(name), **given), (), {**named, name: args[0]}, frozenset(named))
    hidden = frozenset(name for name, is_always in injected.items() if is_always or not is_readable(json_form(named.get(name))))
    # Without a schema, LangChain shows the model the function's hints, but does not check them. A single text may come without
    # a name.
    if tool.args_schema is None and not args:
        try:
            named = fitted(function, named, hidden)
        except Unfit as error:
            raise _Refused(f"TypeError: The arguments do not fit {tool.name}: {error}") from error
    return _Call(function, args, named, hidden)


def _only_name(tool: Tool) -> str:
    if tool.args_schema is None:
        return "input"
    names: list[str] = read_safely(lambda: list(tool.args), [])
    return names[0] if len(names) == 1 else "input"


def _injected(tool: BaseTool, tool_part: str, function: Callable[..., Any]) -> dict[str, bool]:
    """
    Injected arguments. True: always injected by LangChain, in place of what a model wrote, so they are not judged.
    Others are left out only if no model could have written them, because they have no JSON form.
    """
    named = read_safely(lambda: set(inspect.signature(function).parameters), set[str]())
    injected = dict.fromkeys({_GIVEN[tool_part]} & named, True)
    # LangChain fills only the first RunnableConfig, and only if it is not optional.
    configs = [name for name, hint in _hints_of(function, include_extras=False).items() if hint is RunnableConfig]
    injected.update(dict.fromkeys(configs[:1], True))
    hints: dict[str, Any] = {}
    schema = tool.args_schema
    for source in (schema, function):
        if isinstance(source, type) or callable(source):
            hints.update(_hints_of(source))
    for name, hint in hints.items():
        kinds = [tool_part if isinstance(tool_part, type) else type(tool_part) for tool_part in _parts_of_hint(hint)]
        if any(_is_marker(kind) for kind in kinds):
            # LangChain injects parameters with its own markers; a model can write those with another marker.
            injected[name] = any(_is_marker(kind) and kind is not InjectedToolArg and _is_own(kind) for kind in kinds)
    return injected


def _hints_of(source: Any, include_extras: bool = True) -> dict[str, Any]:
    hints: dict[str, Any] = read_safely(lambda: typing.get_type_hints(source, include_extras=include_extras), {})
    return hints


def _is_marker(kind: type) -> bool:
    return any(base.__name__ in ("InjectedToolArg", "_DirectlyInjectedToolArg") for base in kind.__mro__)


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("langchain", "langchain_core", "langgraph")


def _parts_of_hint(hint: Any) -> list[Any]:
    parts = [typing.get_origin(hint) or hint, *getattr(hint, "__metadata__", ())]
    for inner in typing.get_args(hint):
        if inner not in parts:
            parts.extend(_parts_of_hint(inner))
    return parts


class _Handler:
    """Answers the model with a refusal; the tool's own handling of its errors stays as it is."""

    def __init__(self, tool_function: Any) -> None:
        self._own = tool_function

    def __bool__(self) -> bool:
        # LangChain asks this while it handles the error.
        return isinstance(sys.exc_info()[1], _Refused) or bool(self._own)

    def __call__(self, error: ToolException) -> Any:
        tool_function = self._own
        if isinstance(error, _Refused):
            return str(error)
        if callable(tool_function):
            return tool_function(error)
        if isinstance(tool_function, str):
            return tool_function
        return error.args[0] if error.args else "Tool execution error"
