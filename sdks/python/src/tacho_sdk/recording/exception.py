"""Facts of an exception that ended a run: its class, message, causes and stack, each bounded."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..exact import class_name
from .plain import cut_at_words, read_of_error

_MESSAGE_CHARS = 4_096
# The stack names the newest call last, so more of its end is kept.
_STACK_HEAD_CHARS = 4_096
_STACK_TAIL_CHARS = 12_288
_FRAMES = 64
_CAUSES = 10
# Texts for Python's errors without a message.
_UNSAID = {"CancelledError": "Its task was cancelled.", "KeyboardInterrupt": "The process was interrupted."}


def exception_details(error: BaseException) -> dict[str, object]:
    """`type`, `message`, `stack`, and `causes` if there are any, the nearest first."""
    causes = [_facts(cause) for cause in _causes_of(error)]
    details = {**_facts(error), "stack": read_of_error(lambda: _stack(error), "[unreadable]")}
    return {**details, "causes": causes} if causes else details


def exception_classes(details: object) -> dict[str, object]:
    """The details without content: the classes of the exception and its causes, with their codes."""
    if not isinstance(details, dict):
        return {}
    causes = details.get("causes")
    cause_classes = [_classes(cause) for cause in causes] if isinstance(causes, list) else []
    return {**_classes(details), **({"causes": cause_classes} if cause_classes else {})}


def _classes(facts: dict[str, object]) -> dict[str, object]:
    return {"type": facts.get("type"), **{name: facts[name] for name in ("code", "status") if name in facts}}


def _facts(error: BaseException) -> dict[str, object]:
    message = read_of_error(lambda: str.__str__(str(error)), "[unreadable]")
    return {
        "type": read_of_error(lambda: _type_of(error), class_name(error)),
        "message": cut_at_words(message or _UNSAID.get(class_name(error), ""), _MESSAGE_CHARS, 0),
        **_codes(error),
    }


def _codes(error: BaseException) -> dict[str, object]:
    """A code such as `rate_limit_exceeded`, and the status of the answer over HTTP."""
    code = read_of_error(lambda: error.code, None)  # type: ignore[attr-defined]
    codes: dict[str, object] = {}
    if (isinstance(code, str) and _CODE.match(code)) or (type(code) is int and abs(code) < 2**53):
        codes["code"] = code
    for read in _STATUSES:
        status = read_of_error(partial(read, error), None)
        if type(status) is int and 100 <= status < 600:
            return {**codes, "status": int(status)}
    return codes


_CODE = re.compile(r"[\w.:/-]{1,100}\Z", re.ASCII)
_STATUSES: tuple[Callable[[Any], object], ...] = (
    lambda error: error.status_code,
    lambda error: error.status,
    lambda error: error.response.status_code,
    lambda error: error.response.status,
)


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
    """Reads Python's own field, although a class of the host may define `__getattribute__`."""
    return BaseException.__dict__[name].__get__(error)


def _stack(error: BaseException) -> str:
    stack_of = traceback.TracebackException(type(error), error, _read("__traceback__", error), limit=-_FRAMES)
    return cut_at_words("".join(stack_of.format()), _STACK_HEAD_CHARS, _STACK_TAIL_CHARS)
