"""
What a run has done and read, for conditions: `run.labels`, `run.calls` and `origin(value)`. Bounded: 1,000 calls, inputs of
131,072 characters, and the index of values. The same as run-history.ts of the TypeScript engine.

Labels that the history adds to those of tools:
- `user`: the user said it
- `unlabelled`: it came from a tool whose output has no label
- `unknown`: a part of the history is missing, such as the values that another process of the run read
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from ...inner_class import inner_class
from ..limits import INPUT_LEVELS, INPUT_VALUES
from ..plain_json import NotPlainJson, copy_json
from .call_index import CallIndex, is_indexed
from .value_index import SOURCES_MAX, ValueIndex
from .words import TEXT_CHARS

if TYPE_CHECKING:
    from ..loops_of_calls import Judged, PastLoop

USER, UNLABELLED, UNKNOWN = "user", "unlabelled", "unknown"

NO_OUTPUT = object()
"""Stands for an output that the model does not get."""

_CALLS_MAX = 1_000
_CARRIED_CALLS_MAX = 100
_INPUT_CHARS_MAX = 131_072
_CACHED_MAX = 256
# Outputs of fewer characters are read at once.
_LATER_CHARS = 8_192
# Maximum characters of outputs that wait to be read. Beyond it, all are read at once, to bound the memory of the host.
_UNREAD_CHARS_MAX = 1_048_576
_DONE, _NOT_PLAIN = object(), object()
# Maximum number of indexes of calls by a value: each takes up to 70 kB.
_INDEXES_MAX = 4
# A separate generator, because the host may have seeded the module's.
_CHANCE = Random()
_IS_UNKNOWN = 1 << SOURCES_MAX

Later = Callable[[Callable[[], bool]], bool]
"""Calls a function in later turns of the host's loop until it returns False. Returns False outside a loop."""


@inner_class
class HistoryCall:
    """A call that ran, or that was refused."""

    tool: str
    input: Mapping[str, Any] | None
    """Input that was judged; None if it could not be read."""
    ok: bool
    """Whether it ran and did not fail."""
    decision: str
    does: Sequence[str] = ()
    """Labels of the tool's effects."""
    labels: Sequence[str] = ()
    """Labels of the tool's output."""
    output: object = NO_OUTPUT
    """Output that the model gets."""


