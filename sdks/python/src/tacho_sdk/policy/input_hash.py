"""The hash that binds an approval to one tool and one input."""

from __future__ import annotations

import hashlib
from typing import Any

from ..exact import exact_text
from .limits import INPUT_LEVELS
from .plain_json import NotPlainJson, copy_json
from .text import number_text, quoted

_VERSION = "tacho-input-1"


def input_hash(tool_name: str, tool_input: object) -> str:
    """
    Lowercase hex SHA-256 of the RFC 8785 text of `["tacho-input-1", tool_name, given]` in UTF-8, the same in every SDK. Key
    order does not matter; None is {}. Raises NotPlainJson with the path if the input is not plain JSON, or has an int that a
    double cannot hold: two such inputs could have the same hash.
    """
    tool_input = {} if tool_input is None else tool_input
    copied = copy_json(tool_input, max_values=float("inf"), max_levels=INPUT_LEVELS)
    name = exact_text(tool_name)
    if name is None:
        raise TypeError("tool_name must be a text.")
    try:
        text = f'["{_VERSION}",{quoted(name)},{canonical(copied)}]'.encode()
    except UnicodeEncodeError:
        raise NotPlainJson([], "or the tool name is not well-formed Unicode") from None
    return hashlib.sha256(text).hexdigest()


def canonical(value: Any) -> str:
    """The RFC 8785 text of what `copy_json` returned."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        if value and set(map(type, value)) == {float}:
            return f"[{','.join(map(number_text, value))}]"
        return f"[{','.join(map(canonical, value))}]"
    # RFC 8785 orders keys by UTF-16 units.
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    return f"{{{','.join(f'{quoted(key)}:{canonical(value[key])}' for key in keys)}}}"
