/** Changes a tape, for replays of the unchanged agent of `scene.ts`. The result is the same as if the agent had changed. */
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

/** Asserts a difference at one of the calls of the first answer. Frameworks run these at once, so either may come first. */
export function assertAtFirstAnswer(tape: Tape, departure: Departure | null, expected: RegExp): void {
  const { step = 0, sentence = 'no difference' } = departure ?? {}
  assert.ok(
    [1, 3].some((order) => callOf(tape, order).step === step),
    sentence,
  )
  assert.match(sentence, expected)
}

/** A tape with order 9 in place of order 1. */
export function withOtherInput(tape: Tape): Tape {
  const first = callOf(tape, 1)
  return { ...tape, steps: tape.steps.map((step) => (step === first ? { ...first, input: { order: 9 } } : step)) }
}

/** Swaps a call of the first turn with the call of the second turn, because calls of one answer may come in any order. */
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
