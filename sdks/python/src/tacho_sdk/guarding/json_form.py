"""
The JSON form of a tool's arguments, as a detached copy: what policies judge, what is hashed, shown, recorded and compared.

Models, dataclasses, dates, decimals, UUIDs, enums and NumPy values count by what they hold. Numbers stay numbers. A place
that has no exact JSON form is `Opaque`; its neighbours stay readable.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import ipaddress
import math
import pathlib
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from ..exact import are_doubles, class_name, exact_number, exact_text, is_flat
from ..policy.limits import INPUT_LEVELS
from ..policy.values import Unreadable
from ..recording.plain import Json, dump, read_safely, to_plain, whole

# Maximum values of one input. A larger input cannot be read.
_VALUES_MAX = 100_000
# Maximum arguments that are compared one by one when the whole input cannot be read.
_MEMBERS_MAX = 1_000
_TEXTS = (uuid.UUID, pathlib.PurePath, ipaddress.IPv4Address, ipaddress.IPv6Address)


class Opaque(Unreadable):
    """
    `shown`: recorded in place of the value. `trace`: equal for the same unchanged value. `source` is kept, because another
    object could otherwise get the same id.
    """

    __slots__ = ("shown", "source", "trace")

    def __init__(self, source: object, reason: str) -> None:
        super().__init__(f"a value in tool.input {reason}")
        self.shown: Json = read_safely(lambda: whole(to_plain({"value": source}, INPUT_LEVELS).value["value"]), None)
        self.source = source
        # A dict may change while it is read.
        identity: object = read_safely(lambda: _identity_of(source), None)
        self.trace = (class_name(source), identity or id(source), read_safely(lambda: dump(self.shown), ""))


def _identity_of(source: object, is_member: bool = False) -> object:
    """Identifies a value: a text or number by its content, any other object by its identity."""
    literal = exact_number(source)
    if literal is None:
        literal = exact_text(source) or (bytes(source) if type(source) is bytearray else None)  # type: ignore[assignment]
    if literal is not None or type(source) is bytes:
        return repr(literal or source)
    # Each read makes a new dict of the arguments, so compare its values.
    if type(source) is dict and not is_member and len(source) <= _MEMBERS_MAX:
        return tuple((_identity_of(key, True), _identity_of(item, True)) for key, item in source.items())
    return id(source)


class _TooLarge(Exception):
    pass


def json_form(source: object) -> Any:
    """Plain JSON with `Opaque` places. Ints stay ints. Never raises."""
    try:
        return _Form().value(source)
    except _TooLarge:
        return Opaque(source, f"has more than {_VALUES_MAX} values")
    except Exception:
        return Opaque(source, "cannot be read")


def is_readable(form: Any) -> bool:
    """Whether no place of the form is opaque."""
    if isinstance(form, dict):
        return all(map(is_readable, form.values()))
    if isinstance(form, list):
        return is_flat(form) or all(map(is_readable, form))
    return type(form) is not Opaque


def shown(form: Any) -> Json:
    """The form as it is recorded."""
    if isinstance(form, dict):
        return {key: shown(item) for key, item in form.items()}
    if isinstance(form, list):
        return [*form] if is_flat(form) else [shown(item) for item in form]
    return form.shown if type(form) is Opaque else form


def is_same(one: Any, other: Any) -> bool:
    """Whether two forms are equal. Unlike `==`, distinguishes true from 1."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if is_flat(one):
        return is_flat(other) and list(map(type, one)) == list(map(type, other)) and one == other
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(is_same, one, other))
    if type(one) is Opaque:
        return type(other) is Opaque and one.trace == other.trace
    return type(one) is type(other) and bool(one == other)


