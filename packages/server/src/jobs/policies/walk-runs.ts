/**
 * For conditions on the past: whole runs, one after the other, newest first, because a past is read once and in order. Bounded
 * in runs, bytes and time; the result says so if a bound was reached.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { PastRow } from '../../storage/policies/policies.ts'
import type { Storage } from '../../storage/storage.ts'
import type { TimelinePlace } from '../../storage/record/events.ts'

export interface WalkBounds {
  readonly runs: number
  readonly bytes: number
  readonly runBytes: number
  readonly ms: number
}

const BOUNDS: WalkBounds = {
  runs: LIMITS.simulationRuns,
  bytes: LIMITS.simulationBytes,
  runBytes: LIMITS.simulationRunBytes,
  ms: 600_000,
}
const PAGE_ROWS = 500
const PAGE_BYTES = 2_097_152

interface Walk {
  readonly storage: Pick<Storage, 'listCallingRuns' | 'listRunPast'>
  readonly environmentId: string
  readonly from: number
  readonly to: number
  readonly bounds?: Partial<WalkBounds> | undefined
  /** Events of one run. False: stop. */
  look(rows: PastRow[], scanned: number): Promise<boolean>
}

export interface Walked {
  scanned: number
  /** Whether a bound left calls out. */
  isCut: boolean
}

export async function walkRuns({ storage, environmentId, from, to, look, ...walk }: Walk): Promise<Walked | null> {
  const bounds = { ...BOUNDS, ...walk.bounds }
  const until = performance.now() + bounds.ms
  const runs = await storage.listCallingRuns(environmentId, from, to, bounds.runs + 1)
  let isCut = runs.length > bounds.runs
  let bytes = 0
  let scanned = 0
  for (const { run, calls } of runs.slice(0, bounds.runs)) {
    if (bytes > bounds.bytes || performance.now() > until) return { scanned, isCut: true }
    let runBytes = 0
    let after: TimelinePlace | null = null
    for (;;) {
      const page = { limit: PAGE_ROWS, pageBytes: PAGE_BYTES, after, before: { time: to, seq: 0 } }
      const rows: PastRow[] = await storage.listRunPast(environmentId, run, page)
      const last = rows.at(-1)
      if (last === undefined) break
      if (!(await look(rows, scanned))) return null
      runBytes += rows.reduce((sum, { payload }) => sum + payload.length, 0)
      after = { time: last.time, seq: last.seq }
      if (runBytes <= bounds.runBytes) continue
      isCut = true
      break
    }
    bytes += runBytes
    scanned += calls
  }
  return { scanned, isCut }
}
