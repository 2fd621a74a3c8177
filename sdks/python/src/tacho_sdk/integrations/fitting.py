"""
Checks the arguments of a model against the hints of a function, before policies judge them: with pydantic where it is
installed, as frameworks do, else only simple hints. What is converted here is what policies judge and what the function gets.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection
from typing import Any

from ..guarding.arguments import is_context, signature_of
from ..recording.plain import read_safely

_SIMPLE = (str, int, float, bool, list, dict)


class Unfit(Exception):
    """The message is for the model."""


def fitted(function: Callable[..., Any], arguments: dict[str, Any], injected: Collection[str] = ()) -> dict[str, Any]:
    """The arguments as the function gets them. Raises Unfit. `injected`: arguments that no model wrote."""
    signature = signature_of(function)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise Unfit(str(error)) from None
    hints = _hints_of(function)
    catch_all = next((one.name for one in signature.parameters.values() if one.kind is inspect.Parameter.VAR_KEYWORD), None)
    others = _rest_hints(hints.pop(catch_all, _NO_HINT)) if catch_all is not None else {}
    fitted_arguments = dict(arguments)
    for name, value in arguments.items():
        is_named = name in signature.parameters and name != catch_all
        hint = hints.get(name, _NO_HINT) if is_named else others.get(name, others.get(None, _NO_HINT))
        if hint is not _NO_HINT and name not in injected and not is_context(value):
            fitted_arguments[name] = _fit(name, hint, value)
    return fitted_arguments


_NO_HINT = object()


def _rest_hints(hint: Any) -> dict[str | None, Any]:
    """The hints of `**rest` by name. The key None: the hint for any name."""
    if not str(typing.get_origin(hint)).endswith(".Unpack"):
        return {None: hint}
    return read_safely(lambda: dict[Any, Any](typing.get_type_hints(typing.get_args(hint)[0])), dict[Any, Any]())


def _hints_of(function: Any) -> dict[str, Any]:
    if isinstance(function, type):
        # Fields of a model or a data class, and the hints of `__init__` itself.
        return {**_resolved(function), **_resolved(vars(function).get("__init__", function))}
    return _resolved(_body_of(function))


def _resolved(source: Any) -> dict[str, Any]:
    """A hint that cannot be resolved, such as one of an import for type checkers only, does not affect the others."""
    hints: dict[str, Any] = {}
    known: dict[str, Any] | None = read_safely(lambda: typing.get_type_hints(source, include_extras=True), None)
    if known is not None:
        return {**known}
    names: dict[str, Any] = read_safely(lambda: {**source.__annotations__}, {})
    module = sys.modules.get(str(getattr(source, "__module__", None)))
    scope = getattr(source, "__globals__", None) or vars(module or typing)
    for name, hint in names.items():
        one: Any = types.SimpleNamespace(__annotations__={name: hint})
        hints |= read_safely(functools.partial(typing.get_type_hints, one, scope, include_extras=True), dict[str, Any]())
    return hints


def _body_of(function: Any) -> Any:
    while hasattr(function, "func"):
        function = function.func
    function = inspect.unwrap(function)
    return function if inspect.isroutine(function) else getattr(type(function), "__call__", function)  # noqa: B004


def _fit(name: str, hint: Any, value: Any) -> Any:
    try:
        import pydantic
    except ImportError:
        return _fit_simple(name, hint, value)
    try:
        adapter = pydantic.TypeAdapter(hint)
    except Exception:
        return value  # A class that pydantic does not know.
    try:
        return adapter.validate_python(value)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(name_part) for name_part in (name, *first["loc"]))
        raise Unfit(f"{place}: {first['msg']}") from None
    except Exception as error:
        # A validator of the host raised this error.
        raise Unfit(f"{name}: {type(error).__name__}") from None


def _fit_simple(name: str, hint: Any, value: Any) -> Any:
    kinds = _kinds_of(hint)
    if not kinds or (type(value) in kinds) or (value is None and type(None) in kinds):
        return value
    if float in kinds and type(value) is int:
        return float(value)
    if int in kinds and type(value) is float and value.is_integer():
        return int(value)
    for kind in (int, float):
        if kind in kinds and type(value) is str:
            number = read_safely(lambda kind=kind: kind(value), None)  # type: ignore[misc]
            if number is not None:
                return number
    expected = " or ".join(sorted(kind.__name__ for kind in kinds))
    raise Unfit(f"{name}: expected {expected}, got {type(value).__name__}")


def _kinds_of(hint: Any) -> set[type]:
    """Empty for a hint that is not simple."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _kinds_of(typing.get_args(hint)[0])
    parts = typing.get_args(hint) if origin in (typing.Union, types.UnionType) else (hint,)
    kinds = {typing.get_origin(union_part) or union_part for union_part in parts}
    return kinds if kinds <= {*_SIMPLE, type(None)} else set()
