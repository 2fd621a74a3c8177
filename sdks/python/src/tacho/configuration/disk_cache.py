"""Keeps the last valid configuration in a file, for hosts that start while the service is down."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass

# Twice the largest answer that is read.
_FILE_BYTES_MAX = 64 * 1_048_576


@dataclass(frozen=True)
class Kept:
    etag: str | None
    confirmed_at: float
    """Unix time in seconds."""
    body: object
    """As the service sent it. It is checked again when it is read."""


class DiskCache:
    """
    The file is signed, because a 304 confirms only its tag: otherwise another program could change the policies and keep
    the tag. `secret`: made of address and key; a file with another signature is ignored.
    """

    def __init__(self, file: str, secret: str, warn: Callable[[str], None]) -> None:
        self._file = file
        self._secret = secret.encode()
        self._warn = warn

    def read(self) -> Kept | None:
        """None if there is no usable file."""
        try:
            status = os.stat(self._file)
            # A pipe or a device could be read forever.
            if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES_MAX:
                return None
            with open(self._file, encoding="utf-8") as file:
                kept = json.load(file)
            etag, confirmed_at, body = kept.get("etag"), kept.get("confirmedAt"), kept.get("body")
            if kept.get("signature") != self._signature_of(etag, body) or not isinstance(confirmed_at, (int, float)):
                return None
            return Kept(etag if isinstance(etag, str) else None, confirmed_at, body)
        except Exception:
            return None

    def write(self, kept: Kept) -> None:
        """Replaces the whole file. Never raises."""
        temporary = f"{self._file}.{secrets.token_hex(8)}"
        signature = self._signature_of(kept.etag, kept.body)
        text = json.dumps({"signature": signature, "etag": kept.etag, "confirmedAt": kept.confirmed_at, "body": kept.body})
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, self._file)
        except OSError as error:
            self._warn(f"The configuration could not be saved to its file ({type(error).__name__}).")

    def _signature_of(self, etag: object, body: object) -> str:
        # The time is not signed: a wrong one changes only the age that is shown.
        return hmac.new(self._secret, json.dumps([etag, body]).encode(), hashlib.sha256).hexdigest()
