"""Times that a host passes."""

from __future__ import annotations

from datetime import datetime

from ..exact import exact_number

Moment = float | datetime
"""Unix time in seconds, as `time.time()` gives it, or a datetime."""


def unix_seconds(moment: object) -> float:
    """Raises what a faulty value raises."""
    if issubclass(type(moment), datetime):
        return moment.timestamp()  # type: ignore[attr-defined,no-any-return]
    number = exact_number(moment)
    if number is None:
        raise TypeError("a time is a number of seconds or a datetime")
    return float(number)
