"""The options of a client, checked and with every default filled in."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from .delivery.proxy import LOOPBACK
from .exact import exact_text
from .inner_class import inner_class
from .limits import BATCH_BYTES, CLIENT_ID_CHARS, RELEASE_CHARS, TEXT_CHARS
from .recording.mask import Masking
from .recording.payload import Capture
from .recording.text import well_formed

_KEY = re.compile(r"[\x21-\x7e]+\Z")
_MIB = 1_048_576


GivenKey = str | Callable[[], str | Awaitable[str]]
"""A function is asked at first use, and again after the service refused the key."""


@inner_class
class Settings:
    """Holds no key. Times are in seconds."""

    enabled: bool
    turned_off: bool
    """The host disabled the client. Unlike a client that a faulty option disables, it runs guarded tools."""
    replay: str | None
    """The address of a tape, which answers guarded tools."""
    base_url: str
    client_id: str
    agent_name: str
    agent_id: str | None
    has_agent: bool
    """Whether the host gave a name or an id."""
    schema_version: str | None
    released: Mapping[str, str]
    """The key of payloads in which the service looks for the agent's release; empty: none is known."""
    capture: Capture
    metadata_keys: frozenset[str]
    masking: Masking
    sample_rate: float
    max_queued_events: int
    max_queued_bytes: int
    flush_interval: float
    request_timeout: float
    flush_timeout: float
    exit_patience: float
    """How long the end of the process waits for a service that accepts nothing."""
    compress: bool
    refresh_interval: float
    configuration_file: str | None
    configuration_max_age: float
    configuration_old_after: float
    spool: str | None


@inner_class
class Resolved:
    settings: Settings
    api_key: GivenKey
    problems: list[str]
    """Faults of the options, one sentence each; those that stop recording come first."""


def resolve(options: Mapping[str, Any], new_id: str) -> Resolved:
    """
    Fills in defaults. Never raises. A faulty option is reported and gets its default; a faulty privacy option gets the
    strictest choice. Without a usable key or address the client is disabled.
    """
    fatal: list[str] = []
    problems: list[str] = []

    def text(name: str, max_chars: int) -> str | None:
        value = options.get(name)
        text = exact_text(value)
        if value is None or (text is not None and 0 < len(text) <= max_chars):
            return text
        problems.append(f"{name} must be a text of 1 to {max_chars} characters.")
        return None

    def number(name: str, default: float, least: float, most: float) -> float:
        value = options.get(name)
        if value is None:
            return default
        if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
            return value
        problems.append(f"{name} must be a number from {least} to {most}.")
        return default

    def choice(name: str, choices: Sequence[Any], fallback: Any) -> Any:
        value = options.get(name)
        if value is None:
            return choices[0]
        if any(type(value) is type(one) and value == one for one in choices):
            return value
        problems.append(f"{name} must be one of {', '.join(map(str, choices))}.")
        return fallback

    key = options.get("api_key") or os.environ.get("TACHO_API_KEY") or ""
    has_key = callable(key) or (isinstance(key, str) and _KEY.match(key) is not None)
    if not has_key and options.get("enabled") is not False:
        fatal.append("Nothing is recorded: api_key is missing or malformed. Set it, or TACHO_API_KEY.")
    # A replay's tape takes precedence over any other address, because a replay records nowhere else.
    replay = os.environ.get("TACHO_REPLAY")
    named = replay or options.get("base_url") or os.environ.get("TACHO_URL")
    base = _origin(named or "http://localhost:4680")
    if base is None:
        fatal.append("Nothing is recorded: base_url (or TACHO_URL) must be an http or https address.")
    masking = options.get("masking") or Masking()
    has_masking = isinstance(masking, Masking)
    if not has_masking:
        problems.append("masking must be a tacho_sdk.Masking: only metadata is recorded.")
    metadata_keys = options.get("metadata_keys") or ()
    has_keys = isinstance(metadata_keys, (list, tuple, set, frozenset)) and all(isinstance(name, str) for name in metadata_keys)
    if not has_keys:
        problems.append("metadata_keys must be a list of texts.")
    flush_timeout = number("flush_timeout", 5.0, 0, 600)
    release = text("release", RELEASE_CHARS) or os.environ.get("TACHO_RELEASE", "")[:RELEASE_CHARS]
    capture: Capture = choice("capture", ("full", "metadata-only"), "metadata-only")
    settings = Settings(
        enabled=choice("enabled", (True, False), False) and has_key and base is not None,
        turned_off=options.get("enabled") is False,
        replay=replay,
        base_url=base[0] if base else "",
        client_id=text("client_id", CLIENT_ID_CHARS)
        or (os.environ.get("TACHO_CLIENT_ID") or f"sdk-{new_id}")[:CLIENT_ID_CHARS],
        agent_name=text("agent_name", TEXT_CHARS) or "agent",
        agent_id=text("agent_id", TEXT_CHARS),
        has_agent=options.get("agent_name") is not None or options.get("agent_id") is not None,
        schema_version=text("schema_version", TEXT_CHARS),
        released={"release": well_formed(release)} if release else {},
        capture=capture if has_masking else "metadata-only",
        metadata_keys=frozenset(metadata_keys if has_keys else ()),
        masking=masking if has_masking else Masking(),
        sample_rate=number("sample_rate", 1.0, 0, 1),
        max_queued_events=int(number("max_queued_events", 20_000, 1, 10_000_000)),
        max_queued_bytes=int(number("max_queued_bytes", 32 * _MIB, BATCH_BYTES, 2**40)),
        # `tacho replay` follows the agent by its events, so send them at least every second.
        flush_interval=min(number("flush_interval", 1.0, 0, 3_600), 3_600.0 if replay is None else 1.0),
        request_timeout=number("request_timeout", 10.0, 0.001, 600),
        flush_timeout=flush_timeout,
        # If the host set `flush_timeout`, the process may use all of it to end.
        exit_patience=min(1.0, flush_timeout) if options.get("flush_timeout") is None else flush_timeout,
        compress=choice("compression", ("auto", "never"), "never") == "auto" and not (base and base[1]),
        refresh_interval=number("refresh_interval", 30.0, 1, 86_400),
        configuration_file=text("configuration_file", 4_096),
        configuration_max_age=number("configuration_max_age", 86_400.0, 1, 31_536_000),
        configuration_old_after=number("configuration_old_after", 300.0, 0, 31_536_000),
        # A replay reads no events from disk, and stores none there.
        spool=None if replay is not None else text("spool", 4_096),
    )
    return Resolved(settings, key if has_key else "", [*fatal, *problems])


def _origin(value: object) -> tuple[str, bool] | None:
    """The address without a trailing slash, and whether it is this machine."""
    try:
        url = urlsplit(str(value))
        if url.scheme not in ("http", "https") or not url.hostname or url.port == 0:
            return None
        host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        port = f":{url.port}" if url.port else ""
        # Keep a path before /openapi/v1, because the service may be behind a proxy.
        return f"{url.scheme}://{host}{port}{url.path.rstrip('/')}", LOOPBACK.match(url.hostname) is not None
    except ValueError:
        return None
