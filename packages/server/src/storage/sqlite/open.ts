/** Opens the embedded engine: one file, one writer thread, some reader threads. */
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { actMethods, type ActName } from '../sql/acts.ts'
import {
  StorageError,
  type EventBatchRows,
  type EventVerdict,
  type Storage,
  type StorageErrorCode,
} from '../storage.ts'
import { backupStore } from './backup.ts'
import { openDatabase, STORE_FILE } from './database.ts'
import { sizeBytes, watchDisk } from './disk.ts'
import type { Durability } from './durable.ts'
import { inspectStore } from './inspect.ts'
import { lockStore } from './lock.ts'
import { migrate } from './migrate.ts'
import { startThread } from './thread.ts'

export interface SqliteOptions {
  directory: string
  /** Writes are refused while less is free where the store lies. */
  minFreeDiskBytes: number
  /** Bytes of events that may wait for a commit. */
  queueBytes?: number
  readers?: number
  /** A thread of the store died: nothing can be trusted to work any more, and the process should end. */
  onTrouble: (error: Error) => void
}

const MIB = 1_048_576
/** What an event weighs in the queue beside its payload, roughly. */
const EVENT_BYTES = 500

export async function openSqliteStorage(options: SqliteOptions): Promise<Storage> {
  const { directory, minFreeDiskBytes, queueBytes = 64 * MIB, readers: readerCount = 2, onTrouble } = options
  mkdirSync(directory, { recursive: true })
  const unlock = lockStore(directory)
  const file = path.join(directory, STORE_FILE)
  try {
    prepare(file)
  } catch (error) {
    unlock()
    throw error
  }
  const disk = await watchDisk(directory, minFreeDiskBytes)
  const counts = { commits: 0, committedEvents: 0 }
  const writer = await startThread({
    name: 'writer',
    file,
    heapMib: 512,
    onReplies: ({ commits = 0, events = 0 }) => {
      counts.commits += commits
      counts.committedEvents += events
    },
    onDeath: onTrouble,
  })
  const readers = await Promise.all(
    Array.from({ length: readerCount }, () => startThread({ name: 'reader', file, heapMib: 256, onDeath: onTrouble })),
  )
  let queuedBytes = 0

  const idlest = () => readers.reduce((best, reader) => (reader.pending() < best.pending() ? reader : best))
  const call = (name: ActName, kind: 'read' | 'write', args: unknown[]) =>
    (kind === 'write' ? writer : idlest()).call(name, args)

  function writesRefused(): StorageErrorCode | null {
    if (disk.nearlyFull()) return 'storage_full'
    return queuedBytes >= queueBytes ? 'overloaded' : null
  }

  async function appendEvents(batch: EventBatchRows): Promise<EventVerdict[]> {
    const refused = writesRefused()
    if (refused === 'storage_full') throw new StorageError(refused, 'The disk is nearly full')
    const bytes = batch.events.reduce((sum, { payload }) => sum + payload.length + EVENT_BYTES, 0)
    if (refused || (queuedBytes > 0 && queuedBytes + bytes > queueBytes)) {
      throw new StorageError('overloaded', 'Too many events wait for a commit')
    }
    queuedBytes += bytes
    try {
      return (await writer.call('appendEvents', [batch])) as EventVerdict[]
    } finally {
      queuedBytes -= bytes
    }
  }

  return {
    ...actMethods(call),
    engine: 'sqlite',
    appendEvents,
    writesRefused,
    async ping() {
      await Promise.all([idlest(), writer].map((thread) => thread.call('ping', [])))
    },
    async inspect() {
      const durability = (await writer.call('durability', [])) as Durability
      return inspectStore({ file, disk, minFreeDiskBytes, durability, queuedBytes, queueBytes })
    },
    backup: (target) => backupStore(file, target),
    gauges: () => ({ queuedBytes, ...counts, diskFreeBytes: disk.freeBytes(), storeBytes: sizeBytes(file) }),
    async close() {
      disk.close()
      await Promise.all(readers.map((reader) => reader.close()))
      await writer.close()
      unlock()
    },
  }
}

function prepare(file: string) {
  const db = openDatabase(file)
  try {
    migrate(db)
  } finally {
    db.close()
  }
}
