/**
 * A backup ends with a seal, after the pages of the store: counts of its rows, and the SHA-256 of everything before it.
 * SQLite ignores bytes behind the last page, so a sealed backup still opens as a database.
 *
 *   pages of the store | counts, as JSON in COUNTS_BYTES | SHA-256 of both in hex | line feed
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  openSync,
  readSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { open, rm, stat } from 'node:fs/promises'
import { StoreRefused, type BackupCounts, type BackupResult } from '../engine/store.ts'
import { APPLICATION_ID, STORE_FILE } from './database.ts'
import { syncFile, keepPrivate, syncDirectory, lockStore } from './files.ts'
import path from 'node:path'
import Database from 'better-sqlite3'
import { checkApplied } from '../sql/engine/migrations.ts'
import { acknowledgedFile } from './transaction.ts'
import { appliedMigrations, knownMigrations } from './migrate.ts'

const COUNTS_BYTES = 512
const HASH_CHARS = 64
const SEAL_BYTES = COUNTS_BYTES + HASH_CHARS + 1
const CHUNK_BYTES = 1_048_576
const FORM = 'tacho-backup-1'

export interface Seal {
  counts: BackupCounts
  sha256: string
  /** Size of the store, without the seal. */
  storeBytes: number
}

/** Tables that are counted, by name of the count. */
const COUNTED = { runs: 'runs', events: 'events', policies: 'policies', people: 'operators' } as const

export function countRows(db: Database.Database): BackupCounts {
  const counts = Object.entries(COUNTED).map(([name, table]) => [
    name,
    db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0,
  ])
  return Object.fromEntries(counts) as BackupCounts
}

async function sealBackup(file: string, counts: BackupCounts): Promise<void> {
  const handle = await open(file, 'r+')
  try {
    const { size } = await handle.stat()
    const text = JSON.stringify({ form: FORM, ...counts })
    await handle.write(text.padEnd(COUNTS_BYTES), size)
    const hash = createHash('sha256')
    const content = handle.createReadStream({ start: 0, autoClose: false, highWaterMark: CHUNK_BYTES })
    for await (const chunk of content as AsyncIterable<Buffer>) hash.update(chunk)
    await handle.write(`${hash.digest('hex')}\n`, size + COUNTS_BYTES)
  } finally {
    await handle.close()
  }
}

/** Reads the whole file. Throws StoreRefused if one bit differs from the sealed content. */
function verifySeal(file: string): Seal {
  const descriptor = openSync(file, 'r')
  try {
    const { size } = fstatSync(descriptor)
    const tail = readTail(descriptor, size)
    if (tail === null) {
      throw new StoreRefused(
        `${file} has no checksum at its end: it is cut off, something was appended to it, or a build before checksums made it. ` +
          'To restore such a backup all the same, add --unverified.',
      )
    }
    if (hashUpTo(descriptor, size - HASH_CHARS - 1) !== tail.sha256) {
      throw new StoreRefused(`${file} is damaged: its content does not match its checksum. Use another backup.`)
    }
    return { ...tail, storeBytes: size - SEAL_BYTES }
  } finally {
    closeSync(descriptor)
  }
}

function readTail(descriptor: number, size: number): Pick<Seal, 'counts' | 'sha256'> | null {
  if (size <= SEAL_BYTES) return null
  const tail = Buffer.alloc(SEAL_BYTES)
  readSync(descriptor, tail, 0, SEAL_BYTES, size - SEAL_BYTES)
  const text = tail.toString('latin1')
  const [, sha256 = ''] = /([0-9a-f]{64})\n$/.exec(text) ?? []
  if (sha256 === '' || !text.startsWith(`{"form":"${FORM}"`)) return null
  try {
    const { form: _, ...counts } = JSON.parse(text.slice(0, COUNTS_BYTES)) as BackupCounts & { form: string }
    return { counts, sha256 }
  } catch {
    // A bit has changed. The hash would not match either.
    return null
  }
}

function hashUpTo(descriptor: number, end: number): string {
  const hash = createHash('sha256')
  const chunk = Buffer.alloc(CHUNK_BYTES)
  for (let at = 0; at < end;) {
    const read = readSync(descriptor, chunk, 0, Math.min(chunk.length, end - at), at)
    if (read === 0) break
    hash.update(chunk.subarray(0, read))
    at += read
  }
  return hash.digest('hex')
}