class RunHistory:
    def __init__(self, later: Later = lambda _: False) -> None:
        """With `later`, long outputs are read in parts. The rest is read before the next value is looked up."""
        self._calls = _Calls()
        self._labels: set[str] = set()
        self._values = ValueIndex()
        self._later = later
        # Outputs that the index does not have yet, oldest first, and their characters.
        self._unread: deque[Iterator[None]] = deque()
        self._unread_chars = 0
        self._is_reading = False
        # Name of each source, by its bit.
        self._sources = [USER, UNLABELLED]
        self._origins: dict[str | float, list[str]] = {}
        # Labels by the bits of sources. The label of a source never changes.
        self._labels_of: dict[int, list[str]] = {}
        self._label_lists: dict[tuple[str, ...], list[str]] = {}
        # Shared keys of inputs. `sys.intern` would keep them forever in early releases of Python 3.12, and without the GIL.
        self._keys: dict[str, str] = {}
        self._is_continued = False
        self._sorted_labels: list[str] | None = None
        # Indexes by tool and path.
        self._indexes: dict[tuple[str | None, tuple[str, ...]], CallIndex] = {}
        # Results of the loops of conditions so far.
        self.loops: dict[PastLoop, Judged] = {}

    def continues(self, carried: Mapping[str, Any] | None) -> None:
        """Continues a run of another process. `carried`: its history; None if that process kept none."""
        self._is_continued = True
        self._labels.update((UNKNOWN,) if carried is None else carried["labels"])
        for call in () if carried is None else carried["calls"]:
            self._calls.add(call["tool"], list(call["labels"]), call["ok"], call["decision"])
        self._origins.clear()
        self._sorted_labels = None

    def add_words(self, words: object) -> None:
        """Adds words of the user."""
        self._read(words, (USER,))

    def ended(self, call: HistoryCall) -> None:
        labels = self._shared(sorted({*call.labels, *call.does}, key=_utf16))
        copied = None if call.input is None else _readable(call.input)
        if copied is not None and isinstance(copied[0], dict):
            # Share the keys: calls have the same few, and each parse of JSON makes new ones.
            if len(self._keys) >= _CACHED_MAX:
                self._keys.clear()
            copied = {self._keys.setdefault(key, key): value for key, value in copied[0].items()}, copied[1]
        self._calls.add(call.tool, labels, call.ok, call.decision, copied)
        for loop in tuple(self.loops):
            loop.advance(self)
        if call.output is not NO_OUTPUT:
            self._labels.update(call.labels)
            self._sorted_labels = None
            self._read(call.output, call.labels or (UNLABELLED,))

    def _shared(self, labels: list[str]) -> list[str]:
        """All calls with these labels share one list."""
        if len(self._label_lists) >= _CACHED_MAX:
            self._label_lists.clear()
        return self._label_lists.setdefault(tuple(labels), labels)

    @property
    def labels(self) -> list[str]:
        """Labels of all outputs that the run has read."""
        if self._sorted_labels is None:
            self._sorted_labels = sorted(self._labels, key=_utf16)
        return self._sorted_labels

    @property
    def calls(self) -> list[Any]:
        """Oldest first: dicts with `tool`, `labels`, `ok`, `decision`, and `input` unless it is too old or not known."""
        return self._calls.in_order

    def calls_of(self, tool: str) -> list[Any]:
        return self._calls.of_tool.get(tool, [])

    @property
    def forgotten_calls(self) -> int:
        return self._calls.forgotten

    @property
    def forgotten_inputs(self) -> int:
        return self._calls.forgotten + self._calls.forgotten_inputs

    def places_of(self, tool: str | None, path: tuple[str, ...], value: object) -> list[int] | None:
        """Places of the calls, of one tool or all, whose input may have the value. None: it cannot be looked up."""
        if not is_indexed(value):
            return None
        index = self._indexes.get((tool, path))
        if index is None or index.forgotten_calls != self.forgotten_calls:
            if index is None and len(self._indexes) >= _INDEXES_MAX:
                return None
            index = self._indexes[tool, path] = CallIndex(path, self.forgotten_calls)
        self._add_new(index, tool, path)
        return index.places_of(value)  # type: ignore[arg-type]

    def prepare_places(self, tool: str | None, path: tuple[str, ...]) -> None:
        """Adds the calls that the index does not have yet, outside of a decision."""
        index = self._indexes.get((tool, path))
        if index is None and len(self._indexes) < _INDEXES_MAX:
            index = self._indexes[tool, path] = CallIndex(path, self.forgotten_calls)
        # After 1,000 calls, each call removes the oldest, which makes the index invalid. A new one might never be used.
        if index is not None and index.forgotten_calls == self.forgotten_calls:
            self._add_new(index, tool, path)

    def _add_new(self, index: CallIndex, tool: str | None, path: tuple[str, ...]) -> None:
        try:
            index.add_new(self.calls if tool is None else self.calls_of(tool))
        except BaseException:
            # After an interrupt of the host, the next try would add the same calls again.
            self._indexes.pop((tool, path), None)
            raise

    @property
    def has_room_for_loops(self) -> bool:
        return len(self.loops) < _CACHED_MAX

    def remember_loop(self, loop: PastLoop, judged: Judged) -> None:
        if loop not in self.loops and not self.has_room_for_loops:
            # Remove a random one. If a host has more loops than fit, removing the oldest, or all, would leave no useful result.
            del self.loops[_CHANCE.choice(tuple(self.loops))]
        self.loops[loop] = judged

    def origin(self, value: str | float) -> list[str]:
        """The labels of the outputs in which the value occurs, and `user` if the user said it."""
        cached = self._origins.get(value)
        if cached is not None:
            return cached
        self._read_all()
        sources = self._values.find(value)
        if self._is_continued or self._values.is_full:
            sources |= _IS_UNKNOWN
        labels = self._labels_of.get(sources)
        if labels is None:
            if len(self._labels_of) >= _CACHED_MAX:
                self._labels_of.clear()
            named = [label for bit, label in enumerate(self._sources) if sources & (1 << bit)]
            named += [UNKNOWN] if sources & _IS_UNKNOWN else []
            labels = self._labels_of[sources] = sorted(named, key=_utf16)
        if len(self._origins) >= _CACHED_MAX:
            self._origins.clear()
        self._origins[value] = labels
        return labels

    def carried(self) -> dict[str, Any]:
        """State that another process of the run needs, as plain JSON. Inputs and values are not part of it."""
        newest = self._calls.in_order[-_CARRIED_CALLS_MAX:]
        calls = [{name: call[name] for name in ("tool", "labels", "ok", "decision")} for call in newest]
        return {"labels": self.labels, "calls": calls}

    def _read(self, output: object, labels: Sequence[str]) -> None:
        self._origins.clear()
        sources = 0
        for label in labels:
            sources |= self._bit_of(label)
        # A text needs no conversion.
        text = output if type(output) is str else _json_of(output)
        # `_is_reading`: a signal handler, or a process that was forked during a part. That part may never end.
        if text is None or self._is_reading:
            self._values.is_full = True
            return
        self._unread.append(self._reading(text, type(output) is not str, sources))
        self._unread_chars += len(text)
        is_long = _LATER_CHARS < self._unread_chars <= _UNREAD_CHARS_MAX
        if not is_long or not self._later(self.read_part):
            self._read_all()

    def _reading(self, text: str, is_json: bool, sources: int) -> Iterator[None]:
        value = _value_of(text) if is_json else text
        if value is _NOT_PLAIN:
            self._values.is_full = True
            return
        yield
        yield from self._values.add(self._values_in(value), sources)

    def _values_in(self, output: Any) -> Iterator[str | float]:
        """Texts and numbers in a JSON value."""
        chars = 0
        values = [output]
        while values:
            value = values.pop()
            if chars > TEXT_CHARS:
                self._values.is_full = True
                return
            if isinstance(value, str):
                chars += len(value)
                yield value
            elif isinstance(value, float):
                yield value
            elif isinstance(value, list):
                values.extend(reversed(value))
            elif isinstance(value, dict):
                values.extend(inner_part for pair in reversed(value.items()) for inner_part in reversed(pair))

    def _read_all(self) -> None:
        while self.read_part():
            pass

    def read_part(self) -> bool:
        """Reads a part of an output, in a few milliseconds. Returns whether there is more to read."""
        if self._is_reading:
            # A signal handler interrupted a part, or the process was forked during one. The part cannot continue.
            self._values.is_full = True
            return False
        self._is_reading = True
        try:
            if self._unread and next(self._unread[0], _DONE) is _DONE:
                self._unread.popleft()
        except BaseException as error:
            # BaseException, because the host may interrupt the read. The rest of this output is then never read.
            self._values.is_full = True
            if self._unread:
                self._unread.popleft()
            if not isinstance(error, Exception):
                raise
        finally:
            self._is_reading = False
        if not self._unread:
            self._unread_chars = 0
        return bool(self._unread)

    def _bit_of(self, label: str) -> int:
        """The bit of a label. 0 if there are too many labels to distinguish."""
        if label not in self._sources:
            if len(self._sources) == SOURCES_MAX:
                self._values.is_full = True
                return 0
            self._sources.append(label)
        return 1 << self._sources.index(label)


