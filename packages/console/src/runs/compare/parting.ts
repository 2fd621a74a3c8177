/**
 * Finds where two aligned runs part: at the first call that only one of them made, or that failed in only one. Pure.
 */
import { counted } from '../../web/text/format.ts'
import { STATES, type StateName } from '../../web/text/state-styles.ts'
import type { Told } from '../page/problems.ts'
import type { Step } from '../queries.ts'
import type { Pair } from './use-alignment.ts'

const TOLD = new Set(['TOOL_CALL', 'ERROR', 'HANDOFF', 'SESSION_OUTCOME'])
const STATUS = /\b[45]\d\d\b/
const CAUSE_CHARS = 60

/** The problems of a run, by event id. */
export type ProblemsById = ReadonlyMap<string, Omit<Told, 'text'>>

/** Words for the step of the run that does not have the problem. */
const OTHERWISE = new Map<StateName, string>([
  ['FAILED', 'did not fail'],
  ['NEVER_RAN', 'ran'],
])

/**
 * `They part at step 6: track_parcel, then refund_payment → 503; in the first run it did not fail.` Null if they do not
 * part.
 */
export function partingText(pairs: readonly Pair[], problems: { a: ProblemsById; b: ProblemsById }): string | null {
  const problemOf = (side: 'a' | 'b', step: Step | null) => {
    const problem = step === null ? undefined : problems[side].get(step.eventId)
    return problem !== undefined && STATES[problem.is][0] === 'red' ? problem : null
  }
  const parts = (pair: Pair) =>
    pair.a === null || pair.b === null || (problemOf('a', pair.a) === null) !== (problemOf('b', pair.b) === null)
  // Skip a missing call if the decision that blocked it is reported.
  const isSaid = (side: 'a' | 'b', step: Step | null) =>
    step !== null && (TOLD.has(step.eventType) || problemOf(side, step) !== null)
  const atCall = pairs.findIndex((pair) => (isSaid('a', pair.a) || isSaid('b', pair.b)) && parts(pair))
  const at = atCall === -1 ? pairs.findIndex(parts) : atCall
  const pair = pairs[at]
  if (pair === undefined) return null
  const lastCall = pairs
    .slice(0, at)
    .findLast(({ a, b }) => a?.eventType === 'TOOL_CALL' && b?.eventType === 'TOOL_CALL')
  // The step that the other run has instead: the first of its own steps before both runs continue together.
  const next = (side: 'a' | 'b') => {
    const together = pairs.findIndex(({ a, b }, place) => place >= at && a !== null && b !== null)
    const alone = pairs.slice(at, together === -1 ? undefined : together)
    return alone.find((one) => isSaid(side, one[side]))?.[side] ?? null
  }
  const [first, second] = [pair.a ?? next('a'), pair.b ?? next('b')]
  const stepOf = second ?? first
  const named = (side: 'a' | 'b', step: Step) => {
    const problem = problemOf(side, step)
    return problem === null ? step.label : `${step.label} → ${causeText(problem)}`
  }
  const where = `They part at step ${(stepOf?.index ?? at) + 1}: ${lastCall?.a ? `${lastCall.a.label}, then ` : ''}`
  if (first && second && first.label === second.label) {
    const failing = problemOf('b', second) === null ? 'a' : 'b'
    const failed = failing === 'a' ? first : second
    const otherwise = OTHERWISE.get(problemOf(failing, failed)?.is ?? 'FAILED') ?? 'was not'
    return `${where}${named(failing, failed)}; in the ${failing === 'a' ? 'second' : 'first'} run it ${otherwise}.`
  }
  if (first && second) return `${where}${named('b', second)} in the second run, ${named('a', first)} in the first.`
  const [side, step] = second ? (['b', second] as const) : (['a', first] as const)
  return step && `${where}${named(side, step)}, only in the ${side === 'b' ? 'second' : 'first'} run.`
}

/** The status or the beginning of an error; without an error, the fate of the call, such as "blocked". */
function causeText({ is, why, word }: Omit<Told, 'text'>): string {
  return is !== 'FAILED' || why === '' ? word : (STATUS.exec(why)?.[0] ?? why.slice(0, CAUSE_CHARS))
}

/** `2 steps in one run only`, or a sentence that there are none. */
export function aloneText(pairs: readonly Pair[]): string {
  const alone = pairs.filter(({ a, b }) => a === null || b === null).length
  return alone > 0 ? `${counted(alone, 'step')} in one run only.` : 'The runs took the same steps.'
}
