/** Finds where two aligned runs part: the first call that only one of them made, or that failed in one. Pure. */
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { counted } from '../../web/text/format.ts'
import type { Step } from '../queries.ts'
import type { Pair } from './use-alignment.ts'

const TOLD = new Set(['TOOL_CALL', 'ERROR', 'HANDOFF', 'SESSION_OUTCOME'])
const STATUS = /\b[45]\d\d\b/
const CAUSE_CHARS = 60

type Failing = Pick<OperatorRun, 'failure'>

/** `They part at step 6: track_parcel, then refund_payment → 503; in the first run it returned.` Null: they do not. */
export function partingText(pairs: readonly Pair[], runs: { a: Failing; b: Failing }): string | null {
  const causeOf = (side: 'a' | 'b', step: Step | null): string | null => {
    const { failure } = runs[side]
    return step === null || failure === null || failure.eventId !== step.eventId ? null : causeText(failure)
  }
  const parts = (pair: Pair) =>
    pair.a === null || pair.b === null || (causeOf('a', pair.a) === null) !== (causeOf('b', pair.b) === null)
  const atCall = pairs.findIndex((pair) => TOLD.has((pair.a ?? pair.b)?.eventType ?? '') && parts(pair))
  const at = atCall === -1 ? pairs.findIndex(parts) : atCall
  const pair = pairs[at]
  if (pair === undefined) return null
  const lastCall = pairs
    .slice(0, at)
    .findLast(({ a, b }) => a?.eventType === 'TOOL_CALL' && b?.eventType === 'TOOL_CALL')
  const [first, second] = [pair.a ?? nextAlone(pairs, at, 'a'), pair.b ?? nextAlone(pairs, at, 'b')]
  const stepOf = second ?? first
  const named = (side: 'a' | 'b', step: Step) => {
    const cause = causeOf(side, step)
    return cause === null ? step.label : `${step.label} → ${cause}`
  }
  const where = `They part at step ${(stepOf?.index ?? at) + 1}: ${lastCall?.a ? `${lastCall.a.label}, then ` : ''}`
  if (first && second && first.label === second.label) {
    const [failing, other] = causeOf('b', second) === null ? (['a', 'b'] as const) : (['b', 'a'] as const)
    const failed = named(failing, failing === 'a' ? first : second)
    return `${where}${failed}; in the ${other === 'a' ? 'first' : 'second'} run it did not fail.`
  }
  if (first && second) return `${where}${named('b', second)} in the second run, ${named('a', first)} in the first.`
  const [side, step] = second ? (['b', second] as const) : (['a', first] as const)
  return step && `${where}${named(side, step)}, only in the ${side === 'b' ? 'second' : 'first'} run.`
}

/** Finds the other run's step in its place: the first of its own steps before both runs continue together. */
function nextAlone(pairs: readonly Pair[], at: number, side: 'a' | 'b'): Step | null {
  for (const pair of pairs.slice(at)) {
    if (pair.a !== null && pair.b !== null) return null
    const step = pair[side]
    if (step !== null && TOLD.has(step.eventType)) return step
  }
  return null
}

function causeText({ errorClass, message }: NonNullable<Failing['failure']>): string {
  const whole = message ?? errorClass ?? 'failed'
  return STATUS.exec(whole)?.[0] ?? whole.slice(0, CAUSE_CHARS)
}

/** `2 steps in one run only`, or a sentence that there are none. */
export function aloneText(pairs: readonly Pair[]): string {
  const alone = pairs.filter(({ a, b }) => a === null || b === null).length
  return alone > 0 ? `${counted(alone, 'step')} in one run only.` : 'The runs took the same steps.'
}