class _Calls:
    """The newest calls, in order and by tool, because conditions ask for the calls of one tool."""

    def __init__(self) -> None:
        self.in_order: list[dict[str, Any]] = []
        self.of_tool: dict[str, list[dict[str, Any]]] = {}
        # Calls that still have their input, with its number of characters.
        self._inputs: deque[tuple[dict[str, Any], int]] = deque()
        self._input_chars = 0
        self.forgotten = 0
        self.forgotten_inputs = 0

    def add(self, tool: str, labels: list[str], ok: bool, decision: str, taken: tuple[Any, int] | None = None) -> None:
        call: dict[str, Any] = {"tool": tool, "labels": labels, "ok": ok, "decision": decision}
        if taken is not None:
            call["input"], chars = taken
            self._inputs.append((call, chars))
            self._input_chars += chars
            while self._input_chars > _INPUT_CHARS_MAX:
                self._inputs[0][0].pop("input")
                self.forgotten_inputs += 1
                self._forget_input()
        self.in_order.append(call)
        self.of_tool.setdefault(tool, []).append(call)
        if len(self.in_order) > _CALLS_MAX:
            self._forget_oldest()

    def _forget_input(self) -> None:
        self._input_chars -= self._inputs.popleft()[1]

    def _forget_oldest(self) -> None:
        oldest = self.in_order.pop(0)
        self.forgotten += 1
        of_tool = self.of_tool[oldest["tool"]]
        of_tool.pop(0)
        if not of_tool:
            del self.of_tool[oldest["tool"]]
        if self._inputs and self._inputs[0][0] is oldest:
            self._forget_input()


def _utf16(text: str) -> bytes:
    """JavaScript's order of texts."""
    return text.encode("utf-16-be", "surrogatepass")


def _readable(raw_value: object) -> tuple[Any, int] | None:
    """
    The value as JSON, as a model gets it, and its number of characters. None if it has no JSON form, or is too
    large.
    """
    text = _json_of(raw_value)
    value = _NOT_PLAIN if text is None else _value_of(text)
    return None if text is None or value is _NOT_PLAIN else (value, len(text))


def _json_of(raw_value: object) -> str | None:
    try:
        return json.dumps(raw_value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None


def _value_of(text: str) -> Any:
    try:
        plain = json.loads(text, parse_int=float, parse_constant=lambda _: None)
        return copy_json(plain, max_values=10 * INPUT_VALUES, max_levels=INPUT_LEVELS)
    except (NotPlainJson, ValueError, RecursionError, OverflowError):
        return _NOT_PLAIN
