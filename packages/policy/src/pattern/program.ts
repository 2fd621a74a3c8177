/**
 * A compiled pattern as numbers, so that it can be stored in a file: the first instruction; FIELDS numbers for each
 * instruction (code, next instruction, argument, place of its characters); then the characters: the number of ranges,
 * and the ranges.
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
