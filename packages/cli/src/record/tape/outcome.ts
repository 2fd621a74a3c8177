/** Describes the decisions of a replay, and the differences of two tapes. */
import { differencesOf, NOTHING_IGNORED, requestDifferences, type Difference, type Ignored } from './compare.ts'
import { stepText, type Cursor } from './cursor.ts'
import type { DecisionStep, TapeStep } from './tape.ts'

/**
 * Compares decisions, which the cursor does not see, because an agent does not ask for them. The order of parallel
 * calls does not matter.
 */
export function decisionDeparture(cursor: Cursor, tape: readonly TapeStep[], now: readonly TapeStep[]): void {
  if (cursor.departure) return
  // Reversed, because most are removed in order, and removing from the end is fast.
  const left = now.filter((step) => step.kind === 'decision').reverse()
  for (const step of tape) {
    if (step.kind !== 'decision' || step.within !== undefined) continue
    const same = left.findLastIndex((one) => decisionDifferences(step, one).length === 0)
    if (same !== -1) {
      left.splice(same, 1)
      continue
    }
    const other = left.findLast(({ tool }) => tool === step.tool)
    const text = other ? `now it is ${stepText(other)}` : 'now nothing is decided'
    return cursor.depart(step, text, other ? decisionDifferences(step, other) : [])
  }
  const more = left.at(-1)
  if (more) cursor.depart(undefined, `now there is also ${stepText(more)}`, [])
}

function decisionDifferences(tape: DecisionStep, now: DecisionStep): Difference[] {
  const facts = ({ tool, action, policies, input }: DecisionStep) => ({ tool, action, policies, input })
  return differencesOf(facts(tape), facts(now), ['decision'], NOTHING_IGNORED)
}

export interface TapeDifference extends Difference {
  step: number
  /** The path to ignore with `--ignore`. */
  ignore: string
}

/** The differences of two recordings: compares the n-th calls of a tool, and the n-th model calls. */
export function tapeDifferences(a: readonly TapeStep[], b: readonly TapeStep[], ignored: Ignored): TapeDifference[] {
  const others = Map.groupBy(b, keyOf)
  const taken = new Map<string, number>()
  const tapeDifferences: TapeDifference[] = []
  for (const step of a) {
    const key = keyOf(step)
    const number = taken.get(key) ?? 0
    taken.set(key, number + 1)
    const other = others.get(key)?.[number]
    if (other) tapeDifferences.push(...stepDifferences(step, other, ignored))
    else tapeDifferences.push({ step: step.step, path: '', tape: stepText(step), now: undefined, ignore: '' })
  }
  for (const [key, steps] of others) {
    for (const step of steps.slice(taken.get(key) ?? 0))
      tapeDifferences.push({ step: step.step, path: '', tape: undefined, now: stepText(step), ignore: '' })
  }
  return tapeDifferences.sort((one, two) => one.step - two.step)
}

function keyOf(step: TapeStep): string {
  return JSON.stringify([step.kind, 'tool' in step ? step.tool : ''])
}

function stepDifferences(a: TapeStep, b: TapeStep, ignored: Ignored): TapeDifference[] {
  const at = (differences: Difference[], of: string) =>
    differences.map((one) => ({ ...one, step: a.step, ignore: `${of}.${one.path}` }))
  if (a.kind === 'model' && b.kind === 'model') {
    const outputs = requestDifferences(a.output, b.output, ignored).map((one) => ({
      ...one,
      path: `output.${one.path}`,
    }))
    return at([...requestDifferences(a.messages, b.messages, ignored), ...outputs], 'model')
  }
  if (a.kind === 'tool' && b.kind === 'tool') {
    const ignoredPaths = ignored.map(([of = '', ...path]) => [of === a.tool ? 'tool' : of, ...path])
    const facts = ({ input, output, error, outcome }: typeof a) => ({ input, output, error, outcome })
    return at(differencesOf(facts(a), facts(b), ['tool'], ignoredPaths), a.tool)
  }
  if (a.kind === 'decision' && b.kind === 'decision') return at(decisionDifferences(a, b), 'decision')
  if (a.kind === 'approval' && b.kind === 'approval')
    return at(differencesOf(a.status, b.status, ['approval', 'status'], ignored), 'approval')
  if (a.kind === 'input' && b.kind === 'input')
    return at(differencesOf(a.text, b.text, ['input', 'text'], ignored), 'input')
  if (a.kind === 'end' && b.kind === 'end')
    return at(differencesOf(a.status, b.status, ['end', 'status'], ignored), 'end')
  return []
}
