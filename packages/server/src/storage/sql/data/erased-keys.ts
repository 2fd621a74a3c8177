/** On PostgreSQL, appends of an environment share a lock, which a removal holds alone until its transaction ends. */
import { allIn, insertRows } from '../engine/rows.ts'
import { agentKey, textKey } from '../engine/keys.ts'
import type { Sql } from '../engine/sql.ts'

/** A key refuses events up to a time. No event is as late as this one. */
export const FOR_EVER = Number.MAX_SAFE_INTEGER

/** Removal time of a run that grew while an erasure counted it: refuses all events until the removal sets the real time. */
export const HELD = FOR_EVER - 1

/**
 * `approval`, `record`, `issue` and `agentRow` name single rows, so that a retry or an import does not restore them.
 * `agent` refuses only events up to the erasure, because the agent may continue. `agentRow` keeps imports from restoring
 * the name of the erased agent, forever.
 */
export type NamedKind = 'run' | 'session' | 'agent' | 'client' | 'approval' | 'record' | 'issue' | 'agentRow'

/** `id`: for an agent, approval or record, the key of its row; for an issue or an agent's row, its id. */
export const erasedKey = (kind: NamedKind, id: string): string => textKey(`${kind}\0${id}`)

/** Any number. It keeps these locks apart from other programs' locks in the same database. */
const LOCK_SPACE = 7_221
const locks = (name: string, environment: string) =>
  `SELECT ${name}(hashtextextended(${environment}, ${LOCK_SPACE})) AS held`

/**
 * A separate statement, because one that waits for the lock does not see what is committed meanwhile. `environment`:
 * SQL.
 */
export const removalLock = (environment: string): string => locks('pg_advisory_xact_lock_shared', environment)

export async function keepRemovalsWaiting(sql: Sql, environmentId: string): Promise<void> {
  if (sql.dialect === 'postgres') await sql.get(removalLock(':env'), { env: environmentId })
}

/** Waits for running appends, and blocks new ones until the transaction ends. Then all caches are invalid. */
export async function holdEnvironment(sql: Sql, environmentId: string): Promise<void> {
  const of = { env: environmentId }
  if (sql.dialect === 'postgres') await sql.get(locks('pg_advisory_xact_lock', ':env'), of)
  const text = `INSERT INTO erasure_revisions AS r (environment_id, revision) VALUES (:env, 1)
    ON CONFLICT (environment_id) DO UPDATE SET revision = r.revision + 1`
  await sql.run(text, of)
}

export async function addErasedKeys(sql: Sql, environmentId: string, keys: readonly { key: string; until: number }[]) {
  const rows = keys.map(({ key, until }) => ({ environmentId, erasedKey: key, until }))
  rows.sort((a, b) => (a.erasedKey < b.erasedKey ? -1 : 1))
  const later = `ON CONFLICT (environment_id, erased_key) DO UPDATE
    SET until = CASE WHEN k.until = ${HELD} OR excluded.until > k.until THEN excluded.until ELSE k.until END`
  await insertRows(sql, 'erased_keys AS k', rows, later)
}

export interface Named {
  runId: string | null
  sessionId: string | null
  agentId: string | null
  /** Issue records have none. */
  agentName?: string
  clientId: string
  time: number
}

function keysOf({ runId, sessionId, agentId, agentName, clientId }: Named): string[] {
  const keys = [erasedKey('client', clientId)]
  if (runId !== null) keys.push(erasedKey('run', runId))
  if (sessionId !== null) keys.push(erasedKey('session', sessionId))
  if (agentId !== null || agentName !== undefined) keys.push(erasedKey('agent', agentKey(agentId, agentName ?? '')))
  return keys
}

async function erasedUntil(sql: Sql, environmentId: string, keys: string[]): Promise<Map<string, number>> {
  const text = `SELECT erased_key AS key, until FROM erased_keys WHERE environment_id = :env AND erased_key IN (:keys)`
  const rows = await allIn<{ key: string; until: number }>(sql, text, { env: environmentId, keys })
  return new Map(rows.map((row) => [row.key, row.until]))
}

/** `later`: the run was erased, but events after the erasure are accepted. Null: no part of it was erased. */
export type ErasedState = 'erased' | 'later' | null

export async function findErased(sql: Sql, environmentId: string, events: readonly Named[]): Promise<ErasedState[]> {
  const keys = events.map(keysOf)
  const until = await erasedUntil(sql, environmentId, keys.flat())
  return events.map(({ time, runId }, index) => {
    if ((keys[index] ?? []).some((key) => time <= (until.get(key) ?? -Infinity))) return 'erased'
    return runId !== null && until.has(erasedKey('run', runId)) ? 'later' : null
  })
}

/** Whether the key was erased, or the record names a subject that was erased after the record's time. */
export function isErased(sql: Sql, environmentId: string, key: string, record: Named): Promise<boolean> {
  return isOneErased(sql, environmentId, [key, ...keysOf(record)], record.time)
}

export function isKeyErased(sql: Sql, environmentId: string, key: string, time: number): Promise<boolean> {
  return isOneErased(sql, environmentId, [key], time)
}

async function isOneErased(sql: Sql, environmentId: string, keys: string[], time: number): Promise<boolean> {
  await keepRemovalsWaiting(sql, environmentId)
  const until = await erasedUntil(sql, environmentId, keys)
  return [...until.values()].some((last) => time <= last)
}

export async function withoutErasedClients<Client extends { clientId: string; seenAt: number }>(
  sql: Sql,
  environmentId: string,
  clients: readonly Client[],
): Promise<Client[]> {
  await keepRemovalsWaiting(sql, environmentId)
  const keyOf = ({ clientId }: Client) => erasedKey('client', clientId)
  const until = await erasedUntil(sql, environmentId, clients.map(keyOf))
  return clients.filter((client) => client.seenAt > (until.get(keyOf(client)) ?? -Infinity))
}
