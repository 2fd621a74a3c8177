import type { Automaton } from './automaton.ts'
import type { Scope } from '../evaluation/value.ts'

/** A regular expression of a condition. RE2 syntax only: no backtracking, no back references. */
export type Pattern = { readonly automaton: Automaton }

/** Keyed by the literal in the condition: the check compiles the pattern, and building the condition uses it. */
const patterns = new WeakMap<object, Pattern>()

export function patternOf(literal: object): Pattern | undefined {
  return patterns.get(literal)
}

export function setPattern(literal: object, pattern: Pattern): void {
  patterns.set(literal, pattern)
}

/** True if the pattern matches anywhere in the text. */
export function matches({ automaton }: Pattern, text: string, scope: Scope): boolean {
  scope.spend((text.length >>> 1) * (1 + (automaton.size >>> 5)))
  return automaton.test(text)
}
