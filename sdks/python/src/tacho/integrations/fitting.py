"""
Checks the arguments of a model against the hints of a function, before policies judge them: with pydantic where it is
installed, as frameworks do, else only simple hints. What is converted here is what policies judge and what the function gets.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from ..guarding.arguments import is_context, signature_of
from ..recording.plain import read_safely

_SIMPLE = (str, int, float, bool, list, dict)


class Unfit(Exception):
    """The message is for the model."""


def fitted(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the function gets them. Raises Unfit."""
    signature = signature_of(function)
    try:
        signature.bind(**given)
    except TypeError as error:
        raise Unfit(str(error)) from None
    hints: dict[str, Any] = read_safely(lambda: typing.get_type_hints(_body_of(function), include_extras=True), {})
    fit = dict(given)
    for name, value in given.items():
        parameter = signature.parameters.get(name)
        if name in hints and parameter is not None and parameter.kind not in _VARIABLE and not is_context(value):
            fit[name] = _fit(name, hints[name], value)
    return fit


_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


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
        place = ".".join(str(part) for part in (name, *first["loc"]))
        raise Unfit(f"{place}: {first['msg']}") from None


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
    kinds = {typing.get_origin(part) or part for part in parts}
    return kinds if kinds <= {*_SIMPLE, type(None)} else set()
