import { statSync } from 'node:fs'
import { payloadsCheck } from '../sql/engine/checksum-checks.ts'
import { mib, queueCheck, type PayloadSlices } from '../engine/store-checks.ts'
import { StoreDamaged, type StoreCheck } from '../engine/store.ts'
import type { FileChecked, FileSlice } from './reader.ts'
import type { Disk } from './files.ts'
import type { Durability } from './database.ts'
import { startThread } from './thread.ts'

/** A commit normally takes milliseconds. */
const LONG_WAIT_MS = 5_000

interface Inspected {
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
  slices: PayloadSlices
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
    ...(gone === null ? await integrity(store) : []),
  ]
}

export function missingText(missing: number): string {
  const up = `Up to ${missing.toLocaleString('en')} acknowledged events and other changes were not in the store at its start`
  return `${up}: its write-ahead log was removed or damaged, or an older copy took its place`
}

async function integrity({ file, slices }: Inspected): Promise<StoreCheck[]> {
  const { size } = statSync(file)
  const slice: FileSlice | null = slices.isLarge(size) ? slices.next() : null
  try {
    const { structure, payloads, configuration } = (await runTask(file, 'check', [slice])) as FileChecked
    const isReadable = payloads !== null && configuration !== null
    const isIntact = (structure ?? 'ok') === 'ok' && isReadable
    const rowsProblem = isReadable ? structure : 'rows cannot be read'
    const seen =
      slice === null ? `The structure of all ${mib(size)} is intact: pages, tables and indexes` : largeText(size)
    const detail = isIntact
      ? `${seen}. Payloads and configuration have checksums, below`
      : `The store is damaged: ${rowsProblem}${REMEDY}`
    const checks = [{ name: 'integrity', ok: isIntact, detail }]
    if (configuration !== null) checks.push(configuration)
    if (payloads !== null) checks.push(slice === null ? payloadsCheck(payloads) : slices.checked(payloads))
    return checks
  } catch (error) {
    // The file can no longer be opened, but the service may still have what it needs in memory.
    if (error instanceof StoreDamaged) return [{ name: 'integrity', ok: false, detail: `${error.message}${REMEDY}` }]
    throw error
  }
}

const largeText = (size: number) =>
  `The store has ${mib(size)}: its rows are read in slices, and \`tacho backup\` reads its whole structure`

const REMEDY = '. Restore a backup'

const HEAP_MIB = 512

/** Runs the task in a new reader thread, so that neither writes nor reads wait for it. */
export async function runTask(file: string, task: 'backup' | 'check', args: unknown[]): Promise<unknown> {
  const thread = await startThread({ name: 'reader', file, heapMib: HEAP_MIB, onDeath: () => undefined })
  try {
    return await thread.call(task, args)
  } finally {
    await thread.close()
  }
}
