/** Checks of an open store, for doctor. */
import { statSync } from 'node:fs'
import type { StoreCheck } from '../storage.ts'
import type { Disk } from './disk.ts'
import type { Durability } from './durable.ts'
import { runTask } from './run-task.ts'

const MIB = 1_048_576
/** Reading a larger store would take disk bandwidth from the service for too long. */
const CHECKED_BYTES = 1024 * MIB

export interface Inspected {
  file: string
  disk: Disk
  minFreeDiskBytes: number
  durability: Durability
  queuedBytes: number
  queueBytes: number
}

export async function inspectStore(store: Inspected): Promise<StoreCheck[]> {
  const { synchronous, mode } = store.durability
  const free = store.disk.freeBytes()
  return [
    {
      name: 'durability',
      ok: synchronous === 2 && mode === 'wal',
      detail: `Each acknowledged commit is on disk (journal ${mode}, synchronous ${synchronous})`,
    },
    {
      name: 'disk',
      ok: !store.disk.nearlyFull(),
      detail: `${free === null ? 'unknown' : mib(free)} free; writes stop below ${mib(store.minFreeDiskBytes)}`,
    },
    {
      name: 'queue',
      ok: store.queuedBytes < store.queueBytes / 2,
      detail: `${mib(store.queuedBytes)} of at most ${mib(store.queueBytes)} of events wait for a commit`,
    },
    await integrity(store.file),
  ]
}

async function integrity(file: string): Promise<StoreCheck> {
  const { size } = statSync(file)
  if (size > CHECKED_BYTES) {
    return { name: 'integrity', ok: true, detail: `Not checked: ${mib(size)} is more than ${mib(CHECKED_BYTES)}` }
  }
  const found = await runTask({ task: 'check', file })
  return {
    name: 'integrity',
    ok: found === 'ok',
    detail:
      found === 'ok' ? `All ${mib(size)} of the store are intact` : `The store is damaged: ${found}. Restore a backup`,
  }
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MIB).toLocaleString('en')} MiB`
}
