import type { Bar } from '@tacho/contract/runs/timeline.ts'
import { useCallback, useMemo, useState } from 'react'
import type { Problem } from './problems.ts'
import type { Step } from '../queries.ts'
import { NO_FOLDS, treeOf, turned, unfolded, type Row } from './tree.ts'

/** The steps as a tree, and what of it is not folded away. `isFlat`: nothing is. */
export function useTree(
  steps: readonly Step[],
  bars: readonly Bar[],
  problems: readonly Problem[],
  /** Event id of the step that is open. */
  open: string | undefined,
  isFlat: boolean,
) {
  const [folds, setFolds] = useState(NO_FOLDS)
  const ends = useMemo(() => new Map(problems.map(({ eventId, word, why }) => [eventId, `${word} ${why}`])), [problems])
  const tree = useMemo(
    () => treeOf(steps, bars, isFlat ? null : ({ eventId }) => ends.get(eventId) ?? ''),
    [steps, bars, isFlat, ends],
  )
  const rows = useMemo(() => unfolded(tree, folds, open), [tree, folds, open])
  const turn = useCallback((row: Row) => setFolds((before) => turned(row, before)), [])
  return { tree, rows, turn }
}
