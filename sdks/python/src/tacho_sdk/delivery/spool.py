"""
Stores undelivered items in files. The TypeScript SDK uses the same format, so either SDK can take over files of the other.

Each process appends lines to its own segments. The operating system has a line once `append` returns. The line then survives
the end of the process, including SIGKILL, but not a power failure. A segment is deleted when all its lines are delivered,
rejected or dropped. A process takes over the segments of dead processes. It may send delivered lines again: they have the same
ids, and the service ignores the duplicates.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ..inner_class import inner_class
from ..recording.ids import Ids
from . import process_end
from .diagnostics import Diagnostics
from .lock import QueueLock
from .segment_owner import PROCESS, is_orphan, is_ours, is_segment
from .worker import Worker

T = TypeVar("T")

# How often a client looks for segments of dead processes.
_RECOVER_SECONDS = 60.0
_SEGMENT_BYTES = 1_048_576
# Maximum size of a segment. A line that begins before `_SEGMENT_BYTES` may end behind it.
_FILE_BYTES_MAX = 2 * _SEGMENT_BYTES
# A segment is read in slices.
_SLICE_BYTES = 65_536
# How often a segment's owner shows that it is alive.
_HEARTBEAT_SECONDS = 15.0
# Windows has no O_NOFOLLOW.
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class Kept(Protocol):
    """An item of a queue. Its `json` has no line break."""

    @property
    def id(self) -> str: ...

    @property
    def json(self) -> str: ...


@inner_class
class SpoolUser:
    """A queue whose items the spool stores."""

    suffix: str
    """Ending of its segments' names."""
    is_open: Callable[[], bool]
    has_room: Callable[[], bool]
    """Half of the queue stays free for new items."""
    id_of: Callable[[dict[str, Any]], object]
    """Finds the id in the fields of a line. The result is no `str` if the line is not an item."""
    restore: Callable[[str, str, dict[str, Any]], object]
    """Queues an item that a dead process left: its id, its line and its fields."""


@dataclass(eq=False, repr=False)
class _Segment:
    file: str
    descriptor: int
    bytes: int
    pending: int = 0
    """Undelivered lines, plus one while the segment is being read."""
    is_sealed: bool = False


class Spool:
    """A client's folder. One thread shows that the client is alive, and takes over what dead processes left."""

    def __init__(self, folder: str, max_bytes: int, ids: Ids, diagnostics: Diagnostics) -> None:
        """`max_bytes`: limit for the segments of one queue."""
        self.folder = _absolute(folder)
        self.max_bytes = max_bytes
        self.ids = ids
        self.diagnostics = diagnostics
        self._keepers: list[Keeper] = []
        self._worker = Worker("tacho-spool", self._step)
        self.reset()

    def reset(self) -> None:
        """Starts without segments in a forked process: the segments belong to its parent."""
        if os.getpid() != PROCESS.pid:
            PROCESS.reset()
        self._recover_at = 0.0
        self._is_recovered = threading.Event()
        self._worker.reset()
        for keeper in self._keepers:
            keeper.reset()

    def keep(self, user: SpoolUser) -> Keeper:
        """Stores the user's queue in the folder from now on."""
        keeper = Keeper(self, user)
        self._keepers.append(keeper)
        return keeper

    def watch(self) -> None:
        """Call it when there is something to watch: a new client, or a new segment."""
        self._worker.wake()

    def ready(self, timeout: float) -> bool:
        """Waits until the queues have the items of dead processes, or are full. False after the timeout."""
        return self._worker.wake() and self._is_recovered.wait(max(0.0, timeout))

    def _step(self) -> float | None:
        keepers = [keeper for keeper in self._keepers if keeper.is_open]
        if not keepers:
            self._is_recovered.set()
            return None
        for keeper in keepers:
            keeper.show_alive()
        if time.monotonic() >= self._recover_at:
            for keeper in keepers:
                keeper.recover()
            self._recover_at = time.monotonic() + _RECOVER_SECONDS
            self._is_recovered.set()
        return _HEARTBEAT_SECONDS


