"""The arguments of one call of a tool: bound as Python binds them, and detached from what the caller still holds."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..exact import is_flat

# Classes of frameworks, by package, whose instances are passed to tools and are not the model's input.
_CONTEXTS = frozenset(
    [
        ("pydantic_ai", "RunContext"),
        ("agents", "RunContextWrapper"),
        ("langchain", "ToolRuntime"),
        ("langgraph", "ToolRuntime"),
        ("langgraph", "Runtime"),
        ("mcp", "Context"),
        ("fastmcp", "Context"),
    ]
)
_POSITION = inspect.Parameter.POSITIONAL_ONLY
_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_POSITIONS = inspect.Parameter.VAR_POSITIONAL
_KEYWORDS = inspect.Parameter.VAR_KEYWORD


class Arguments:
    """Raises TypeError if the function cannot be called with them."""

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], left_out: Collection[str] = ()
    ) -> None:
        whole, first, more = unpacked(function)
        self._function = whole
        self._signature = signature_of(whole)
        self._left_out = {*left_out, *([_SELF] if is_method(whole) else [])}
        detach = _Detach()
        self._args = tuple(detach.value(one) for one in (*first, *args))
        self._named = {name: detach.value(one) for name, one in {**more, **named}.items()}
        # Bound now, because a wrong call must fail before it is decided.
        self._bound()

    def input(self) -> dict[str, Any]:
        """
        The arguments by name, with defaults, as the function gets them. If a keyword has the name of another
        parameter, it stays under the name of the parameter that takes it.
        """
        named_arguments: dict[str, Any] = {}
        parameters = self._signature.parameters
        for index, (name, value) in enumerate(self._bound().items()):
            if name in self._left_out or (index == 0 and _SELF in self._left_out) or is_context(value):
                continue
            if parameters[name].kind is _KEYWORDS:
                shown_fields = {key: one for key, one in value.items() if key not in self._left_out and not is_context(one)}
                # A key with this parameter's own name, which a model may write, must not move the other keys.
                named_arguments.update(
                    {name: shown_fields} if shown_fields.keys() & (parameters.keys() - {name}) else shown_fields
                )
            else:
                named_arguments[name] = value
        return named_arguments

    def own_input(self) -> object:
        """The input; the only argument itself if that is a dict."""
        tool_input = self.input()
        only = next(iter(tool_input.values())) if len(tool_input) == 1 else None
        return only if isinstance(only, dict) else tool_input

    def call(self) -> Any:
        """
        Calls the function. A decorator may shift positions, so a decorated function gets the values by their judged names.
        """
        if not hides_its_parameters(self._function):
            return self._function(*self._args, **self._named)
        parameters, bound_arguments = self._signature.parameters, self._bound()
        args: list[Any] = []
        named: dict[str, Any] = {}
        positions = any(parameters[name].kind is _POSITIONS and value for name, value in bound_arguments.items())
        for index, (name, value) in enumerate(bound_arguments.items()):
            kind = parameters[name].kind
            if kind is _KEYWORDS:
                named.update(value)
            elif kind is _POSITIONS:
                args.extend(value)
            elif kind is _POSITION or (kind is _EITHER and (positions or (index == 0 and name in _OBJECTS))):
                args.append(value)
            else:
                named[name] = value
        return self._function(*args, **named)

    def read(self, function: Callable[..., Any]) -> Any:
        """Calls another function with the same arguments."""
        return function(*self._args, **self._named)

    def _bound(self) -> dict[str, Any]:
        bound = self._signature.bind(*self._args, **self._named)
        bound.apply_defaults()
        return bound.arguments


# Stands for `self`; not a valid name of a parameter.
_SELF = "self, the object of a method"


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    return _signatures(function)[0]


def hides_its_parameters(function: Callable[..., Any]) -> bool:
    """Whether the shown signature is that of another function, to which a decorator passes the arguments."""
    return _signatures(function)[1]


def _signatures(function: Callable[..., Any]) -> tuple[inspect.Signature, bool]:
    try:
        return _cached_signatures(function)
    except TypeError:
        return _read_signatures(function)  # The function's object cannot be hashed.


_ANY = inspect.Signature([inspect.Parameter("args", _POSITIONS), inspect.Parameter("named", _KEYWORDS)])


def _read_signatures(function: Callable[..., Any]) -> tuple[inspect.Signature, bool]:
    try:
        shown = inspect.signature(function)
    except ValueError:
        return _ANY, False  # A builtin, such as `max`.
    if hasattr(function, "__signature__"):
        return shown, True
    if not hasattr(function, "__wrapped__") or not inspect.isroutine(function):
        return shown, False
    own_signature = inspect.signature(function, follow_wrapped=False)
    takes_any = any(parameter.kind in (_POSITIONS, _KEYWORDS) for parameter in own_signature.parameters.values())
    # Without `*args` or `**named`, Python binds by the decorated function's own names.
    return (shown, True) if takes_any else (own_signature, False)


_cached_signatures = functools.lru_cache(maxsize=1_024)(_read_signatures)


def unpacked(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Arguments in `functools.partial`, which count like any other."""
    args: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        args, named = (*function.args, *args), {**function.keywords, **named}
        function = function.func
    return function, args, named


def is_method(function: Callable[..., Any]) -> bool:
    """Whether the function is a method, whose first parameter is its object."""
    if not inspect.isfunction(function):
        return False
    inside, _, _ = function.__qualname__.rpartition(".")
    return inside != "" and not inside.endswith("<locals>") and next(iter(signature_of(function).parameters), "") in _OBJECTS


_OBJECTS = ("self", "cls")


def is_context(value: object) -> bool:
    """Whether the value is the context of a framework's run."""
    return any((kind.__module__.partition(".")[0], kind.__name__) in _CONTEXTS for kind in type(value).__mro__)


class _Detach:
    """Copies lists, dicts and tuples, also nested ones, and keeps every other object."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}

    def value(self, source: Any) -> Any:
        kind = type(source)
        if kind is not list and kind is not dict and kind is not tuple:
            return source
        known = self._copies.get(id(source))
        if known is not None:
            return known
        try:
            return self._copy(source)
        except RecursionError:
            # Too deep to be read, so the call has no hash.
            return source

    def _copy(self, source: Any) -> Any:
        if is_flat(source):
            return [*source]
        if type(source) is tuple:
            return tuple(map(self.value, source))
        copied: Any = type(source)()
        self._copies[id(source)] = copied
        if type(source) is list:
            copied.extend(map(self.value, source))
        else:
            copied.update((key, self.value(item)) for key, item in source.items())
        return copied
