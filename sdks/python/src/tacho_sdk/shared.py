"""
What all copies of the SDK in one process share: two wheels, modules that were imported anew, `importlib.reload`. A class or a
variable of a module exists once in each copy, so a run of one would not be current for another, and `except
ToolBlockedError` would miss the error of another.

The names are versioned by the number below: it changes when copies no longer fit together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")
C = TypeVar("C", bound=type)

# A module, because `sys.modules` is the only place that each copy finds.
_PLACE = "_tacho_sdk_shared_1"


def shared(name: str, make: Callable[[], T]) -> T:
    """The value that the first copy of the SDK made."""
    place = sys.modules.setdefault(_PLACE, ModuleType(_PLACE))
    value: T = place.__dict__.setdefault(name, make())
    return value


def one_class(made: C) -> C:
    """
    The class of the first copy, for `except` and `isinstance` in other copies. As long as the number stays, its constructor
    must remain compatible.
    """
    return shared(made.__qualname__, lambda: made)
