import { useEffect, useState } from 'react'
import { useKeys, type Keys } from './keys.ts'

interface Options<Item> {
  items: readonly Item[]
  open: (item: Item) => void
  /** The list begins again when this changes. */
  reset: unknown
  more?: Keys
}

/** `j` and `k` move through a list, Enter opens. Gives the row that is chosen. */
export function useListKeys<Item>({ items, open, reset, more }: Options<Item>): Item | undefined {
  const [at, setAt] = useState(-1)
  useEffect(() => setAt(-1), [reset])
  const current = items[at]
  const move = (by: number) => setAt(Math.max(0, Math.min(items.length - 1, at + by)))
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(current !== undefined && { Enter: () => open(current) }),
    ...more,
  })
  return current
}