class Keeper:
    """The segments of one queue. Never raises: disk errors are reported, and recording continues without the spool."""

    def __init__(self, spool: Spool, user: SpoolUser) -> None:
        self._spool = spool
        self._user = user
        self._has_failed = False
        self._segments: list[_Segment] = []
        self._attempt(_create, spool.folder)
        self.reset()

    def reset(self) -> None:
        """Closes the segments but keeps their files: in a forked process, they belong to its parent."""
        for segment in self._segments:
            self._attempt(os.close, segment.descriptor)
        self._lock = QueueLock(self._spool.diagnostics)
        self._segments = []
        self._segment_of: dict[str, _Segment] = {}
        self._current: _Segment | None = None
        self._left: Iterator[tuple[str, str, dict[str, Any]]] = self._left_by_dead_processes()

    @property
    def is_open(self) -> bool:
        return self._user.is_open() and not self._has_failed

    def append(self, item: Kept) -> None:
        """Stores an item before it is queued."""
        # Serialise without the lock, because this may mask the item.
        line = f"{item.json}\n".encode("utf-8", "replace")
        with self._lock:
            is_new = self._current is None
            self._attempt(self._append, item.id, line)
        if is_new:
            self._spool.watch()

    def finish(self, items: Sequence[Kept]) -> None:
        """Forgets items that are delivered, rejected or dropped."""
        with self._lock:
            for item in items:
                segment = self._segment_of.pop(item.id, None)
                if segment is not None:
                    self._release(segment)

    def recover(self) -> None:
        """Queues what dead processes left, while there is room."""
        while self.is_open and self._user.has_room() and not process_end.is_ending():
            item = next(self._left, None)
            if item is None:
                self._left = self._left_by_dead_processes()
                return
            self._user.restore(*item)

    def show_alive(self) -> None:
        with self._lock:
            for segment in self._segments:
                self._attempt(_touch, segment, None)

    def close(self) -> None:
        """Leaves undelivered items to the next client, also of this process: a segment with the time 0 has no owner."""
        with self._lock:
            for segment in self._segments:
                self._attempt(_touch, segment, (0, 0))
                self._attempt(os.close, segment.descriptor)
                PROCESS.owned.discard(segment.file)
            self._segments = []
            self._segment_of = {}
            self._has_failed = True

    def _append(self, id_: str, line: bytes) -> None:
        # The host may record its own id twice. The service keeps the first one.
        if id_ in self._segment_of:
            return
        segment = self._current
        if segment is None:
            segment = self._current = self._open()
        written = 0
        while written < len(line):
            written += os.write(segment.descriptor, line[written:] if written else line)
        segment.bytes += len(line)
        segment.pending += 1
        self._segment_of[id_] = segment
        if segment.bytes >= _SEGMENT_BYTES:
            self._seal(segment)

    def _open(self) -> _Segment:
        segment = self._add(self._new_file(), os.O_CREAT | os.O_EXCL)
        total = sum(one.bytes for one in self._segments)
        for oldest in self._segments[:-1]:
            if total <= self._spool.max_bytes:
                break
            total -= oldest.bytes
            self._remove(oldest)
            self._spool.diagnostics.spool = self._spool.diagnostics.spool or "full"
            self._report("spool_full", "The spool is full: its oldest items are now only in memory.")
        return segment

    def _new_file(self) -> str:
        name = f"{PROCESS.prefix}.{self._spool.ids.uuid()}{self._user.suffix}"
        return os.path.join(self._spool.folder, name)

    def _add(self, file: str, flags: int) -> _Segment:
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | _NO_LINKS | _BINARY | flags, 0o600)
        segment = _Segment(file, descriptor, os.fstat(descriptor).st_size)
        PROCESS.owned.add(file)
        self._segments.append(segment)
        return segment

    def _seal(self, segment: _Segment) -> None:
        segment.is_sealed = True
        self._current = None
        if segment.pending == 0:
            self._remove(segment)

    def _release(self, segment: _Segment) -> None:
        segment.pending -= 1
        if segment.pending > 0 or segment not in self._segments:
            return
        if segment.is_sealed:
            self._attempt(self._remove, segment)
        else:
            self._attempt(os.ftruncate, segment.descriptor, 0)
            segment.bytes = 0

    def _remove(self, segment: _Segment) -> None:
        self._segments.remove(segment)
        PROCESS.owned.discard(segment.file)
        os.close(segment.descriptor)
        try:
            os.unlink(segment.file)
        except FileNotFoundError:
            pass

    def _left_by_dead_processes(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for name in sorted(self._attempt(os.listdir, self._spool.folder) or []):
            segment = self._take_over(name)
            if segment is None:
                continue
            torn = 0
            for line in self._lines_of(segment):
                item = self._item_of(line)
                if item is None:
                    torn += 1
                elif self._is_first(item[0], segment):
                    yield item
            if torn > 0:
                self._report("spool_damaged", f"{torn} lines in the spool were unreadable.")
            with self._lock:
                self._release(segment)

    def _is_first(self, id_: str, segment: _Segment) -> bool:
        with self._lock:
            if id_ in self._segment_of or segment not in self._segments:
                return False
            self._segment_of[id_] = segment
            segment.pending += 1
            return True

    def _take_over(self, name: str) -> _Segment | None:
        """The segment of a dead process, now ours. Leaves everything else in the folder alone."""
        file = os.path.join(self._spool.folder, name)
        if not is_segment(name, self._user.suffix) or file in PROCESS.owned:
            return None
        try:
            # Read only plain files: a link or a pipe in a shared folder could name anything.
            status = os.lstat(file)
            if not stat.S_ISREG(status.st_mode) or not is_orphan(name, time.time() - status.st_mtime):
                return None
            if not is_ours(status) or status.st_size > _FILE_BYTES_MAX:
                message = "A file in the spool was left alone: it belongs to another user or is too large."
                self._report("spool_skipped", message)
                return None
            with self._lock:
                if self._has_failed:
                    return None
                mine = self._new_file()
                # If two processes try, one finds the file already renamed.
                os.rename(file, mine)
                segment = self._add(mine, 0)
                _touch(segment, None)
                segment.is_sealed = True
                segment.pending = 1
                return segment
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report("spool_skipped", f"A file in the spool was left alone ({_code_of(error)}).")
            return None

    def _lines_of(self, segment: _Segment) -> Iterator[bytes]:
        at = 0
        unread_bytes = b""
        while at < segment.bytes:
            data = self._read(segment, at)
            if not data:
                break
            at += len(data)
            *lines, unread_bytes = (unread_bytes + data).split(b"\n")
            yield from lines
        if unread_bytes:
            yield unread_bytes

    def _read(self, segment: _Segment, at: int) -> bytes:
        with self._lock:
            # After `close`, another file may have its descriptor.
            if segment not in self._segments:
                return b""
            self._attempt(os.lseek, segment.descriptor, at, os.SEEK_SET)
            return self._attempt(os.read, segment.descriptor, _SLICE_BYTES) or b""

    def _item_of(self, line: bytes) -> tuple[str, str, dict[str, Any]] | None:
        """Returns None for an incomplete line: the last one of a process that died while writing."""
        try:
            text = line.decode()
            fields = json.loads(text)
            id_ = self._user.id_of(fields) if isinstance(fields, dict) else None
            return (id_, text, fields) if isinstance(id_, str) else None
        except (ValueError, RecursionError):
            return None

    def _attempt(self, act: Callable[..., T], *arguments: Any) -> T | None:
        """Returns None if the disk fails. From then on, the spool is not used."""
        if self._has_failed:
            return None
        try:
            return act(*arguments)
        except (OSError, ValueError) as error:  # ValueError: a NUL in a path.
            self._has_failed = True
            self._spool.diagnostics.spool = "failed"
            message = f"The spool cannot be used ({_code_of(error)}): what is recorded is only in memory."
            self._spool.diagnostics.report("error", "spool_failed", message)
            return None

    def _report(self, code: str, message: str) -> None:
        self._spool.diagnostics.report("warning", code, message)


def _absolute(folder: str) -> str:
    """Makes the path absolute, because a host may change its current folder."""
    try:
        return os.path.abspath(folder)
    except OSError:
        return folder


def _create(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)


def _touch(segment: _Segment, times: tuple[float, float] | None) -> None:
    os.utime(segment.descriptor if os.utime in os.supports_fd else segment.file, times)


def _code_of(error: OSError | ValueError) -> str:
    return errno.errorcode.get(getattr(error, "errno", None) or 0, type(error).__name__)
