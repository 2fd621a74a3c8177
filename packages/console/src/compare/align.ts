/** Aligns the steps of two runs by type and label. Pure. */
import { diffArrays } from 'diff'
import type { Step } from '../runs/run-queries.ts'

/** Null: the other run has no such step here. */
export interface Pair {
  a: Step | null
  b: Step | null
}

/** Steps of each run that are aligned. */
export const ALIGNED = 5_000
/** Runs that differ in more steps than this are not worth an alignment. */
const EDITS = 3_000

const keyOf = ({ eventType, label }: Step): string => JSON.stringify([eventType, label])

/** Null: the runs differ too much. */
export function align(a: readonly Step[], b: readonly Step[]): Pair[] | null {
  const [left, right] = [a.slice(0, ALIGNED), b.slice(0, ALIGNED)]
  const changes = diffArrays(left.map(keyOf), right.map(keyOf), { maxEditLength: EDITS })
  if (!changes) return null
  const pairs: Pair[] = []
  let [i, j] = [0, 0]
  for (const { added, removed, count } of changes) {
    for (let n = 0; n < count; n++) {
      const pair = { a: added ? null : (left[i++] ?? null), b: removed ? null : (right[j++] ?? null) }
      pairs.push(pair)
    }
  }
  return pairs
}
