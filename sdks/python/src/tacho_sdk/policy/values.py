"""
Values of a condition: None, bool, str, int (CEL's int), float (CEL's double), list, dict with text keys, Timestamp, Duration
and TypeName. Lists and dicts are copies, so no host object is reachable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from .limits import EVALUATION_STEPS
from .position import units
from .times import Duration, Timestamp

if TYPE_CHECKING:
    from .history.run_history import RunHistory


@dataclass(frozen=True)
class TypeName:
    """The result of `type(x)`."""

    name: str


Value = Union[None, bool, str, int, float, "list[Any]", "dict[str, Any]", Timestamp, Duration, TypeName]


class Failure:
    """
    An evaluation error as a value: `||`, `&&`, `all` and `exists` ignore errors that cannot change their result. The
    message quotes the condition, never a fact, because it is recorded where inputs are not allowed.
    """

    __slots__ = ("message", "offset")

    def __init__(self, message: str, offset: int = -1) -> None:
        self.message = message
        # In characters of the source, or -1 if the facts are invalid.
        self.offset = offset


NO_HISTORY = Failure("the history of the run is not known")


class Unreadable(Failure):
    """
    A place of the input that conditions cannot read. Not a failure of the condition: it counts as matched at every severity.
    """

    __slots__ = ()


class UnreadableRead(Exception):
    """Raised where an unreadable place inside a list or a map must be compared, so that no operator can ignore it."""


class Refusal:
    """Why an operator or function has no result for these operands. The calling node adds the position."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


NO_OVERLOAD = Refusal("this operation does not exist for values of these types")
OUT_OF_RANGE = Refusal("the result is out of range")

_INT_MAX = 2**63 - 1
_INT_MIN = -(2**63)


def int_or_refusal(value: int) -> int | Refusal:
    return value if _INT_MIN <= value <= _INT_MAX else OUT_OF_RANGE


class OutOfSteps(Exception):
    """Raised, not returned, so that no operator can ignore it."""

    def __init__(self) -> None:
        super().__init__(f"the evaluation needs more than {EVALUATION_STEPS} steps")


class Scope:
    """State of one evaluation: its facts, loop variables and remaining steps."""

    __slots__ = ("fact", "history", "left", "locals")

    def __init__(self, fact: Mapping[int, Value | Failure], history: RunHistory | None = None) -> None:
        self.fact = fact
        self.history = history
        self.locals: dict[int, Value] = {}
        self.left = EVALUATION_STEPS

    def spend(self, steps: int) -> None:
        """
        Spends steps before the work is done. One step is one operation in a loop, one compared or copied element, or 32
        UTF-16 units of a text that is read or written.
        """
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps

    def spend_text(self, *texts: str) -> None:
        self.spend(sum(map(units, texts)) >> 5)


Step = Callable[[Scope], "Value | Failure"]


def is_int(value: object) -> bool:
    return type(value) is int


def type_of(value: Value) -> str:
    """The CEL name of a value's type."""
    if value is None:
        return "null_type"
    names: dict[type, str] = {
        str: "string",
        float: "double",
        int: "int",
        bool: "bool",
        list: "list",
        dict: "map",
        Timestamp: "google.protobuf.Timestamp",
        Duration: "google.protobuf.Duration",
    }
    return names.get(type(value), "type")
