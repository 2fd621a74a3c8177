"""Every operator that evaluates its operands."""

from __future__ import annotations

import math
from collections.abc import Callable

from .position import units
from .times import Duration, Timestamp, duration_of, timestamp_of
from .values import NO_OVERLOAD, OUT_OF_RANGE, Refusal, Scope, Unreadable, UnreadableRead, Value, int_or_refusal

Operator = Callable[[Value, Value, Scope], "Value | Refusal"]

_DIVISION_BY_ZERO = Refusal("division by zero")
_SCALARS = (str, bool, int, float, type(None))


def negate(value: Value) -> Value | Refusal:
    if type(value) is float:
        return -value
    return int_or_refusal(-value) if type(value) is int else NO_OVERLOAD


def equal(left: Value, right: Value, scope: Scope) -> bool:
    """CEL equality: values of different types differ, except an int and a double with the same value."""
    kind = type(left)
    for side in (left, right):
        if isinstance(side, Unreadable):
            raise UnreadableRead(side.message)
    if kind is str:
        scope.spend(units(left) >> 5)  # type: ignore[arg-type]
        return type(right) is str and left == right
    if kind is int or kind is float:
        return type(right) in (int, float) and left == right
    if isinstance(left, list):
        return isinstance(right, list) and _equal_lists(left, right, scope)
    if isinstance(left, dict):
        return isinstance(right, dict) and _equal_maps(left, right, scope)
    return kind is type(right) and left == right


def _equal_lists(left: list[Value], right: list[Value], scope: Scope) -> bool:
    if len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        scope.spend(1)
        if not equal(one, other, scope):
            return False
    return True


def _equal_maps(left: dict[str, Value], right: dict[str, Value], scope: Scope) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        scope.spend(2)
        if key not in right or not equal(value, right[key], scope):
            return False
    return True


def is_in(element: Value, container: Value, scope: Scope) -> Value | Refusal:
    if isinstance(container, list):
        for other in container:
            scope.spend(1)
            if equal(element, other, scope):
                return True
        return False
    # Keys are texts. No map has another scalar as a key; any other value is an error.
    if not isinstance(container, dict) or type(element) not in _SCALARS:
        return NO_OVERLOAD
    return isinstance(element, str) and element in container


def _add(left: Value, right: Value, scope: Scope) -> Value | Refusal:
    if isinstance(left, str) and isinstance(right, str):
        scope.spend_text(left, right)
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        scope.spend(len(left) + len(right))
        return left + right
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return _or_refusal(timestamp_of(left.nanos + right.nanos))
    if isinstance(left, Duration) and isinstance(right, Timestamp):
        return _or_refusal(timestamp_of(left.nanos + right.nanos))
    if isinstance(left, Duration) and isinstance(right, Duration):
        return _or_refusal(duration_of(left.nanos + right.nanos))
    return _sum(left, right, scope)


def _subtract(left: Value, right: Value, scope: Scope) -> Value | Refusal:
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return _or_refusal(duration_of(left.nanos - right.nanos))
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return _or_refusal(timestamp_of(left.nanos - right.nanos))
    if isinstance(left, Duration) and isinstance(right, Duration):
        return _or_refusal(duration_of(left.nanos - right.nanos))
    return _difference(left, right, scope)


def _or_refusal(value: Timestamp | Duration | None) -> Value | Refusal:
    return OUT_OF_RANGE if value is None else value


def _arithmetic(ints: Callable[[int, int], int | Refusal], doubles: Callable[[float, float], float | Refusal]) -> Operator:
    """Arithmetic of two ints or two doubles: CEL never mixes them."""

    def apply(left: Value, right: Value, _scope: Scope) -> Value | Refusal:
        if type(left) is float and type(right) is float:
            return doubles(left, right)
        if type(left) is not int or type(right) is not int:
            return NO_OVERLOAD
        result = ints(left, right)
        return int_or_refusal(result) if isinstance(result, int) else result

    return apply


_sum = _arithmetic(lambda a, b: a + b, lambda a, b: a + b)
_difference = _arithmetic(lambda a, b: a - b, lambda a, b: a - b)


def _divide_ints(a: int, b: int) -> int | Refusal:
    """Rounds towards zero."""
    if b == 0:
        return _DIVISION_BY_ZERO
    return abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))


def _remainder(a: int, b: int) -> int | Refusal:
    """The remainder has the sign of the dividend."""
    if b == 0:
        return _DIVISION_BY_ZERO
    return abs(a) % abs(b) if a >= 0 else -(abs(a) % abs(b))


def _divide_doubles(a: float, b: float) -> float:
    """Divides as in IEEE 754: Python raises for zero."""
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def _ordered(holds: Callable[[float], bool]) -> Operator:
    def apply(left: Value, right: Value, scope: Scope) -> Value | Refusal:
        order = _order_of(left, right, scope)
        return NO_OVERLOAD if order is None else holds(order)

    return apply


def _order_of(left: Value, right: Value, scope: Scope) -> float | None:
    """
    Negative, 0 or positive. NaN if a double is NaN, so every comparison is false. None if the values have no order. Texts
    are compared by code points.
    """
    if type(left) in (int, float) and type(right) in (int, float):
        a, b = left, right
    elif isinstance(left, str) and isinstance(right, str):
        scope.spend_text(left)
        a, b = left, right
    elif type(left) is bool and type(right) is bool:
        a, b = left, right
    elif (isinstance(left, Duration) and isinstance(right, Duration)) or (
        isinstance(left, Timestamp) and isinstance(right, Timestamp)
    ):
        a, b = left.nanos, right.nanos
    else:
        return None
    if a == b:
        return 0
    return -1 if a < b else 1 if a > b else math.nan  # type: ignore[operator]


def _not_equal(left: Value, right: Value, scope: Scope) -> bool:
    return not equal(left, right, scope)


OPERATORS: dict[str, Operator] = {
    "==": equal,
    "!=": _not_equal,
    "<": _ordered(lambda order: order < 0),
    "<=": _ordered(lambda order: order <= 0),
    ">": _ordered(lambda order: order > 0),
    ">=": _ordered(lambda order: order >= 0),
    "in": is_in,
    "+": _add,
    "-": _subtract,
    "*": _arithmetic(lambda a, b: a * b, lambda a, b: a * b),
    "/": _arithmetic(_divide_ints, _divide_doubles),
    "%": _arithmetic(_remainder, lambda _a, _b: NO_OVERLOAD),
}
