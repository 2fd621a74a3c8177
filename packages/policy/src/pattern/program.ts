/**
 * A compiled pattern as numbers, which a file can keep: the first instruction; FIELDS numbers for each instruction (its code,
 * the next one, its argument, where its characters are); then the characters: a count, and so many ranges.
 */
export type Program = Int32Array

/** Index of the first instruction. */
export const HEAD = 2
export const FIELDS = 4

// Instruction codes of @bufbuild/re2 (its class Inst); the tests compare the automaton with the library's own.
export const ALT = 1
export const ALT_MATCH = 2
export const CAPTURE = 3
export const EMPTY_WIDTH = 4
export const MATCH = 6
export const NOP = 7
export const RUNE = 8
