import { chmodSync, closeSync, fsyncSync, openSync, statSync, type Stats, type StatsFs } from 'node:fs'
import path from 'node:path'
import { stat, statfs } from 'node:fs/promises'
import Database from 'better-sqlite3'
import { StoreRefused } from '../engine/store.ts'

/**
 * Creates the file with a private mode, because others may read the directory. SQLite gives the log the mode of its
 * database.
 */
export function keepPrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
  for (const each of [file, `${file}-wal`, `${file}-shm`]) {
    const fileStats = statSync(each, { throwIfNoEntry: false })
    if (fileStats && (fileStats.mode & 0o077) !== 0 && mayChange(fileStats.uid)) chmodSync(each, 0o600)
  }
}

/** A process can change the mode only of its own files, even if it can write others. */
function mayChange(owner: number): boolean {
  const user = process.getuid?.()
  return user === 0 || user === owner
}

export function syncFile(file: string): void {
  syncPath(file)
  syncDirectory(path.dirname(file))
}

export function syncDirectory(directory: string): void {
  // Windows cannot open a directory; there a rename is durable without it.
  if (process.platform !== 'win32') syncPath(directory)
}

function syncPath(name: string) {
  const descriptor = openSync(name, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Node has no flock, and pids are ambiguous across containers, so the process keeps a lock database open. */

const LOCK_FILE = 'tacho.lock'

/** Returns the function that unlocks the directory. The end of the process unlocks it too. */
export function lockStore(directory: string): () => void {
  const file = path.join(directory, LOCK_FILE)
  keepPrivate(file)
  const db = new Database(file, { timeout: 0 })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!(error instanceof Database.SqliteError) || !error.code.startsWith('SQLITE_BUSY')) throw error
    throw new StoreRefused(`The store in ${directory} is open in another process. Stop that process first.`)
  }
  return () => db.close()
}

export type Disk = Awaited<ReturnType<typeof watchDisk>>

const EVERY_MS = 1_000

/** Watches the free space, and whether the open store is still the file at its path. If it is not, `onGone` is called once. */
export async function watchDisk(directory: string, file: string, minFreeBytes: number, onGone: (why: string) => void) {
  let free: number | null = null
  let reportedFull = false
  let gone: string | null = null
  const opened = statSync(file, { throwIfNoEntry: false })

  async function readSizes() {
    // For a removed directory, keep the last figure, so that no metric disappears.
    free = await statfs(directory).then(availableBytes, () => free)
    reportedFull = false
    if (opened !== undefined && gone === null) await lookAtFile(opened)
  }

  async function lookAtFile({ dev, ino }: Stats): Promise<void> {
    const fileStats = await stat(file).catch((error: NodeJS.ErrnoException) => error)
    if (fileStats instanceof Error) {
      // Other errors, such as EACCES or EIO, prove nothing about the file.
      if (fileStats.code !== 'ENOENT' && fileStats.code !== 'ENOTDIR') return
      gone = 'The file of the store was removed while it was open'
    } else if (fileStats.dev !== dev || fileStats.ino !== ino)
      gone = 'Another file took the place of the store while it was open'
    if (gone !== null) onGone(gone)
  }

  await readSizes()
  const timer = setInterval(() => void readSizes(), EVERY_MS)
  timer.unref()
  return {
    nearlyFull: () => reportedFull || (free !== null && free < minFreeBytes),
    /** True until the next check. */
    reportFull: () => {
      reportedFull = true
    },
    freeBytes: () => free,
    gone: () => gone,
    close: () => clearInterval(timer),
  }
}

function availableBytes({ bavail, bsize }: StatsFs): number {
  return bavail * bsize
}

export function sizeBytes(file: string): number | null {
  const [store, log] = [file, `${file}-wal`].map((name) => statSync(name, { throwIfNoEntry: false })?.size)
  return store === undefined ? null : store + (log ?? 0)
}
