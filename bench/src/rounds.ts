/** Measures sides in turn, round by round. */
import type { Setting } from './benchmark.ts'
import type { Plan } from './plan.ts'
import { figure } from './text.ts'

/** Measures a side in a round, and returns its figures by name. Round 0 warms up and does not count. */
type Measure = (round: number) => Promise<object> | object

/** The figures of all rounds by side and name. */
export type Found<Sides extends Record<string, Measure>> = {
  [Side in keyof Sides]: { [Name in keyof Awaited<ReturnType<Sides[Side]>>]: number[] }
}

export interface Turns {
  /** Whether a round that does not count comes first. */
  warmUp?: boolean
  /** Whether every second round has the opposite order. */
  alternating?: boolean
}

export async function inTurn<Sides extends Record<string, Measure>>(
  { plan, say }: { plan: Pick<Plan, 'rounds'>; say: Setting['say'] },
  sides: Sides,
  { warmUp = false, alternating = false }: Turns = {},
): Promise<Found<Sides>> {
  const found: Record<string, Record<string, number[]>> = {}
  for (let round = warmUp ? 0 : 1; round <= plan.rounds; round++) {
    const order = Object.entries(sides)
    const texts: string[] = []
    for (const [side, measure] of alternating && round % 2 === 0 ? order.toReversed() : order) {
      const figures = Object.entries((await measure(round)) as Record<string, number>)
      texts.push(`${side}: ${figures.map(([name, value]) => `${name} ${figure(value)}`).join(', ')}`)
      if (round === 0) continue
      const of = (found[side] ??= {})
      for (const [name, value] of figures) (of[name] ??= []).push(value)
    }
    say(`${round === 0 ? 'warm-up' : `round ${round}`}: ${texts.join('; ')}`)
  }
  return found as Found<Sides>
}
