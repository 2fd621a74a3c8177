import { mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { actMethods, type ActName } from '../sql/acts.ts'
import type { Storage } from '../storage.ts'
import { StoreRefused, type BackupCounts, type StoreWarning } from '../engine/store.ts'
import { createWaitingCommits, createPayloadSlices, MIB, type PayloadSlices } from '../engine/store-checks.ts'
import { acknowledgedFile, missingChanges } from './transaction.ts'
import { backupStore } from './backup.ts'
import { openDatabase, STORE_FILE, type Durability } from './database.ts'
import { sizeBytes, watchDisk, lockStore } from './files.ts'
import { eventQueue } from './event-queue.ts'
import { inspectStore, missingText, runTask } from './inspect.ts'
import { receivedError, type Replies, startReplacedThread, startThread } from './thread.ts'
import { migrate } from './migrate.ts'
import { damageText } from '../sql/engine/checksum-checks.ts'
import { openReaders } from './readers.ts'

export interface SqliteOptions {
  directory: string
  minFreeDiskBytes: number
  queueBytes?: number
  readers?: number
  /** The store is not ready if the oldest write has waited this long for its commit. */
  commitWaitMs?: number
  /** Called when a thread fails in a way that a new thread cannot fix: the process should end. */
  onTrouble: (error: Error) => void
  onWarning?: StoreWarning
  slices?: PayloadSlices
}

const RESCUE = 'what is recorded can be saved with `tacho backup`, as long as this process runs'
const WRITER_HEAP_MIB = 512
const READER_HEAP_MIB = 256
/** Bounded, because a reader takes 20 MB while it serves. */
const MOST_READERS = 8

const defaultReaders = (): number => Math.min(MOST_READERS, Math.max(2, Math.floor(availableParallelism() / 2)))

export async function openSqliteStorage(options: SqliteOptions): Promise<Storage> {
  const { directory, minFreeDiskBytes, queueBytes = 64 * MIB, readers: readerCount = defaultReaders() } = options
  const { onTrouble, onWarning, commitWaitMs = 30_000, slices = createPayloadSlices() } = options
  const file = path.join(directory, STORE_FILE)
  const { unlock, missing } = prepare(directory, file)
  if (missing > 0) onWarning?.('the store is older than its last acknowledgement', new Error(missingText(missing)))
  const opened: (() => unknown)[] = [unlock]
  const counts = { commits: 0, committedEvents: 0, actMs: 0, damagedPayloads: 0, damagedSettings: 0 }
  let damage: string | null = null
  let storeBytes: number | null = null
  let freeBytes: number | null = null
  try {
    const onGone = (why: string) => onWarning?.('THE STORE IS GONE: events are refused', new Error(`${why}: ${RESCUE}`))
    const disk = await watchDisk(directory, file, minFreeDiskBytes, onGone)
    opened.unshift(disk.close)
    const onReplies = ({ replies, commits = 0, events = 0, actMs = 0, damaged = [], warning, ...sizes }: Replies) => {
      freeBytes = sizes.freeBytes ?? freeBytes
      counts.commits += commits
      counts.committedEvents += events
      counts.actMs += actMs
      for (const damagedThing of damaged) {
        counts['table' in damagedThing ? 'damagedSettings' : 'damagedPayloads']++
        onWarning?.(...damageText(damagedThing))
      }
      const error = replies.find((reply) => reply.error?.isDamage)?.error
      if (error && damage === null) {
        damage = `${error.message}. Restore a backup`
        onWarning?.('the store is damaged: events are refused', receivedError(error))
      }
      if (warning) onWarning?.(warning.what, receivedError(warning.error))
    }
    const start = (name: 'writer' | 'reader', heapMib: number) =>
      startReplacedThread((onDeath) => startThread({ name, file, heapMib, onReplies, onDeath }), onTrouble)
    const writer = await start('writer', WRITER_HEAP_MIB)
    opened.unshift(writer.close)
    const readers = await openReaders(() => start('reader', READER_HEAP_MIB), readerCount)
    // Readers close before the writer, because they would block its last checkpoint.
    opened.unshift(readers.close)
    const commits = createWaitingCommits()
    const queue = eventQueue(writer, disk, () => damage !== null, queueBytes, commits)
    let closed: Promise<void> | undefined
    return {
      ...actMethods((name: ActName, kind, args) =>
        kind === 'write' ? commits.during(writer.call(name, args)) : readers.call(name, args),
      ),
      engine: 'sqlite',
      appendEvents: queue.append,
      writesRefused: queue.refused,
      async ping() {
        await Promise.all([readers, writer].map((threads) => threads.call('ping', [])))
      },
      async inspect() {
        const durability = (await writer.call('durability', [])) as Durability
        return inspectStore({
          file,
          disk,
          minFreeDiskBytes,
          durability,
          freeBytes,
          commitWaitMs: commits.oldestMs(),
          missing,
          queuedBytes: queue.bytes(),
          queueBytes,
          slices,
        })
      },
      backup: (target) =>
        backupStore(
          target,
          () =>
            // The task's thread opens the file by its name, so the file must still be there.
            (disk.gone() === null
              ? runTask(file, 'backup', [target])
              : readers.call('backup', [target])) as Promise<BackupCounts>,
        ),
      nodes: () => 1,
      clockOffsetMs: () => 0,
      damage: () => damage,
      trouble() {
        const reason = damage ?? disk.gone()
        if (reason !== null) return { code: 'storage_unavailable', reason }
        if (!writer.alive()) return { code: 'storage_unavailable', reason: 'The writer of the store is starting' }
        if (disk.nearlyFull()) return { code: 'storage_full', reason: 'The disk of the store is nearly full' }
        return commits.trouble(commitWaitMs)
      },
      gauges: () => ({
        queuedBytes: queue.bytes(),
        ...counts,
        diskFreeBytes: disk.freeBytes(),
        freeBytes,
        // If the file was removed, report its last size.
        storeBytes: (storeBytes = sizeBytes(file) ?? storeBytes),
        commitWaitMs: commits.oldestMs(),
      }),
      close: () => (closed ??= close()),
    }
  } catch (error) {
    await close()
    throw error
  }

  async function close() {
    while (opened.length > 0) await opened.shift()?.()
  }
}

function prepare(directory: string, file: string): { unlock: () => void; missing: number } {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const unlock = lockStore(directory)
    try {
      return { unlock, missing: migrateFile(file) }
    } catch (error) {
      unlock()
      throw error
    }
  } catch (error) {
    throw refusal(directory, error)
  }
}

