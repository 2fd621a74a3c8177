"""
Searches a text with a compiled pattern, as a lazily built deterministic automaton. A character costs at most one visit of each
instruction, cached or not.
"""

from __future__ import annotations

from collections.abc import Iterable

from .pattern_program import Instruction

# Maximum approximate size of the cache; beyond it, the cache is emptied.
_REMEMBERED = 8_192


class _State:
    """A set of pending instructions, and the known transitions by character."""

    __slots__ = ("following", "pending")

    def __init__(self, pending: frozenset[int]) -> None:
        self.pending = pending
        # None: the pattern matched before the character.
        self.following: dict[tuple[int, frozenset[str]], _State | None] = {}


_NOTHING: frozenset[str] = frozenset()
_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class Automaton:
    def __init__(self, program: list[Instruction]) -> None:
        self._program = program
        self._looks_around = any(instruction.op == "assert" for instruction in program)
        self._forget()

    @property
    def size(self) -> int:
        return len(self._program)

    def _forget(self) -> None:
        """Empties the cache. Threads that search at the same time continue with the states they have."""
        self._start = _State(frozenset({1}))
        self._states: dict[frozenset[int], _State] = {}
        self._remembered = 0

    def test(self, text: str) -> bool:
        state = self._start
        before = ""
        for character in text:
            around = _between(before, character) if self._looks_around else _NOTHING
            key = (ord(character), around)
            following = state.following[key] if key in state.following else self._learn(state, key)
            if following is None:
                return True
            state = following
            before = character
        return self._reach(state.pending, _between(before, "")) is None

    def _learn(self, state: _State, key: tuple[int, frozenset[str]]) -> _State | None:
        if self._remembered > _REMEMBERED:
            self._forget()
        pending = self._follow(state.pending, *key)
        following = None
        if pending is not None:
            following = self._states.get(pending)
            if following is None:
                following = self._states[pending] = _State(pending)
                self._remembered += 8 + len(pending)
        state.following[key] = following
        self._remembered += 4
        return following

    def _follow(self, pending: frozenset[int], point: int, around: frozenset[str]) -> frozenset[int] | None:
        """The pending set after a character, or None if the pattern matched before it."""
        active = self._reach(pending, around)
        if active is None:
            return None
        outs = {one.out for one in active if one.characters is not None and one.characters.has(point)}
        # A match can begin anywhere.
        return frozenset(outs | {1})

    def _reach(self, pending: Iterable[int], around: frozenset[str]) -> list[Instruction] | None:
        """The character instructions that are reachable without consuming a character; None if the end of the pattern is."""
        active: list[Instruction] = []
        stack = list(pending)
        seen: set[int] = set()
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self._program[at]
            match instruction.op:
                case "match":
                    return None
                case "character":
                    active.append(instruction)
                case "jump":
                    stack.append(instruction.out)
                case "split":
                    stack += (instruction.out, instruction.other)
                case "assert":
                    if instruction.assertion in around:
                        stack.append(instruction.out)
        return active


def _between(before: str, after: str) -> frozenset[str]:
    """
    The assertions that are true between two characters; empty means no character. RE2's word characters are ASCII.
    """
    holds = {"boundary" if (before in _WORD) != (after in _WORD) else "no boundary"}
    if before == "":
        holds |= {"begin text", "begin line"}
    if before == "\n":
        holds.add("begin line")
    if after == "":
        holds |= {"end text", "end line"}
    if after == "\n":
        holds.add("end line")
    return frozenset(holds)
