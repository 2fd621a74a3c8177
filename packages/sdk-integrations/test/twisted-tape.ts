/** The tape of an agent that did otherwise, for replays of the agent of `scene.ts`: the difference is the same from either side. */
import assert from 'node:assert/strict'
import type { Departure } from '../../cli/src/record/tape/cursor.ts'
import type { Tape, ToolStep } from '../../cli/src/record/tape/tape.ts'

const orderOf = (step: Tape['steps'][number]): number | undefined =>
  step.kind === 'tool' ? (step.input as { order?: number }).order : undefined

function callOf({ steps }: Tape, order: number): ToolStep {
  const call = steps.find((step) => orderOf(step) === order)
  assert.ok(call?.kind === 'tool', `the call for order ${order}`)
  return call
}

/** At one of the calls that the first answer asked for: frameworks run them at once, so another one may be asked before. */
export function assertAtFirstAnswer(tape: Tape, departure: Departure | null, expected: RegExp): void {
  const { step = 0, sentence = 'no difference' } = departure ?? {}
  assert.ok(
    [1, 3].some((order) => callOf(tape, order).step === step),
    sentence,
  )
  assert.match(sentence, expected)
}

/** Order 9 where the agent asks for order 1. */
export function withOtherInput(tape: Tape): Tape {
  const first = callOf(tape, 1)
  return { ...tape, steps: tape.steps.map((step) => (step === first ? { ...first, input: { order: 9 } } : step)) }
}

/** The call of the second turn in the first one, and the other way round. Calls of one answer may come in any order. */
export function withOtherOrder(tape: Tape): Tape {
  const first = callOf(tape, 1)
  const last = callOf(tape, 4)
  const what = ({ input, output, inputHash }: ToolStep) => ({
    input,
    output,
    ...(inputHash !== undefined && { inputHash }),
  })
  const steps = tape.steps.map((step) => {
    if (step === first) return { ...first, ...what(last) }
    return step === last ? { ...last, ...what(first) } : step
  })
  return { ...tape, steps }
}
