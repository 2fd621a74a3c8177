/**
 * Packs the payloads of idle runs into blocks, a few at a time.
 *
 * It rests nine times as long as it works, so recording keeps at least nine tenths of the store's writer. Nothing is
 * remembered between passes: the store knows which runs are unpacked. If several nodes take the same run, one of them
 * stores it and the others continue. A process that dies leaves whole blocks.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { LIMITS } from '@tacho/contract/limits.ts'
import type { EnvironmentStore } from '../storage/environments.ts'
import type { PageById } from '../storage/page.ts'
import type { PackedSlice, PackingStore, RunSlice, SlicePlace, UnpackedRun } from '../storage/packing.ts'
import { StorageError } from '../storage/storage.ts'
import type { WorkspaceStore } from '../storage/workspaces.ts'
import { every, type Job } from './every.ts'

export interface PackOptions {
  storage: Pick<PackingStore, 'listUnpackedRuns' | 'readUnpacked' | 'storeBlocks'> &
    Pick<WorkspaceStore, 'listWorkspaces'> &
    Pick<EnvironmentStore, 'listEnvironments'>
  now: () => number
  onError: (error: unknown) => void
  intervalMs?: number
}

/** A closed run seldom gets more events. An open one may continue after a night. */
const CLOSED_IDLE_MS = 10 * 60_000
const OPEN_IDLE_MS = 24 * 3_600_000
const RUNS_LISTED = 500
/** Bytes that a block takes in addition to its content: in its row, and in the rows of its events. */
const LEAST_SAVED = 200
/** Payloads of short runs that share a transaction. */
const BATCH_PAYLOADS = 500
/** Rests so many times as long as a batch took. */
const REST = 9

export function packPayloads({ storage, now, onError, intervalMs = 600_000 }: PackOptions): Job {
  const stopping = new AbortController()

  async function pass(): Promise<void> {
    for await (const environmentId of environments()) await packEnvironment(environmentId)
  }

  /** Short runs share a transaction. A run that fills several has one slice in each, because a slice follows a stored one. */
  async function packEnvironment(environmentId: string): Promise<void> {
    const batch = newBatch(environmentId)
    for await (const run of unpackedRuns(environmentId)) {
      let after: SlicePlace | null = null
      let slice: PackedSlice | null = null
      do {
        if (stopping.signal.aborted) return
        slice = await batch.read(run, after)
        after = slice?.after ?? null
      } while (slice?.more && (await batch.store(run)))
      if (batch.isFull()) await batch.store(run)
    }
    if (!stopping.signal.aborted) await batch.store(null)
  }

  function newBatch(environmentId: string) {
    let [slices, payloads, busyMs]: [RunSlice[], number, number] = [[], 0, 0]
    return {
      /** Null: there is nothing of the run to store. */
      async read(run: UnpackedRun, after: SlicePlace | null): Promise<PackedSlice | null> {
        const start = performance.now()
        try {
          const slice = await storage.readUnpacked(environmentId, run.id, after, LEAST_SAVED)
          if (slice === null) return null
          slices.push({ run, slice })
          payloads += 1 + slice.payloads
          return slice
        } catch (error) {
          // One run that cannot be read must not keep the others from being packed.
          if (error instanceof StorageError) throw error
          onError(error)
          return null
        } finally {
          busyMs += performance.now() - start
        }
      },
      isFull: () => payloads >= BATCH_PAYLOADS,
      /** False: another process has changed the run. */
      async store(run: UnpackedRun | null): Promise<boolean> {
        const start = performance.now()
        const stored = slices.length > 0 ? await storage.storeBlocks(environmentId, slices) : []
        const lost = slices.some((one, index) => one.run === run && !stored[index])
        const ms = (busyMs + performance.now() - start) * REST
        ;[slices, payloads, busyMs] = [[], 0, 0]
        await wait(ms, undefined, { signal: stopping.signal }).catch(() => undefined)
        return !lost
      },
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
    for await (const workspace of pages((page) => storage.listWorkspaces(page))) {
      for await (const { id } of pages((page) => storage.listEnvironments(workspace.id, page))) yield id
    }
  }

  const job = every({ intervalMs, run: pass, onError })
  return {
    async stop() {
      stopping.abort()
      await job.stop()
    },
  }
}

function isIdle({ status, lastEventAt }: UnpackedRun, now: number): boolean {
  return lastEventAt < now - (status === 'RUNNING' ? OPEN_IDLE_MS : CLOSED_IDLE_MS)
}

async function* pages<Row extends { id: string }>(list: (page: PageById) => Promise<Row[]>): AsyncGenerator<Row> {
  const limit = LIMITS.operatorPageMax
  for (let after: string | null = null; ;) {
    const rows = await list({ limit, after })
    yield* rows
    if (rows.length < limit) return
    after = rows.at(-1)?.id ?? null
  }
}
