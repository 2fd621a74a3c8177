import { checkTypes } from './language/check.ts'
import { type Condition, conditionOf, type ConditionStore } from './evaluation/condition.ts'
import { checkConstants } from './evaluation/constants.ts'
import { POLICY_LIMITS } from './limits.ts'
import { parse } from './language/parse.ts'
import { type Fault, inOrder, type Position, positionAt } from './language/position.ts'
import { checkRules } from './language/rules.ts'
import type { Node } from './language/syntax.ts'
import { SyntaxFault } from './language/tokens.ts'
import { isDynamic, showType } from './language/types.ts'

export type { Condition, Fault, Position }

export type Compiled =
  | { readonly ok: true; readonly condition: Condition }
  | { readonly ok: false; readonly faults: readonly Fault[] }

let store: ConditionStore | undefined

/** Caches checked conditions: in a process that decides once, checking takes most of the time. */
export function keepConditionsIn(givenStore: ConditionStore | undefined): void {
  store = givenStore
}

/**
 * Parses a condition and checks it against the profile: names, types, patterns, limits, and a boolean result.
 * Never throws. Faults point into the original source, in source order; a failure has at least one.
 * @param ofLabels whether the condition may read `tool.output` (history/tool-labels.ts).
 */
export function compileCondition(source: string, ofLabels = false): Compiled {
  try {
    return compile(source, ofLabels)
  } catch (error) {
    // Recursion is bounded, but the caller may have used most of the stack.
    const message =
      error instanceof RangeError ? 'the condition is nested too deeply' : 'the condition cannot be compiled'
    return { ok: false, faults: [{ message, position: positionAt('', 0) }] }
  }
}

function compile(source: string, ofLabels: boolean): Compiled {
  const refuse = (message: string, start = 0, end?: number): Compiled => ({
    ok: false,
    faults: [{ message, position: positionAt(source, start, end) }],
  })
  if (typeof source !== 'string')
    return { ok: false, faults: [{ message: 'the condition must be a string', position: positionAt('', 0) }] }
  const most = POLICY_LIMITS.sourceChars
  if (source.length > most) return refuse(`the condition must have at most ${most} characters`, most, source.length)
  if (!source.isWellFormed()) return refuse('the condition must be well-formed Unicode')
  const keptTree = ofLabels ? undefined : store?.get(source)
  if (keptTree) return { ok: true, condition: keptTree }

  let root
  try {
    root = parse(source)
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error
    return refuse(error.message, error.start, error.end)
  }
  const wrong = checkRules(root, source, ofLabels)
  if (wrong.length > 0) return { ok: false, faults: wrong }

  const faults: Fault[] = []
  const addFault = ({ start, end }: Node, message: string): void => {
    faults.push({ message, position: positionAt(source, start, end) })
  }
  const type = checkTypes(root, addFault)
  if (faults.length === 0) checkConstants(root, addFault)
  if (faults.length > 0) return { ok: false, faults: inOrder(faults) }
  if (type.name !== 'bool') {
    const hint = isDynamic(type) ? 'compare it with a value, for example == true' : `this is ${showType(type)}`
    return refuse(`a condition must be true or false; ${hint}`, 0, source.length)
  }
  const condition = conditionOf(source, root)
  if (!ofLabels) store?.add(source, root)
  return { ok: true, condition }
}
