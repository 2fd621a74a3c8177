import { statSync } from 'node:fs'
import { CHECKED_BYTES, mib, queueCheck, tooLargeToCheck } from '../store-checks.ts'
import { StoreDamaged, type StoreCheck } from '../store.ts'
import type { FileChecked } from './check-file.ts'
import type { Disk } from './disk.ts'
import type { Durability } from './durable.ts'
import { runTask } from './run-task.ts'

export interface Inspected {
  file: string
  disk: Disk
  minFreeDiskBytes: number
  durability: Durability
  /** Acknowledged changes that were not in the store when it was opened. */
  missing: number
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
      name: 'acknowledged',
      ok: store.missing === 0,
      detail:
        store.missing === 0 ? 'At the start, the store had all that it had acknowledged' : missingText(store.missing),
    },
    {
      name: 'disk',
      ok: !store.disk.nearlyFull(),
      detail: `${free === null ? 'unknown' : mib(free)} free; writes stop below ${mib(store.minFreeDiskBytes)}`,
    },
    queueCheck(store),
    ...(await integrity(store.file)),
  ]
}

export function missingText(missing: number): string {
  const up = `Up to ${missing.toLocaleString('en')} acknowledged events and other changes were not in the store at its start`
  return `${up}: its write-ahead log was removed or damaged, or an older copy took its place`
}

async function integrity(file: string): Promise<StoreCheck[]> {
  const { size } = statSync(file)
  if (size > CHECKED_BYTES) return [tooLargeToCheck('integrity', size)]
  try {
    const { structure, payloads } = (await runTask(file, 'check', [])) as FileChecked
    const isIntact = structure === 'ok' && payloads !== null
    const found = structure === 'ok' ? 'payloads cannot be read' : structure
    const detail = isIntact ? `All ${mib(size)} of the store are intact` : `The store is damaged: ${found}${REMEDY}`
    return [{ name: 'integrity', ok: isIntact, detail }, ...(payloads === null ? [] : [payloads])]
  } catch (error) {
    // The file can no longer be opened: the service may still have what it needs in memory.
    if (error instanceof StoreDamaged) return [{ name: 'integrity', ok: false, detail: `${error.message}${REMEDY}` }]
    throw error
  }
}

const REMEDY = '. Restore a backup'
