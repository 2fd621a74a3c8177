"""Points in time and durations, in nanoseconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
# 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z, as in google.protobuf.Timestamp.
_FIRST = -62_135_596_800 * SECOND
_LAST = 253_402_300_800 * SECOND - 1
_LONGEST = 2**63 - 1

# Maximum UTF-16 units of a text to parse as a number, time or duration.
LONGEST_NUMBER = 100


@dataclass(frozen=True)
class Timestamp:
    """A moment, as conditions compute with it."""

    nanos: int
    """Since 1970."""

    @property
    def seconds(self) -> int:
        return self.nanos // SECOND

    @property
    def milliseconds(self) -> int:
        return self.nanos // MILLISECOND


@dataclass(frozen=True)
class Duration:
    """A length of time, as conditions compute with it."""

    nanos: int


def timestamp_of(nanos: int) -> Timestamp | None:
    """None if outside the years 1 to 9999."""
    return Timestamp(nanos) if _FIRST <= nanos <= _LAST else None


def duration_of(nanos: int) -> Duration | None:
    """None if beyond 292 years: 64 bits of nanoseconds, as in other CEL engines."""
    return Duration(nanos) if -_LONGEST <= nanos <= _LONGEST else None


def timestamp_of_milliseconds(milliseconds: float) -> Timestamp | None:
    if not math.isfinite(milliseconds):
        return None
    return timestamp_of(math.floor(milliseconds) * MILLISECOND)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970 of a day of the proleptic Gregorian calendar."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of the month, each from 1."""
    days += 719_468
    era = days // 146_097
    of_era = days - era * 146_097
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day


_RFC_3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))\Z", re.ASCII)


def parse_timestamp(text: str) -> Timestamp | None:
    """RFC 3339 only, for example 2026-11-20T09:00:00.5+01:00. Digits after the nanoseconds are dropped."""
    match = _RFC_3339.match(text) if len(text) <= LONGEST_NUMBER else None
    if not match:
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    days = days_from_civil(year, month, day) if 1 <= month <= 12 else 0
    if civil_from_days(days) != (year, month, day) or hour > 23 or minute > 59 or second > 59:
        return None
    offset_hour, offset_minute = int(match[9] or 0), int(match[10] or 0)
    if offset_hour > 23 or offset_minute > 59:
        return None
    offset = (offset_hour * 60 + offset_minute) * (-60 if match[8] == "-" else 60)
    seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset
    return timestamp_of(seconds * SECOND + int((match[7] or "")[:9].ljust(9, "0")))


_UNITS = {
    "h": 3600 * SECOND,
    "m": 60 * SECOND,
    "s": SECOND,
    "ms": MILLISECOND,
    "us": 1000,
    "µs": 1000,
    "ns": 1,
}
_DURATION = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?(?:h|ms|m|s|us|µs|ns))+\Z", re.ASCII)
_DURATION_PART = re.compile(r"(\d+)(?:\.(\d*))?(h|ms|m|s|us|µs|ns)", re.ASCII)


def parse_duration(text: str) -> Duration | None:
    """A duration such as 1h30m or -1.5s."""
    if len(text) > LONGEST_NUMBER or not _DURATION.match(text):
        return None
    nanos = 0
    for whole, fraction, unit in _DURATION_PART.findall(text):
        size = _UNITS[unit]
        nanos += int(whole) * size + int(fraction or "0") * size // 10 ** len(fraction)
    return duration_of(-nanos if text.startswith("-") else nanos)


def show_timestamp(time: Timestamp) -> str:
    """Formats in UTC: 2026-11-20T08:00:00.5Z."""
    days, seconds = divmod(time.seconds, 86_400)
    year, month, day = civil_from_days(days)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{year:04}-{month:02}-{day:02}T{clock}{_fraction(time.nanos % SECOND)}Z"


def show_duration(duration: Duration) -> str:
    """Formats in seconds: 5400s, -1.5s."""
    size = abs(duration.nanos)
    return f"{'-' if duration.nanos < 0 else ''}{size // SECOND}{_fraction(size % SECOND)}s"


def _fraction(nanos: int) -> str:
    return "" if nanos == 0 else f".{nanos:09}".rstrip("0")
