"""
The message of a policy to the model, the approver and the record. It is in the policy's description, after the
first line that begins with "Message:".
"""

from __future__ import annotations

import re

from .limits import MESSAGE_CHARS

_START = re.compile(r"(?:^|(?<=[\n\r\u2028\u2029]))Message:[ \t]*")
# White space as in JavaScript, whose \s is narrower than Python's.
_SPACE = re.compile("[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")


def message_of(description: object) -> str | None:
    """The message of a policy with this description: one line; None if it has none."""
    start = _START.search(description) if isinstance(description, str) else None
    if start is None or not isinstance(description, str):
        return None
    text = _SPACE.sub(" ", description[start.end() :]).strip(" ")
    return text[: MESSAGE_CHARS - 1] + "…" if len(text) > MESSAGE_CHARS else text or None