export async function backupStore(target: string, copy: () => Promise<BackupCounts>): Promise<BackupResult> {
  try {
    // Create the file exclusively: VACUUM INTO would also fill another program's empty file.
    await (await open(target, 'wx', 0o600)).close()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return { ok: false, reason: 'exists' }
    throw error
  }
  try {
    await sealBackup(target, await copy())
    syncFile(target)
    return { ok: true, bytes: (await stat(target)).size }
  } catch (error) {
    await rm(target, { force: true })
    throw error
  }
}

interface RestoreOptions {
  from: string
  directory: string
  replace?: boolean
  /** Also accepts a backup without a checksum, from a version before checksums. */
  unverified?: boolean
}

export interface Restored {
  bytes: number
  replaced: string | null
  /** Null: the backup has no checksum. */
  sha256: string | null
  /** Counts of the restored store, which are compared with those of the backup. */
  counts: BackupCounts
}

export function restoreSqlite({ from, directory, replace = false, unverified = false }: RestoreOptions): Restored {
  checkBackup(from)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const unlock = lockStore(directory)
  try {
    const store = path.join(directory, STORE_FILE)
    if (existsSync(store) && !replace)
      throw new StoreRefused(`${directory} already contains a store: --replace moves it aside.`)
    const copy = `${store}.restoring`
    rmSync(copy, { force: true })
    copyFileSync(from, copy, constants.COPYFILE_FICLONE)
    keepPrivate(copy)
    // Unseals the copy, because it becomes the store.
    const { sha256, counts } = unseal(copy, from, unverified)
    syncFile(copy)
    const replaced = existsSync(store) ? putAside(store) : null
    // The acknowledgements of the replaced store do not apply to this one.
    rmSync(acknowledgedFile(store), { force: true })
    renameSync(copy, store)
    syncDirectory(directory)
    return { bytes: statSync(store).size, replaced, sha256, counts }
  } finally {
    unlock()
  }
}

/** Verifies the seal and removes it. Throws, and leaves no file, if the store is not what was sealed. */
function unseal(copy: string, from: string, unverified: boolean): { sha256: string | null; counts: BackupCounts } {
  try {
    const seal = sealOf(copy, from, unverified)
    if (seal !== null) truncateSync(copy, seal.storeBytes)
    const counts = countsOf(copy)
    if (seal !== null && JSON.stringify(seal.counts) !== JSON.stringify(counts)) {
      throw new StoreRefused(`${from} is damaged: it does not hold what its checksum names.`)
    }
    return { sha256: seal?.sha256 ?? null, counts }
  } catch (error) {
    rmSync(copy, { force: true })
    throw error
  }
}

function sealOf(copy: string, from: string, unverified: boolean): Seal | null {
  try {
    return verifySeal(copy)
  } catch (error) {
    if (!(error instanceof StoreRefused)) throw error
    if (unverified) return null
    throw new StoreRefused(error.message.replace(copy, from))
  }
}

function countsOf(file: string): BackupCounts {
  const db = new Database(file, { readonly: true })
  try {
    return countRows(db)
  } finally {
    db.close()
  }
}

/** Reads the whole file and checks its structure, its schema and its checksum. */
export function verifyBackup(file: string): Seal {
  checkBackup(file)
  return verifySeal(file)
}

/** The log moves too: it may hold commits that are not in the file yet. */
function putAside(store: string): string {
  const aside = `${store}.replaced-${new Date().toISOString().replaceAll(':', '-')}`
  rmSync(`${store}-shm`, { force: true })
  if (existsSync(`${store}-wal`)) renameSync(`${store}-wal`, `${aside}-wal`)
  if (existsSync(acknowledgedFile(store))) renameSync(acknowledgedFile(store), acknowledgedFile(aside))
  renameSync(store, aside)
  return aside
}

function checkBackup(file: string): void {
  if (!existsSync(file)) throw new StoreRefused(`File ${file} does not exist.`)
  if (existsSync(`${file}-wal`)) {
    throw new StoreRefused(`${file} is a store in use, not a backup: it has a write-ahead log beside it.`)
  }
  const db = new Database(file, { readonly: true })
  try {
    if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
      throw new StoreRefused(`${file} is not a backup of a Tacho store.`)
    }
    checkApplied(appliedMigrations(db), knownMigrations())
    const checkResult = db.pragma('quick_check(1)', { simple: true }) as string
    if (checkResult !== 'ok') throw new StoreRefused(`${file} is damaged: ${checkResult}`)
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error
    throw new StoreRefused(`${file} cannot be read as a Tacho store: ${error.message}`)
  } finally {
    db.close()
  }
}
