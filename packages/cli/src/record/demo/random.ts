/** Repeatable random numbers: the same seed gives the same numbers. Pure. */
import { hash } from 'node:crypto'

export interface Chance {
  /** From 0 (included) to 1 (excluded). */
  next(): number
  /** An integer from `least` to `most`, both included. */
  between(least: number, most: number): number
  pick<Item>(items: readonly [Item, ...Item[]]): Item
}

/** SplitMix32 (Steele, Lea, Flood 2014, in its 32-bit form), starting from a hash of the seed. */
export function chance(seed: string): Chance {
  let state = Number.parseInt(hash('sha256', seed).slice(0, 8), 16)
  const next = (): number => {
    state = (state + 0x9e3779b9) | 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick: (items) => items[Math.floor(next() * items.length)] ?? items[0],
  }
}