function migrateFile(file: string): number {
  const db = openDatabase(file)
  try {
    refuseEmptied(db, file)
    migrate(db)
    return missingChanges(db, file)
  } finally {
    db.close()
  }
}

/** A new store in its place would hide that all keys, policies and runs are lost. */
function refuseEmptied(db: Database.Database, file: string): void {
  const isEmpty = db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined
  const missing = isEmpty ? missingChanges(db, file) : 0
  if (missing === 0) return
  throw new StoreRefused(
    `${file} is empty, although ${missing.toLocaleString('en')} changes of it were acknowledged. ` +
      `Restore a backup (tacho restore), or remove ${path.basename(acknowledgedFile(file))} to begin with an empty store.`,
  )
}

/** People can fix an error of the system or SQLite on open; any other error is a bug. */
function refusal(directory: string, error: unknown): unknown {
  const storeProblem = error instanceof Database.SqliteError || (error instanceof Error && 'syscall' in error)
  if (!storeProblem) return error
  const { code = '' } = error as NodeJS.ErrnoException
  const [, remedy = ''] = REMEDIES.find(([codes]) => codes.test(code)) ?? []
  return new StoreRefused(`The store in ${directory} cannot be opened: ${error.message}.${remedy}`)
}

const REMEDIES: readonly [codes: RegExp, remedy: string][] = [
  [/^SQLITE_(CORRUPT|NOTADB)/, ' It is damaged, or not a store. To restore a backup, use tacho restore.'],
  [
    /^(EROFS|EACCES|EPERM|SQLITE_(READONLY|CANTOPEN|PERM))/,
    ' The server must be able to write there, files and folder.',
  ],
  [/^(ENOSPC|EDQUOT|SQLITE_FULL)/, ' Free space on its disk.'],
]
