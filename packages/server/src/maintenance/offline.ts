import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { newApiKey, newOperatorToken } from '../domain/people/credential.ts'
import { STORE_FILE } from '../storage/sqlite/database.ts'
import { openSqliteStorage } from '../storage/sqlite/open.ts'
import { restoreSqlite, verifyBackup, type Restored, type Seal } from '../storage/sqlite/backup.ts'
import type { Storage } from '../storage/storage.ts'
import { StoreRefused } from '../storage/engine/store.ts'
import type { EnvironmentRow } from '../storage/tenants/tenants.ts'
import { allRows } from '../storage/engine/page.ts'
import { fullKey, ownerToken } from './first-tenant.ts'

export { StoreRefused }

export interface RecoverOptions {
  /** Data directory, which no server may have open. */
  dataDir: string
  /** Servers of this database can keep running. */
  databaseUrl?: string | null
  operatorToken?: boolean
  apiKeyFor?: { workspace: string; environment: string }
  /** Also revokes all other operator tokens, or all other keys of the environment. */
  revokeOld?: boolean
}

/** New secrets. The store keeps only their hashes, so show them now. */
export interface Recovered {
  operatorToken: string | null
  apiKey: string | null
  revokedOperatorTokens: number
  revokedApiKeys: number
}

export async function recover(options: RecoverOptions): Promise<Recovered> {
  const { operatorToken = false, apiKeyFor, revokeOld = false } = options
  const storage = await open(options)
  try {
    const environment = apiKeyFor ? await environmentNamed(storage, apiKeyFor) : null
    const token = operatorToken ? await replaceToken(storage, revokeOld) : null
    const key = environment ? await replaceKey(storage, environment, revokeOld) : null
    return {
      operatorToken: token?.text ?? null,
      apiKey: key?.text ?? null,
      revokedOperatorTokens: token?.revoked ?? 0,
      revokedApiKeys: key?.revoked ?? 0,
    }
  } finally {
    await storage.close()
  }
}

async function open({ dataDir, databaseUrl = null }: RecoverOptions): Promise<Storage> {
  if (databaseUrl !== null) {
    const { openPostgresStorage } = await import('../storage/postgres/open.ts')
    return openPostgresStorage({ url: databaseUrl, poolSize: 2 })
  }
  const directory = path.resolve(dataDir)
  if (!existsSync(path.join(directory, STORE_FILE))) throw new StoreRefused(`There is no store in ${directory}.`)
  return openSqliteStorage({ directory, minFreeDiskBytes: 0, readers: 1, onTrouble: () => undefined })
}

export function restore(options: { from: string; dataDir: string; replace?: boolean; unverified?: boolean }): Restored {
  const { from, dataDir, ...choices } = options
  return restoreSqlite({ from: path.resolve(from), directory: path.resolve(dataDir), ...choices })
}

export const verify = (file: string): Seal => verifyBackup(path.resolve(file))

async function replaceToken(storage: Storage, revokeOld: boolean) {
  const token = newOperatorToken(randomBytes)
  const now = Date.now()
  await storage.createOperatorToken(ownerToken(token, 'recovered', now), [])
  return { text: token.text, revoked: revokeOld ? await storage.revokeOtherOperatorTokens(token.id, now) : 0 }
}

async function replaceKey(storage: Storage, { id: environmentId }: EnvironmentRow, revokeOld: boolean) {
  const key = newApiKey(randomBytes)
  const now = Date.now()
  const old = revokeOld ? await allRows((page) => storage.listApiKeys(environmentId, page)) : []
  const good = old.filter(({ revokedAt }) => revokedAt === null)
  await storage.createApiKey(fullKey(key, 'recovered', environmentId, now), [])
  for (const { id } of good) await storage.revokeApiKey(environmentId, id, now, [])
  return { text: key.text, revoked: good.length }
}

async function environmentNamed(
  storage: Storage,
  names: { workspace: string; environment: string },
): Promise<EnvironmentRow> {
  const workspaces = await allRows((page) => storage.listWorkspaces(page))
  const workspace = workspaces.find(({ name }) => name === names.workspace)
  if (!workspace) throw new StoreRefused(`There is no workspace ${JSON.stringify(names.workspace)}.`)
  const environments = await allRows((page) => storage.listEnvironments(workspace.id, page))
  const environment = environments.find(({ name }) => name === names.environment)
  if (environment) return environment
  throw new StoreRefused(`Workspace ${workspace.name} has no environment ${JSON.stringify(names.environment)}.`)
}
