"""Compiles the tree of a pattern into instructions, as RE2 does: one for each character, choice and assertion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .characters import CharacterSet
from .limits import PATTERN_INSTRUCTIONS
from .pattern_syntax import Alternatives, Assert, Assertion, BadSyntax, Capture, Repeat, Sequence, Tree


@dataclass(eq=False, repr=False)
class Instruction:
    op: Literal["fail", "match", "jump", "split", "assert", "character"]
    out: int = 0
    other: int = 0
    """The second way of a split."""
    assertion: Assertion | None = None
    characters: CharacterSet | None = None


def compile_program(tree: Tree) -> list[Instruction]:
    """
    The first instruction fails, the second one is where a match begins. Raises BadSyntax if there are too many instructions.
    """
    compiler = _Compiler()
    match = compiler.add(Instruction("match"))
    start = compiler.compile(tree, match)
    compiler.program[1] = Instruction("jump", start)
    return compiler.program


class _Compiler:
    """Compiles backwards: `then` is the instruction that follows."""

    def __init__(self) -> None:
        self.program = [Instruction("fail"), Instruction("jump")]

    def add(self, instruction: Instruction) -> int:
        # Bounds the work here; the caller checks the exact limit.
        if len(self.program) > 2 * PATTERN_INSTRUCTIONS:
            raise BadSyntax("expression too large")
        self.program.append(instruction)
        return len(self.program) - 1

    def compile(self, tree: Tree, then: int) -> int:
        match tree:
            case CharacterSet():
                return self.add(Instruction("character", then, characters=tree))
            case Assert():
                return self.add(Instruction("assert", then, assertion=tree.kind))
            case Sequence():
                if not tree.parts:
                    return self.add(Instruction("jump", then))
                for inner_tree in reversed(tree.parts):
                    then = self.compile(inner_tree, then)
                return then
            case Alternatives():
                starts = [self.compile(option, then) for option in tree.options]
                start = starts.pop()
                for one in reversed(starts):
                    start = self.add(Instruction("split", one, start))
                return start
            case Capture():
                end = self.add(Instruction("jump", then))
                return self.add(Instruction("jump", self.compile(tree.body, end)))
            case Repeat():
                return self._repeat(tree, then)

    def _repeat(self, tree: Repeat, then: int) -> int:
        body, least, most = tree.body, tree.least, tree.most
        if most == 0:
            return self.add(Instruction("jump", then))
        if most is None:
            # x{2,} is xx+, and x* is (x+)?.
            again = self.add(Instruction("split", other=then))
            start = self.program[again].out = self.compile(body, again)
            if least == 0:
                return again
            for _ in range(least - 1):
                start = self.compile(body, start)
            return start
        # x{2,4} is xx(x(x)?)?.
        start = then
        for _ in range(most - least):
            start = self.add(Instruction("split", self.compile(body, start), then))
        for _ in range(least):
            start = self.compile(body, start)
        return start
