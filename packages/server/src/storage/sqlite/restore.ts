import { constants, copyFileSync, existsSync, mkdirSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { checkApplied } from '../sql/engine/migrations.ts'
import { StoreRefused, type BackupCounts } from '../engine/store.ts'
import { acknowledgedFile } from './transaction.ts'
import { APPLICATION_ID, STORE_FILE } from './database.ts'
import { keepPrivate, syncDirectory, syncFile, lockStore } from './files.ts'
import { appliedMigrations, knownMigrations } from './migrate.ts'
import { countRows, verifySeal, type Seal } from './backup.ts'

export interface RestoreOptions {
  from: string
  directory: string
  replace?: boolean
  /** Accepts a backup without a checksum too, made by a build before them. */
  unverified?: boolean
}

export interface Restored {
  bytes: number
  replaced: string | null
  /** Null: the backup has no checksum. */
  sha256: string | null
  /** What the restored store holds; it is compared with what the backup says. */
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
    // The copy, because it becomes the store.
    const { sha256, counts } = unseal(copy, from, unverified)
    syncFile(copy)
    const replaced = existsSync(store) ? putAside(store) : null
    // The acknowledgements of a deleted store say nothing about this one.
    rmSync(acknowledgedFile(store), { force: true })
    renameSync(copy, store)
    syncDirectory(directory)
    return { bytes: statSync(store).size, replaced, sha256, counts }
  } finally {
    unlock()
  }
}

/** Verifies the seal and takes it off. Throws, and leaves nothing, if the store is not what was sealed. */
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
