import { RE2JSSyntaxException } from '@bufbuild/re2'
import { Automaton } from './automaton.ts'
import { POLICY_LIMITS } from './limits.ts'
import { compileProgram, type Program } from './program.ts'
import type { Scope } from './value.ts'

/** A regular expression of a condition. RE2 syntax only: no backtracking, no back references. */
export type Pattern = { readonly automaton: Automaton }

/** Programs over the processes of a program that ends after one decision: compiling takes most of its time. */
export interface PatternStore {
  /** What `add` got from an earlier process. */
  get(source: string): Program | undefined
  /** Only valid patterns within their limits. */
  add(source: string, program: Program): void
}

let store: PatternStore | undefined

export function keepPatternsIn(given: PatternStore | undefined): void {
  store = given
}

/** The pattern, or an error message. */
function compilePattern(source: string): Pattern | { readonly message: string } {
  if (source.length > POLICY_LIMITS.patternChars) {
    return { message: `a pattern must have at most ${POLICY_LIMITS.patternChars} characters` }
  }
  if (repeatsOf(source) > POLICY_LIMITS.patternRepeats) return tooManyRepeats
  const kept = store?.get(source)
  if (kept) return { automaton: new Automaton(kept) }
  let program
  try {
    program = compileProgram(source)
  } catch (error) {
    return {
      message: error instanceof RE2JSSyntaxException ? `not an RE2 pattern: ${error.error}` : 'not an RE2 pattern',
    }
  }
  const automaton = new Automaton(program)
  if (automaton.size <= POLICY_LIMITS.patternInstructions) {
    store?.add(source, program)
    return { automaton }
  }
  return { message: `the pattern compiles to more than ${POLICY_LIMITS.patternInstructions} instructions` }
}

/** By the literal in the condition: its check compiles it, and its build uses it. */
const compiled = new WeakMap<object, ReturnType<typeof compilePattern>>()

export function patternOf(literal: object, source: string): ReturnType<typeof compilePattern> {
  const known = compiled.get(literal) ?? compilePattern(source)
  compiled.set(literal, known)
  return known
}

export const tooManyRepeats = {
  message: `the sum of all counts in {…} of all patterns must be at most ${POLICY_LIMITS.patternRepeats}`,
}

/**
 * Sum of the counts in `{n}` and `{n,m}`. RE2 compiles `x{200}` as 200 times x, and one x such as \pL takes 63 µs, so this
 * limit is checked before compiling. Counts in classes and quotes are included; none is missed.
 */
export function repeatsOf(source: string): number {
  let sum = 0
  for (const [, least = '0', most = ''] of source.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) sum += Number(most || least)
  return sum
}

export const tooManyFolded = {
  message: `the ranges of all patterns with (?i) must have at most ${POLICY_LIMITS.patternFoldedChars} characters together`,
}

/** The first and last characters that have another case. */
const FOLDED_FIRST = 0x41
const FOLDED_LAST = 0x1e943
/** The last character of a range, after its `-`: `\x{…}`, `\x…`, octal, another escape, or the character itself. */
const RANGE_END = /-(?=\\x\{([\da-f]+)\}|\\x([\da-f]{2})|\\([0-7]{1,3})|\\?([^]))/giu

/**
 * The most characters that RE2 folds for the ranges of a pattern with `(?i)`. One range up to U+1E943 takes 40 ms, so this
 * limit is checked before compiling. Every `-` counts as a range from the first character on; none is missed.
 */
export function foldedCharsOf(source: string): number {
  if (!/\(\?[a-z-]*i/i.test(source)) return 0
  let sum = 0
  for (const [, hex, byte, octal, itself = ''] of source.matchAll(RANGE_END)) {
    const digits = hex ?? byte
    const last = digits ? parseInt(digits, 16) : octal ? parseInt(octal, 8) : (itself.codePointAt(0) ?? 0)
    sum += Math.max(0, Math.min(last, FOLDED_LAST) - FOLDED_FIRST + 1)
  }
  return sum
}

/** True if the pattern matches anywhere in the text. */
export function matches({ automaton }: Pattern, text: string, scope: Scope): boolean {
  scope.spend((text.length >>> 1) * (1 + (automaton.size >>> 5)))
  return automaton.test(text)
}
