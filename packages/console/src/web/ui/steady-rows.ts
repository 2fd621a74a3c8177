/**
 * A list whose order stays while a person works in it. Rows are updated in place; changes of the order
 * are counted, and shown on demand.
 *
 *   live ──a row is chosen, reached by keyboard or under the pointer──► steady, in the order on screen
 *   steady ──nothing of that any more, or another list──► live
 *   steady ──the person asks for the changes──► steady, in the order of now
 */
import { useEffect, useRef, useState, type FocusEvent, type PointerEvent } from 'react'

export interface Listed {
  id: string
}

/**
 * The present rows in the shown order, the number of new rows, and the number of rows that no longer match.
 * @param newest the current first page.
 */
export function newsOf<Row extends Listed>(shown: readonly Row[], newest: readonly Row[]) {
  const now = new Map(newest.map((row) => [row.id, row]))
  const items = shown.map((row) => now.get(row.id) ?? row)
  const known = new Set(shown.map(({ id }) => id))
  // Rows after the last known one are older: the list shows them on later pages.
  const last = newest.findLastIndex(({ id }) => known.has(id))
  const until = shown.length === 0 ? newest.length : last + 1
  const isReplaced = shown.length > 0 && last < 0
  const news = newest.slice(0, isReplaced ? newest.length : until).filter(({ id }) => !known.has(id)).length
  // Rows after the last remaining one may be on a later page, so they do not count as gone.
  const end = shown.findLastIndex(({ id }) => now.has(id))
  const gone = shown.slice(0, end + 1).filter(({ id }) => !now.has(id)).length
  return { items, news, gone }
}

/** The number of rows that must move to get the order of `newest`: a row that was detected again moves to the front. */
export function movedOf(shown: readonly Listed[], newest: readonly Listed[]): number {
  const places = new Map(shown.map(({ id }, index) => [id, index]))
  let first = Number.POSITIVE_INFINITY
  let moved = 0
  for (const { id } of newest.toReversed()) {
    const place = places.get(id)
    if (place === undefined) continue
    if (place > first) moved += 1
    else first = place
  }
  return moved
}

/**
 * The rows of a steady list, and the number of hidden changes.
 * @param removed rows that the person's own acts removed. They disappear at once, and an undo restores their position.
 */
export function steadyRows<Row extends Listed>(
  shown: readonly Row[],
  newest: readonly Row[],
  removed: ReadonlySet<string>,
): { items: readonly Row[]; changed: number } {
  const now = new Set(newest.map(({ id }) => id))
  const left = shown.filter(({ id }) => now.has(id) || !removed.has(id))
  // If nothing is visible, no row can move, so show the new rows.
  if (left.length === 0) return { items: newest, changed: 0 }
  const { items, news, gone } = newsOf(left, newest)
  const known = new Set(left.map(({ id }) => id))
  const older = newest.slice(newest.findLastIndex(({ id }) => known.has(id)) + 1)
  const isReplaced = older.length === newest.length
  return { items: isReplaced ? items : [...items, ...older], changed: news + gone + movedOf(left, newest) }
}

const NONE: ReadonlySet<string> = new Set()

interface SteadyOptions {
  isSteady: boolean
  /** Identifies the list. Another list starts with its own order. */
  list: string
}

export function useSteadyRows<Row extends Listed>(newest: readonly Row[], { isSteady, list }: SteadyOptions) {
  const [stored, setStored] = useState<{ list: string; rows: readonly Row[] } | null>(null)
  const [removed, setRemoved] = useState(NONE)
  const show = () => {
    setStored(isSteady ? { list, rows: newest } : null)
    setRemoved(NONE)
  }
  // Fix the order when work in the list begins, and release it when it ends. New rows change neither.
  useEffect(show, [isSteady, list])
  const shown = stored?.list === list ? steadyRows(stored.rows, newest, removed) : { items: newest, changed: 0 }
  return { ...shown, show, remove: (ids: readonly string[]) => setRemoved((before) => before.union(new Set(ids))) }
}

/** How long a tap counts as a pointer on the list, because the finger is lifted between taps. */
const TOUCHED_MS = 10_000

/** Whether the pointer or keyboard focus is in an element, or a finger was a moment ago. */
export function useTouched() {
  const [isOver, setOver] = useState(false)
  const [isFocused, setFocused] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const handlers = {
    onPointerEnter: () => {
      clearTimeout(timer.current)
      setOver(true)
    },
    onPointerLeave: ({ pointerType }: PointerEvent) => {
      clearTimeout(timer.current)
      if (pointerType === 'mouse') setOver(false)
      else timer.current = setTimeout(() => setOver(false), TOUCHED_MS)
    },
    onFocus: ({ target }: FocusEvent) => setFocused(target.matches(':focus-visible')),
    onBlur: () => setFocused(false),
  }
  return { isTouched: isOver || isFocused, handlers }
}
