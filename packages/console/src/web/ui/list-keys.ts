import { useEffect, useState } from 'react'
import { useKeys, type Keys } from './keys.ts'

interface Options<Item> {
  items: readonly Item[]
  /** A choice stays with its item, wherever new items move it. */
  keyOf: (item: Item) => string
  open: (item: Item) => void
  /** The list begins again when this changes. */
  reset: unknown
  more?: Keys
}

/** `j` and `k` move through a list, Enter opens. Gives the row that is chosen. */
export function useListKeys<Item>({ items, keyOf, open, reset, more }: Options<Item>): Item | undefined {
  const [chosen, choose] = useState<string | null>(null)
  useEffect(() => choose(null), [reset])
  const at = items.findIndex((item) => keyOf(item) === chosen)
  const current = items[at]
  const move = (by: number) => {
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))]
    choose(next === undefined ? null : keyOf(next))
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(current !== undefined && { Enter: () => open(current) }),
    ...more,
  })
  return current
}
