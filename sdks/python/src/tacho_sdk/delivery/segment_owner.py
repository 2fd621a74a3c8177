"""The owner of a spool segment: a process. The segment's name begins with the host, the number and the start of the process."""

from __future__ import annotations

import os
import re
import socket
import time

# A segment untouched for this long has no owner.
_STALE_SECONDS = 60.0
# Two start times measured for one process differ by less.
_START_SPREAD_MS = 5_000
# How a segment's name begins: host, number and start of its process, and an id. Other files in the folder are the user's own.
_NAME = re.compile(r"[\w-]*\.\d{1,10}\.\d{1,16}\.[\w-]+", re.ASCII)


class Process:
    """Identifies this process in the names of its segments."""

    def __init__(self) -> None:
        self.host = re.sub(r"[^\w-]", "-", socket.gethostname(), flags=re.ASCII)
        self.reset()

    def reset(self) -> None:
        self.pid = os.getpid()
        self.started_ms = time.time_ns() // 1_000_000
        # Segments of all its clients.
        self.owned: set[str] = set()

    @property
    def prefix(self) -> str:
        return f"{self.host}.{self.pid}.{self.started_ms}"


PROCESS = Process()


def is_segment(name: str, suffix: str) -> bool:
    return name.endswith(suffix) and _NAME.fullmatch(name[: -len(suffix)]) is not None


def is_ours(status: os.stat_result) -> bool:
    """Whether this user wrote the file. We must not send files of others in a shared folder with our key."""
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def is_orphan(name: str, age: float) -> bool:
    """Whether the process in a segment's name is dead."""
    if age > _STALE_SECONDS:
        return True
    host, pid, started, *_ = [*name.split("."), "", "", ""]
    if host != PROCESS.host or not re.fullmatch(r"\d{1,10}", pid, re.ASCII):
        return False
    # In a container, every main process has the same pid.
    if int(pid) == PROCESS.pid:
        return abs(int(started) - PROCESS.started_ms) > _START_SPREAD_MS if started.isdecimal() else False
    if os.name == "nt":
        return False  # On Windows, signal 0 ends the process.
    try:
        os.kill(int(pid), 0)
        return False
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
