/** Packs the runs that the store reports as unpacked. If several nodes take the same run, only one stores it. */
import type { TimelinePlace } from '../../storage/record/events.ts'
import { eachRow } from '../../storage/engine/page.ts'
import type { PackedSlice, RunSlice, UnpackedRun } from '../../storage/data/retention.ts'
import { StorageError } from '../../storage/engine/store.ts'
import { every, type Job, type JobOptions } from '../engine/timers.ts'
import { createPace, type AddWork } from '../engine/pace.ts'

type Acts =
  | 'listUnpackedRuns'
  | 'readUnpacked'
  | 'storeBlocks'
  | 'listWorkspaces'
  | 'listEnvironments'
  | 'gauges'
  | 'engine'

/** A closed run seldom gets more events. An open one may continue the next day. */
const CLOSED_IDLE_MS = 10 * 60_000
const OPEN_IDLE_MS = 24 * 3_600_000
const RUNS_LISTED = 500
/** Bytes that a block takes besides its content: in its row, and in the rows of its events. */
const LEAST_SAVED = 200
/**
 * Multiplies the pauses of pace.ts, because a busy store needs its processors more than its disk: a pause is about 70
 * slices long.
 */
const PATIENCE = { sqlite: 4, postgres: 10 } as const
const SLICE_BYTES = 2 * 1_048_576

export function packPayloads({ storage, now, onError, intervalMs = 600_000 }: JobOptions<Acts>): Job {
  return every({
    intervalMs,
    onError,
    async run(signal) {
      for await (const environmentId of environments()) await packEnvironment(environmentId, signal)
    },
  })

  /**
   * Short runs share a transaction. A run with several slices has one in each transaction, because a slice must follow
   * a stored one.
   */
  async function packEnvironment(environmentId: string, signal: AbortSignal): Promise<void> {
    const pace = createPace(storage, signal, PATIENCE[storage.engine])
    const runs = unpackedRuns(environmentId)
    let next = await runs.next()
    let after: TimelinePlace | null = null
    while (!next.done && !signal.aborted) {
      await pace.slice(async (most, addWork) => {
        const slices: RunSlice[] = []
        let [payloads, bytes] = [0, 0]
        while (!next.done && payloads < most && bytes < SLICE_BYTES && !signal.aborted) {
          const run = next.value
          const slice = await read(environmentId, run, after, addWork)
          if (slice !== null) slices.push({ run, slice })
          payloads += 1 + (slice?.payloads ?? 0)
          bytes += slice?.blocks.reduce((sum, { packed }) => sum + packed.length, 0) ?? 0
          after = slice?.more ? slice.after : null
          if (after !== null) break
          next = await runs.next()
        }
        const stored = slices.length > 0 ? await storage.storeBlocks(environmentId, slices) : []
        if (after !== null && stored.at(-1) !== true) {
          // Another process has changed the run, so continue with the next one.
          after = null
          next = await runs.next()
        }
        return payloads
      })
    }
  }

  async function read(
    environmentId: string,
    run: UnpackedRun,
    after: TimelinePlace | null,
    addWork: AddWork,
  ): Promise<PackedSlice | null> {
    const start = performance.now()
    try {
      return await storage.readUnpacked(environmentId, run.id, after, LEAST_SAVED)
    } catch (error) {
      // A run that cannot be read must not keep the others from being packed.
      if (error instanceof StorageError) throw error
      onError(error)
      return null
    } finally {
      addWork(performance.now() - start)
    }
  }

  async function* unpackedRuns(environmentId: string): AsyncGenerator<UnpackedRun> {
    for (let after = 0; ;) {
      const runs = await storage.listUnpackedRuns(environmentId, after, RUNS_LISTED)
      const at = now()
      yield* runs.filter((run) => isIdle(run, at))
      if (runs.length < RUNS_LISTED) return
      after = runs.at(-1)?.number ?? after
    }
  }

  async function* environments(): AsyncGenerator<string> {
    for await (const workspace of eachRow((page) => storage.listWorkspaces(page))) {
      for await (const { id } of eachRow((page) => storage.listEnvironments(workspace.id, page))) yield id
    }
  }
}

function isIdle({ status, lastEventAt }: UnpackedRun, now: number): boolean {
  return lastEventAt < now - (status === 'RUNNING' ? OPEN_IDLE_MS : CLOSED_IDLE_MS)
}
