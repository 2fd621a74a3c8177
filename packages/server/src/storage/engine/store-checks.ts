import { NO_PAYLOADS, payloadsCheck, type PayloadsChecked } from '../sql/engine/damage.ts'
import type { StoreCheck } from './store.ts'

const MIB = 1_048_576
/** Reading a larger store at once would take too much of the disk or database from the service. */
const LARGE_BYTES = 1_024 * MIB
/** What one doctor spends on the payloads of a larger store. */
const SLICE_MS = 5_000

export interface PayloadSlices {
  isLarge(bytes: number): boolean
  next(): { done: PayloadsChecked; budgetMs: number }
  /** Each pass begins anew after its end. */
  checked(slice: PayloadsChecked): StoreCheck
}

/** The payloads of a large store are checked over several doctors. */
export function createPayloadSlices({ largeBytes = LARGE_BYTES, budgetMs = SLICE_MS } = {}): PayloadSlices {
  let done = NO_PAYLOADS
  return {
    isLarge: (bytes) => bytes > largeBytes,
    next: () => ({ done, budgetMs }),
    checked(slice) {
      done = slice.next === null ? NO_PAYLOADS : slice
      return payloadsCheck(slice)
    },
  }
}

export function mib(bytes: number): string {
  return `${Math.round(bytes / MIB).toLocaleString('en')} MiB`
}

export function queueCheck({ queuedBytes, queueBytes }: Record<'queuedBytes' | 'queueBytes', number>, where = '') {
  const detail = `${mib(queuedBytes)} of at most ${mib(queueBytes)} of events wait for a commit${where}`
  return { name: 'queue', ok: queuedBytes < queueBytes / 2, detail }
}
