"""CEL's time getters, in UTC and in time zones."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import cache

from ..inner_class import inner_class
from .times import Duration, Timestamp, civil_from_days, days_from_civil

Zone = Callable[[int], int]
"""Milliseconds to add to a time in milliseconds, so that its UTC fields show the local time of a zone."""


def UTC(_milliseconds: int) -> int:
    return 0


_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)\Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# datetime has no local times before year 1 and after year 9999.
_FIRST_MS = -62_135_000_000_000
_LAST_MS = 253_402_000_000_000


@cache
def zone_of(name: str) -> Zone | None:
    """An IANA name ("Europe/Berlin") or a fixed offset ("+02:00"); None for anything else."""
    fixed = _OFFSET.match(name)
    if fixed:
        hours, minutes = int(fixed[2]), int(fixed[3])
        if hours > 23 or minutes > 59:
            return None
        offset = (hours * 60 + minutes) * (-60_000 if fixed[1] == "-" else 60_000)
        return lambda _milliseconds: offset
    if name.lower() == "utc":
        return UTC
    known = _names().get(name.lower())
    if known is None:
        return None
    zone = zoneinfo.ZoneInfo(known)

    def offset_at(milliseconds: int) -> int:
        time = _EPOCH + timedelta(milliseconds=min(max(milliseconds, _FIRST_MS), _LAST_MS))
        local = time.astimezone(zone).utcoffset() or timedelta()
        return round(local.total_seconds()) * 1_000

    return offset_at


@cache
def _names() -> dict[str, str]:
    """Zone names ignore case."""
    return {name.lower(): name for name in zoneinfo.available_timezones()}


@inner_class
class Shown:
    """The local time of a zone."""

    days: int
    """Days since 1970."""
    milliseconds: int
    """Milliseconds of the day."""

    @property
    def date(self) -> tuple[int, int, int]:
        return civil_from_days(self.days)


def shown_in(zone: Zone, time: Timestamp) -> Shown:
    milliseconds = time.milliseconds
    return Shown(*divmod(milliseconds + zone(milliseconds), 86_400_000))


# Months, days of the month and days of the year count from 0, `getDate` from 1.
TIMESTAMP_FIELDS: dict[str, Callable[[Shown], int]] = {
    "getFullYear": lambda shown: shown.date[0],
    "getMonth": lambda shown: shown.date[1] - 1,
    "getDate": lambda shown: shown.date[2],
    "getDayOfMonth": lambda shown: shown.date[2] - 1,
    "getDayOfWeek": lambda shown: (shown.days + 4) % 7,
    "getDayOfYear": lambda shown: shown.days - days_from_civil(shown.date[0], 1, 1),
    "getHours": lambda shown: shown.milliseconds // 3_600_000,
    "getMinutes": lambda shown: shown.milliseconds // 60_000 % 60,
    "getSeconds": lambda shown: shown.milliseconds // 1_000 % 60,
    "getMilliseconds": lambda shown: shown.milliseconds % 1_000,
}


def _whole(size: int) -> Callable[[Duration], int]:
    return lambda span: span.nanos // size if span.nanos >= 0 else -(-span.nanos // size)


# The whole duration in this unit, rounded towards zero.
DURATION_FIELDS: dict[str, Callable[[Duration], int]] = {
    "getHours": _whole(3_600_000_000_000),
    "getMinutes": _whole(60_000_000_000),
    "getSeconds": _whole(1_000_000_000),
    "getMilliseconds": _whole(1_000_000),
}
