import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config/config.ts'
import { SNAPSHOT_PREFIX } from '../http/data/backups.ts'
import type { Storage } from '../storage/storage.ts'
import { StoreAway, type StoreWarning } from '../storage/engine/store.ts'

const WARN_EVERY_MS = 60_000

export interface StorageWatch {
  log?: FastifyBaseLogger | undefined
  onTrouble: (error: Error) => void
}

export async function openStorage(config: Config, watch: StorageWatch): Promise<Storage> {
  return config.databaseUrl === null ? openEmbedded(config, watch) : openDatabase(config.databaseUrl, config, watch)
}

/** Location of the store for people, without user and password. */
export function storagePlace({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === null) return path.resolve(dataDir)
  const { host, pathname } = new URL(databaseUrl)
  return `the database ${host}${pathname}`
}

async function openEmbedded(config: Config, { log, onTrouble }: StorageWatch): Promise<Storage> {
  const { openSqliteStorage } = await import('../storage/sqlite/open.ts')
  const directory = path.resolve(config.dataDir)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const storage = await openSqliteStorage({
    directory,
    minFreeDiskBytes: config.minFreeDisk,
    commitWaitMs: config.readyCommitWait,
    onTrouble,
    onWarning: throttledWarning(log),
  })
  // A killed process left these files: this process now holds the store's lock.
  for (const name of readdirSync(directory)) {
    if (name.startsWith(SNAPSHOT_PREFIX)) rmSync(path.join(directory, name))
  }
  return storage
}

async function openDatabase(url: string, config: Config, { log }: StorageWatch): Promise<Storage> {
  const { openPostgresStorage } = await import('../storage/postgres/open.ts')
  return openPostgresStorage({
    url,
    poolSize: config.databasePool,
    timeouts: { statementMs: config.databaseTimeout },
    commitWaitMs: config.readyCommitWait,
    onReachable(reachable, { why, ...counts }) {
      if (reachable) log?.info(counts, 'the database can be reached again')
      else log?.warn({ why }, 'cannot reach the database')
    },
    onWarning: throttledWarning(log),
  })
}

/** Logs one line while a store is away, and one when it is back. */
export function throttledWarning(log: FastifyBaseLogger | undefined): StoreWarning {
  const warned = new Map<string, { at: number; since: number }>()
  return (what, err) => {
    if (err instanceof StoreAway) return
    const last = warned.get(what)
    if (last && performance.now() - last.at < WARN_EVERY_MS) return void last.since++
    log?.warn({ err, before: last?.since }, what)
    warned.set(what, { at: performance.now(), since: 0 })
  }
}