class _Form:
    def __init__(self) -> None:
        self._values = 0
        self._ancestors: set[int] = set()

    def value(self, source: object) -> Any:
        self._values += 1
        if self._values > _VALUES_MAX:
            raise _TooLarge
        if source is None or source is True or source is False:
            return source
        text = exact_text(source)
        if text is not None:
            return text if _is_well_formed(text) else Opaque(text, "is not well-formed Unicode")
        number = exact_number(source)
        if number is not None:
            return _number(number)
        try:
            return self._other(source)
        except _TooLarge:
            raise
        except Exception:
            return Opaque(source, f"is a {class_name(source)} that cannot be read")

    def _other(self, source: object) -> Any:
        if isinstance(source, enum.Enum):
            return self.value(source.value)
        if isinstance(source, decimal.Decimal):
            return _decimal(source)
        if isinstance(source, (datetime.datetime, datetime.date, datetime.time)):
            return source.isoformat()
        if isinstance(source, datetime.timedelta):
            return _number(source.total_seconds())
        if isinstance(source, _TEXTS):
            return str(source)
        if type(source).__module__.partition(".")[0] == "numpy":
            return self._numpy(source)
        return self._container(source)

    def _container(self, source: object) -> Any:
        if id(source) in self._ancestors:
            return Opaque(source, "contains itself")
        if len(self._ancestors) >= INPUT_LEVELS:
            return Opaque(source, f"is nested more than {INPUT_LEVELS} levels deep")
        self._ancestors.add(id(source))
        try:
            return self._inside(source)
        finally:
            self._ancestors.discard(id(source))

    def _inside(self, source: object) -> Any:
        kind: Any = type(source)  # mypy does not see that a class can be hashed.
        if _reads_otherwise(kind):
            return Opaque(source, f"is a {class_name(source)}, which has its own way to read what it holds")
        if isinstance(source, Mapping):
            return self._fields(source, source.items())
        if isinstance(source, (list, tuple, deque)):
            if len(source) > _VALUES_MAX - self._values:
                raise _TooLarge
            if kind is list and are_doubles(source):
                self._values += len(source)
                return [*source]
            return [self.value(item) for item in source]
        if isinstance(source, (set, frozenset)):
            # Sorted, so that sets of the same values have the same form.
            items = [self.value(item) for item in source]
            return sorted(items, key=_order) if all(map(is_readable, items)) else Opaque(source, "is a set of other values")
        fields = _fields_of(source)
        if fields is None:
            return Opaque(source, f"is a {class_name(source)}, not plain JSON")
        return self.value(fields["root"]) if _is_root(source, fields) else self._fields(source, fields.items())

    def _fields(self, source: object, pairs: Iterable[tuple[object, object]]) -> Any:
        fields: dict[str, Any] = {}
        for name, item in pairs:
            key = name.value if isinstance(name, enum.Enum) else name
            text = str(key) if isinstance(key, uuid.UUID) or type(key) is int else exact_text(key)
            if text is None or not _is_well_formed(text):
                return Opaque(source, "has a key that is not a text")
            if text in fields:
                return Opaque(source, "has two keys with the same text")
            fields[text] = self.value(item)
        return fields

    def _numpy(self, source: Any) -> Any:
        if getattr(source, "size", 1) > _VALUES_MAX - self._values:
            raise _TooLarge
        plain = source.tolist()
        return self.value(plain) if plain is not source else Opaque(source, "is a NumPy value without a JSON form")


# Methods by which tools read a list, a tuple or a dict.
_READERS = ("__getitem__", "__iter__", "__missing__", "get", "items", "keys", "values", "copy", "pop")


@functools.lru_cache(maxsize=1_024)
def _reads_otherwise(kind: type) -> bool:
    """Whether a list, tuple or dict of this class may show a tool something else than it contains."""
    if not issubclass(kind, (list, tuple, dict)):
        return False
    own_members = [vars(base) for base in kind.__mro__ if base.__module__ not in ("builtins", "collections", "typing")]
    return any(reader in members for members in own_members for reader in _READERS)


def _is_well_formed(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(number: int | float) -> Any:
    try:
        double = float(number)
    except OverflowError:
        return Opaque(number, "is larger than the numbers of JSON")
    if not math.isfinite(double):
        return Opaque(number, "is a number that JSON does not have")
    return number if double == number else Opaque(number, "is an integer that JSON's numbers cannot hold; pass it as a text")


def _decimal(source: decimal.Decimal) -> Any:
    if not source.is_finite():
        return Opaque(source, "is a number that JSON does not have")
    double = float(source)
    # Readers of the JSON get this double, which must have the same digits.
    if not math.isfinite(double) or decimal.Decimal(repr(double)) != source:
        return Opaque(source, "is a decimal that JSON's numbers cannot hold; pass it as a text")
    return int(double) if double.is_integer() and abs(double) < 2**53 else double


def _fields_of(source: object) -> dict[str, Any] | None:
    """The fields of a model, a dataclass or a record, without running its own serialiser, which may leave fields out."""
    kind = type(source)
    for known in ("__pydantic_fields__", "model_fields", "__fields__"):
        if isinstance(getattr(kind, known, None), Mapping):
            held, extra = vars(source), getattr(source, "__pydantic_extra__", None)
            return {**{name: held[name] for name in getattr(kind, known) if name in held}, **(extra or {})}
    if dataclasses.is_dataclass(source):
        return {field.name: getattr(source, field.name) for field in dataclasses.fields(source)}
    names = getattr(kind, "__struct_fields__", None)
    if names is None and hasattr(kind, "__attrs_attrs__"):
        names = [attribute.name for attribute in kind.__attrs_attrs__]
    return None if names is None else {name: getattr(source, name) for name in names}


def _is_root(source: object, fields: dict[str, Any]) -> bool:
    return bool(getattr(type(source), "__pydantic_root_model__", False)) and list(fields) == ["root"]


def _order(form: Any) -> str:
    return dump(form)
