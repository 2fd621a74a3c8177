import { RE2JS, RE2JSSyntaxException } from '@bufbuild/re2'
import { Automaton } from './automaton.ts'
import { POLICY_LIMITS } from './limits.ts'
import type { Scope } from './value.ts'

/** A regular expression of a condition. RE2 syntax only: no backtracking, no back references. */
export type Pattern = { readonly automaton: Automaton }

/** The pattern, or an error message. */
export function compilePattern(source: string): Pattern | { readonly message: string } {
  if (source.length > POLICY_LIMITS.patternChars) {
    return { message: `a pattern must have at most ${POLICY_LIMITS.patternChars} characters` }
  }
  if (repeatsOf(source) > POLICY_LIMITS.patternRepeats) return tooManyRepeats
  let automaton
  try {
    automaton = new Automaton(RE2JS.compile(source).re2().prog)
  } catch (error) {
    return {
      message: error instanceof RE2JSSyntaxException ? `not an RE2 pattern: ${error.error}` : 'not an RE2 pattern',
    }
  }
  if (automaton.size <= POLICY_LIMITS.patternInstructions) return { automaton }
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

/** True if the pattern matches anywhere in the text. */
export function matches({ automaton }: Pattern, text: string, scope: Scope): boolean {
  scope.spend((text.length >>> 1) * (1 + (automaton.size >>> 5)))
  return automaton.test(text)
}
