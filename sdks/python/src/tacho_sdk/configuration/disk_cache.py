"""Keeps the last valid configuration in a file, for hosts that start while the service is down."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
import time
from collections.abc import Callable

from ..inner_class import inner_class

# Twice the largest answer that is read.
_FILE_BYTES_MAX = 64 * 1_048_576
# Tolerance, because the clock may have been set back since the file was written.
_CLOCK_SECONDS = 300


@inner_class
class Kept:
    etag: str | None
    confirmed_at: float
    """Unix time in seconds."""
    body: object
    """The body as the service sent it. It is checked again when it is read."""


class DiskCache:
    """
    The file is signed, because a 304 confirms only its tag: otherwise another program could change the policies and keep
    the tag. `secret`: made of address and key; a file with another signature is ignored.
    """

    def __init__(self, file: str, secret: Callable[[], str], max_age: float, warn: Callable[[str], None]) -> None:
        """`max_age`: in seconds; an older file is not used."""
        self._file = file
        self._max_age = max_age
        self._written_at = 0.0
        self._secret = secret
        self._warn = warn

    def read(self) -> Kept | None:
        """Returns None if there is no usable file."""
        try:
            status = os.stat(self._file)
            # A pipe or a device could be read forever.
            if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES_MAX:
                return None
            with open(self._file, encoding="utf-8") as file:
                stored = json.load(file)
            etag, confirmed_at, body = stored.get("etag"), stored.get("confirmedAt"), stored.get("body")
            if stored.get("signature") != self._signature_of(etag, confirmed_at, body):
                return None
            if not -_CLOCK_SECONDS <= time.time() - confirmed_at <= self._max_age:
                self._warn("The configuration of the file is too old to be used.")
                return None
            return Kept(etag if isinstance(etag, str) else None, confirmed_at, body)
        except Exception:
            return None

    @property
    def is_due(self) -> bool:
        """Whether the time in the file is old enough to be written again."""
        return time.time() - self._written_at > self._max_age / 48

    def write(self, new_configuration: Kept) -> None:
        """Replaces the whole file. Never raises."""
        self._written_at = time.time()
        temporary = f"{self._file}.{secrets.token_hex(8)}"
        signature = self._signature_of(new_configuration.etag, new_configuration.confirmed_at, new_configuration.body)
        text = json.dumps(
            {
                "signature": signature,
                "etag": new_configuration.etag,
                "confirmedAt": new_configuration.confirmed_at,
                "body": new_configuration.body,
            }
        )
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, self._file)
        except OSError as error:
            self._warn(f"The configuration could not be saved to its file ({type(error).__name__}).")

    def _signature_of(self, etag: object, confirmed_at: object, body: object) -> str:
        signed = json.dumps([etag, confirmed_at, body]).encode()
        return hmac.new(self._secret().encode(), signed, hashlib.sha256).hexdigest()
