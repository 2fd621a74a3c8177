import type { Condition } from './evaluation/condition.ts'
import { factReader, OWN_NAME } from './input/facts.ts'
import { positionAt } from './language/position.ts'
import { Failure, type FactReader, OutOfSteps, Scope, Unreadable } from './evaluation/value.ts'
import { isShort } from './language/syntax.ts'
import { VARIABLE_NAMES, type Facts } from './language/variables.ts'

/**
 * `failsClosed`: the input cannot be read, or the condition ran out of steps, which only a large input causes. It then
 * counts as a match, whatever the policy's `onError` says.
 */
export type Evaluation =
  | { readonly ok: true; readonly matched: boolean }
  | { readonly ok: false; readonly message: string; readonly failsClosed?: boolean }

const NAME = VARIABLE_NAMES.indexOf('tool.name')

/** Evaluates a condition. Never throws, keeps no state, and does bounded work. The message contains no facts. */
export function evaluate(condition: Condition, facts: Facts): Evaluation {
  return evaluateWith(condition, factReader(facts))
}

/** The same, with facts that several conditions share. */
export function evaluateWith(
  { run, source, names, tool }: Pick<Condition, 'run' | 'source' | 'names' | 'tool'>,
  { fact, history }: FactReader,
): Evaluation {
  try {
    const name = tool === undefined ? undefined : fact(NAME)
    if (name !== tool && isShort(name)) return { ok: true, matched: false }
    const isOfServer = names.has('tool.server')
    const read = isOfServer ? (slot: number) => fact(slot === NAME ? OWN_NAME : slot) : fact
    const result = run(new Scope({ fact: read, history }))
    if (typeof result === 'boolean') return { ok: true, matched: result }
    if (!(result instanceof Failure)) return { ok: false, message: 'the condition must be true or false' }
    if (result instanceof Unreadable) return { ok: false, message: result.message, failsClosed: true }
    return { ok: false, message: result.offset < 0 ? result.message : located(result, source) }
  } catch (error) {
    if (error instanceof OutOfSteps) return { ok: false, message: error.message, failsClosed: true }
    return { ok: false, message: 'the condition could not be evaluated' }
  }
}

function located({ message, offset }: Failure, source: string): string {
  const { line, column } = positionAt(source, offset)
  return `line ${line}, column ${column}: ${message}`
}
