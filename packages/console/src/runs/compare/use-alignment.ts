import { useEffect, useMemo, useState } from 'react'
import type { Step } from '../queries.ts'
import { align, ALIGNED, type AlignedStep, type Alignment } from './align.ts'
import type { AlignReply, AlignRequest } from './align-worker.ts'

/** A pair of steps. Null: the other run has no such step here. */
export interface Pair {
  a: Step | null
  b: Step | null
}

/** Up to this many steps, both runs are aligned on the page itself, in a few milliseconds. */
const AT_ONCE = 1_000

export type PairsFound =
  | { pairs: readonly Pair[]; isRough: boolean }
  /** Aligned share, from 0 to 1. */
  | { part: number }
  | { error: Error }

/** A worker's result, with the steps for which it was computed. */
interface Found {
  a: readonly Step[]
  b: readonly Step[]
  reply: AlignReply | { error: Error }
}

const NOTHING_YET = { part: 0 }

/** Pairs the steps of two complete runs. Long runs are aligned in a worker, so that the page does not freeze. */
export function useAlignment(a: readonly Step[], b: readonly Step[], areComplete: boolean): PairsFound {
  const isShort = a.length + b.length <= AT_ONCE
  const [found, setFound] = useState<Found>()
  useEffect(() => {
    if (!areComplete || isShort) return
    const worker = new Worker(new URL('./align-worker.ts', import.meta.url), { type: 'module' })
    worker.addEventListener('message', ({ data }: MessageEvent<AlignReply>) => setFound({ a, b, reply: data }))
    worker.addEventListener('error', ({ message }) => setFound({ a, b, reply: { error: new Error(message) } }))
    worker.postMessage({ a: a.slice(0, ALIGNED).map(named), b: b.slice(0, ALIGNED).map(named) } satisfies AlignRequest)
    return () => worker.terminate()
  }, [a, b, areComplete, isShort])
  return useMemo(() => {
    if (!areComplete) return NOTHING_YET
    if (isShort) return pairsOf(align(a, b), a, b)
    if (found?.a !== a || found.b !== b) return NOTHING_YET
    return 'alignment' in found.reply ? pairsOf(found.reply.alignment, a, b) : found.reply
  }, [a, b, areComplete, isShort, found])
}

const named = ({ eventType, label }: Step): AlignedStep => ({ eventType, label })

function pairsOf({ places, isRough }: Alignment, a: readonly Step[], b: readonly Step[]): PairsFound {
  const stepAt = (steps: readonly Step[], place: number | null) => (place === null ? null : (steps[place] ?? null))
  return { pairs: places.map((place) => ({ a: stepAt(a, place.a), b: stepAt(b, place.b) })), isRough }
}
