"""What is recorded of an exception that ended a run: its class, message, causes and stack, each bounded."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

from ..exact import class_name
from .plain import cut_at_words, read_of_error

_MESSAGE_CHARS = 4_096
# The stack names the newest call last, so more of its end is kept.
_STACK_HEAD_CHARS = 4_096
_STACK_TAIL_CHARS = 12_288
_FRAMES = 64
_CAUSES = 10
# Errors of Python without a message, in words.
_UNSAID = {"CancelledError": "Its task was cancelled.", "KeyboardInterrupt": "The process was interrupted."}


def exception_details(error: BaseException) -> dict[str, object]:
    """`type`, `message`, `stack`, and `causes` if there are any, the nearest first."""
    causes = [_facts(cause) for cause in _causes_of(error)]
    details = {**_facts(error), "stack": read_of_error(lambda: _stack(error), "[unreadable]")}
    return {**details, "causes": causes} if causes else details


def exception_classes(details: object) -> dict[str, object]:
    """The part without content: the classes."""
    if not isinstance(details, dict):
        return {}
    causes = details.get("causes")
    kept = [{"type": cause["type"]} for cause in causes] if isinstance(causes, list) else []
    return {"type": details.get("type"), **({"causes": kept} if kept else {})}


def _facts(error: BaseException) -> dict[str, object]:
    message = read_of_error(lambda: str.__str__(str(error)), "[unreadable]")
    return {
        "type": read_of_error(lambda: _type_of(error), class_name(error)),
        "message": cut_at_words(message or _UNSAID.get(class_name(error), ""), _MESSAGE_CHARS, 0),
    }


def _type_of(error: BaseException) -> str:
    module = str(type(error).__module__)
    name = str(type(error).__qualname__)
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    seen = {id(error)}
    for _ in range(_CAUSES):
        cause = _read("__cause__", error)
        if cause is None and not _read("__suppress_context__", error):
            cause = _read("__context__", error)
        if cause is None or id(cause) in seen:
            return
        seen.add(id(cause))
        yield cause
        error = cause


def _read(name: str, error: BaseException) -> Any:
    """Python's own field: a class of the host can define `__getattribute__`."""
    return BaseException.__dict__[name].__get__(error)


def _stack(error: BaseException) -> str:
    told = traceback.TracebackException(type(error), error, _read("__traceback__", error), limit=-_FRAMES)
    return cut_at_words("".join(told.format()), _STACK_HEAD_CHARS, _STACK_TAIL_CHARS)
