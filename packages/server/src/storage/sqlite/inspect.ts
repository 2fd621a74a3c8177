import { statSync } from 'node:fs'
import { CHECKED_BYTES, mib, queueCheck, tooLargeToCheck } from '../store-checks.ts'
import { StoreDamaged, type StoreCheck } from '../store.ts'
import type { FileChecked } from './check-file.ts'
import type { Disk } from './disk.ts'
import type { Durability } from './durable.ts'
import { runTask } from './run-task.ts'

/** A commit takes milliseconds. */
const LONG_WAIT_MS = 5_000

export interface Inspected {
  file: string
  disk: Disk
  minFreeDiskBytes: number
  durability: Durability
  commitWaitMs: number
  freeBytes: number | null
  /** Acknowledged changes that were not in the store when it was opened. */
  missing: number
  queuedBytes: number
  queueBytes: number
}

export async function inspectStore(store: Inspected): Promise<StoreCheck[]> {
  const { synchronous, mode } = store.durability
  const free = store.disk.freeBytes()
  const gone = store.disk.gone()
  return [
    {
      name: 'file',
      ok: gone === null,
      detail:
        gone === null
          ? 'The store is the file at its path'
          : `${gone}. Save it with \`tacho backup\` before this process ends`,
    },
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
      name: 'commits',
      ok: store.commitWaitMs < LONG_WAIT_MS,
      detail:
        store.commitWaitMs < LONG_WAIT_MS
          ? `No write has waited longer than ${LONG_WAIT_MS / 1000} s for its commit`
          : `The oldest write has waited ${Math.round(store.commitWaitMs / 1000)} s for its commit: another program may hold the file`,
    },
    {
      name: 'disk',
      ok: !store.disk.nearlyFull(),
      detail: `${free === null ? 'unknown' : mib(free)} free; writes stop below ${mib(store.minFreeDiskBytes)}`,
    },
    {
      name: 'free space',
      ok: true,
      detail: `${mib(store.freeBytes ?? 0)} in the file are free for new rows. To give them back to the disk, restore a backup`,
    },
    queueCheck(store),
    ...(gone === null ? await integrity(store.file) : []),
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
    const detail = isIntact
      ? `The structure of all ${mib(size)} is intact: pages, tables and indexes. Of their content, payloads have checksums, below`
      : `The store is damaged: ${found}${REMEDY}`
    return [{ name: 'integrity', ok: isIntact, detail }, ...(payloads === null ? [] : [payloads])]
  } catch (error) {
    // The file can no longer be opened: the service may still have what it needs in memory.
    if (error instanceof StoreDamaged) return [{ name: 'integrity', ok: false, detail: `${error.message}${REMEDY}` }]
    throw error
  }
}

const REMEDY = '. Restore a backup'
