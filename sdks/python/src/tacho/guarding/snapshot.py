"""Snapshots of inputs that have no hash, to see whether they changed between the decision and the call."""

from __future__ import annotations

from ..exact import exact_number, exact_text
from ..recording.plain import dump, to_plain

_LEVELS = 200


def snapshot(value: object) -> object:
    """
    Equal for equal values, of exact built-in types only, so that comparing calls no code of the host. Other objects count by
    their class, their identity and their recorded form. Raises RecursionError for an input that is nested too deeply.
    """
    seen: dict[int, int] = {}

    def taken(source: object) -> object:
        kind = type(source)
        text, number = exact_text(source), exact_number(source)
        if text is not None:
            return "text", text
        if number is not None:
            return type(number).__name__, repr(number) if type(number) is float else number
        if source is None or kind is bool:
            return source
        if kind is bytes or kind is bytearray:
            return "bytes", bytes(source)  # type: ignore[call-overload]
        if id(source) in seen:
            return "seen", seen[id(source)]
        seen[id(source)] = len(seen)
        if kind is list or kind is tuple:
            return "list", [taken(item) for item in source]  # type: ignore[attr-defined]
        if kind is dict:
            return "dict", [(taken(key), taken(item)) for key, item in source.items()]  # type: ignore[attr-defined]
        return "object", id(kind), id(source), dump(to_plain(source, _LEVELS)[0])

    return taken(value)
