import { write } from '../engine/act.ts'
import type { CredentialUse, FirstTenant } from '../../tenants/control.ts'
import { insertEnvironment } from './environments.ts'
import { insertInvitation } from '../people/invitations.ts'
import { growRevision, lockControl } from '../engine/revision.ts'
import { insertRows } from '../engine/insert-rows.ts'
import type { Sql } from '../engine/sql.ts'
import { insertWorkspace } from './workspaces.ts'

export const controlActs = write({ initialise, secret, touchCredentials })

async function initialise(sql: Sql, first: FirstTenant): Promise<'created' | 'not_empty'> {
  await lockControl(sql)
  if ((await sql.get('SELECT id FROM workspaces LIMIT 1')) !== null) return 'not_empty'
  await insertWorkspace(sql, first.workspace)
  await insertEnvironment(sql, first.environment)
  await insertRows(sql, 'api_keys', [first.apiKey])
  await insertRows(sql, 'operator_tokens', [first.operatorToken])
  if (first.invitation) await insertInvitation(sql, first.invitation)
  await growRevision(sql)
  return 'created'
}

export async function secret(sql: Sql, name: string, candidate: string): Promise<string> {
  await insertRows(sql, 'secrets', [{ name, value: candidate }], 'ON CONFLICT (name) DO NOTHING')
  const row = await sql.get<{ value: string }>('SELECT value FROM secrets WHERE name = :name', { name })
  return row?.value ?? candidate
}

const TABLES = {
  api_key: ['api_keys', 'id'],
  operator_token: ['operator_tokens', 'id'],
  session: ['operator_sessions', 'token_hash'],
} as const

async function touchCredentials(sql: Sql, uses: CredentialUse[]): Promise<void> {
  // Sorted, so that two nodes cannot deadlock.
  const sorted = uses.toSorted((a, b) => (a.kind + a.id < b.kind + b.id ? -1 : 1))
  for (const { kind, id, at } of sorted) {
    const newer = '(last_used_at IS NULL OR last_used_at < :at)'
    const [table, key] = TABLES[kind]
    await sql.run(`UPDATE ${table} SET last_used_at = :at WHERE ${key} = :id AND ${newer}`, { at, id })
  }
}
