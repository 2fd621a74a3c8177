"""Data that a host records about a run: the payload of a SCORE, and its tags, metadata and end user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol, TypedDict

from ..exact import exact_number, exact_text

ScoreValue = float | bool | str


class ScoreDetails(TypedDict, total=False):
    """Further parameters of `Tacho.score`."""

    event_id: str | None
    author: str | None
    id: str | None
    agent_id: str | None
    agent_name: str | None


class _Recording(Protocol):
    def record(self, event_type: str, label: str, payload: Mapping[str, object] | None = None) -> str | None: ...


class Described:
    """Records tags, metadata and the end user of a run. Lists filter by them, and usage is summed up by them."""

    def tag(self: _Recording, *tags: str) -> str | None:
        """Adds tags to the run."""
        return self.record("RUN_TAGS", "run", {"runTags": list(tags)})

    def metadata(self: _Recording, **values: str | float | bool) -> str | None:
        """Adds facts to the run, such as its task. The latest value of a key counts."""
        return self.record("RUN_TAGS", "run", {"runMetadata": values})

    def user(self: _Recording, user_id: str) -> str | None:
        """Records the end user for whom the agent works. The first that a run names counts."""
        return self.record("RUN_TAGS", "run", {"userId": user_id})


# The service accepts no other name, because filters compare names with these signs.
_NAME = re.compile(r"[^<>=\s](?:[^<>=]{0,62}[^<>=\s])?")
_NUMBER_MAX = 1e9


def score_payload(
    name: object, value: object, comment: object, event_id: object, author: object
) -> tuple[str, dict[str, object]] | str:
    """The name and the payload, or the reason why this is not a score."""
    text = exact_text(name)
    if text is None or not _NAME.fullmatch(text):
        return "its name must be a text of 1 to 64 characters, without < > = and outer spaces"
    plain = _value_of(value)
    if plain is None:
        return "its value must be a number from -1e9 to 1e9, True, False, or a text"
    details = {"comment": comment, "targetEventId": event_id, "author": author}
    known = {key: one for key, one in ((key, exact_text(one)) for key, one in details.items()) if one}
    return text, {"name": text, "value": plain, **known}


def _value_of(value: object) -> ScoreValue | None:
    if type(value) is bool:
        return value
    number = exact_number(value)
    # Infinity and NaN are not within the limit.
    if number is not None:
        return number if abs(number) <= _NUMBER_MAX else None
    return exact_text(value) or None
