"""
Hashes an input so that a reader of its masked form can check that it is the approved one. A seal replaces each masked member
before the input is hashed, so a reader with the masked input and the seals computes the same hash, but learns nothing about the
masked values. The key of the seals contains the API key, so nobody without it can try card numbers until one matches.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from ..exact import exact_text
from .input_hash import canonical
from .limits import INPUT_LEVELS
from .plain_json import copy_json

_VERSION = "tacho-input-2"
_KEY_NAME = b"tacho-seal-1"
# The member of a seal. An input's own object with this member is sealed too, so that it cannot pass for a seal.
_SEAL = "tachoSeal"


def seal_key(api_key: str) -> bytes:
    """The key of all seals of a client."""
    return hmac.digest(api_key.encode(), _KEY_NAME, "sha256")


def sealed_input(key: bytes, tool_name: str, tool_input: object, shown: object) -> tuple[dict[str, str], str]:
    """
    The seals of an input, by JSON Pointer, and its hash: hex SHA-256 of the RFC 8785 text of `["tacho-input-2", tool_name, …]`,
    where a seal stands in place of each smallest value that differs in `shown`.
    """
    name = exact_text(tool_name)
    if name is None:
        raise TypeError("tool_name must be a text.")
    seals: dict[str, str] = {}
    sealed = _sealed(key, _copied(tool_input), _copied(shown), "", seals)
    return seals, hashlib.sha256(canonical([_VERSION, name, sealed]).encode()).hexdigest()


def _copied(raw: object) -> Any:
    return copy_json({} if raw is None else raw, max_values=float("inf"), max_levels=INPUT_LEVELS)


def _sealed(key: bytes, value: Any, shown: Any, pointer: str, seals: dict[str, str]) -> Any:
    if _differs(value, shown) or (isinstance(value, dict) and [*value] == [_SEAL]):
        seal = hmac.new(key, canonical([pointer, value]).encode(), "sha256").hexdigest()
        seals[pointer] = seal
        return {_SEAL: seal}
    if isinstance(value, list):
        return [_sealed(key, item, shown[n], f"{pointer}/{n}", seals) for n, item in enumerate(value)]
    if isinstance(value, dict):
        return {name: _sealed(key, item, shown[name], f"{pointer}/{_escaped(name)}", seals) for name, item in value.items()}
    return value


def _differs(value: Any, shown: Any) -> bool:
    """Whether the value itself differs. For an object or a list, only its keys or its length count."""
    if isinstance(value, Mapping) and isinstance(shown, Mapping):
        return value.keys() != shown.keys()
    if isinstance(value, list) and isinstance(shown, list):
        return len(value) != len(shown)
    return type(value) is not type(shown) or bool(value != shown)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
