"""Internal dataclasses of the SDK. Each takes a fifth of the import time of a full dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    @dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
    def inner_class(made: type[T]) -> type[T]: ...

else:

    def inner_class(made: type[T]) -> type[T]:
        """Frozen for type checkers only. Not compared by value and not printed: for that, use `dataclass`."""
        # Without a docstring, `dataclass` would write one from the signature, which takes longest.
        made.__doc__ = made.__doc__ or made.__name__
        return dataclass(eq=False, repr=False)(made)
