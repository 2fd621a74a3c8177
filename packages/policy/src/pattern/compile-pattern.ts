import { RE2JSSyntaxException } from '@bufbuild/re2'
import { Automaton } from './automaton.ts'
import { compileProgram } from './compile-program.ts'
import { POLICY_LIMITS } from '../limits.ts'
import { type Pattern, setPattern } from './pattern.ts'

/**
 * Compiles the pattern of a literal, for when the condition is built. Returns an error message if the pattern is not
 * valid.
 */
export function compilePattern(literal: object, source: string): { readonly message: string } | undefined {
  const result = compiled(source)
  if ('message' in result) return result
  setPattern(literal, result)
  return undefined
}

function compiled(source: string): Pattern | { readonly message: string } {
  if (source.length > POLICY_LIMITS.patternChars) {
    return { message: `a pattern must have at most ${POLICY_LIMITS.patternChars} characters` }
  }
  if (repeatsOf(source) > POLICY_LIMITS.patternRepeats) return tooManyRepeats
  try {
    const automaton = new Automaton(compileProgram(source))
    if (automaton.size <= POLICY_LIMITS.patternInstructions) return { automaton }
  } catch (error) {
    return {
      message: error instanceof RE2JSSyntaxException ? `not an RE2 pattern: ${error.error}` : 'not an RE2 pattern',
    }
  }
  return { message: `the pattern compiles to more than ${POLICY_LIMITS.patternInstructions} instructions` }
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
