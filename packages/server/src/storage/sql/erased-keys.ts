/**
 * What appends must know of erasures, exactly: an event that arrives at the same time as an erasure is either removed by
 * it or refused after it.
 *
 * On PostgreSQL, appends of an environment share a lock that a removal holds alone, until its transaction ends. The
 * embedded engine has one writer. Every removal changes the revision, so appends forget the runs, agents and envelopes
 * that they cache.
 */
import { LRUCache } from 'lru-cache'
import type { NewEvent } from '../events.ts'
import { inChunks, PLACES } from './chunks.ts'
import { insertRows } from './insert-rows.ts'
import { agentKey, textKey } from './keys.ts'
import type { Sql } from './sql.ts'

/** Later events are not refused. Times of events are smaller. */
export const FOR_EVER = Number.MAX_SAFE_INTEGER

export type NamedKind = 'run' | 'session' | 'agent' | 'client'

/** `id` of an agent: the key of its row. */
export const erasedKey = (kind: NamedKind, id: string): string => textKey(`${kind}\0${id}`)

/** Any number; separates these locks from those of others in the same database. */
const LOCK_SPACE = 7_221
const locks = (name: string) => `SELECT ${name}(hashtextextended(?, ${LOCK_SPACE})) AS held`
const SHARE = locks('pg_advisory_xact_lock_shared')
const ALONE = locks('pg_advisory_xact_lock')

const STATE = `SELECT COALESCE((SELECT revision FROM erasure_revisions WHERE environment_id = ?), 0) AS revision,
  CASE WHEN EXISTS (SELECT 1 FROM erased_keys WHERE environment_id = ?) THEN 1 ELSE 0 END AS "hasKeys"`

interface ErasureState {
  revision: number
  hasKeys: 0 | 1
}

/** Waits for appends under way and keeps new ones waiting, until the transaction ends. Then nothing cached is valid. */
export async function holdEnvironment(sql: Sql, environmentId: string): Promise<void> {
  if (sql.dialect === 'postgres') await sql.get(ALONE, [environmentId])
  const text = `INSERT INTO erasure_revisions AS r (environment_id, revision) VALUES (?, 1)
    ON CONFLICT (environment_id) DO UPDATE SET revision = r.revision + 1`
  await sql.run(text, [environmentId])
}

async function readErasureState(sql: Sql, environmentId: string): Promise<ErasureState> {
  const [, state] = await Promise.all([
    sql.dialect === 'postgres' ? sql.get(SHARE, [environmentId]) : null,
    sql.get<ErasureState>(STATE, [environmentId, environmentId]),
  ])
  return state ?? { revision: 0, hasKeys: 0 }
}

/** Refuses events up to `until` that name one of these. A key that is there gets the later time. */
export async function addErasedKeys(
  sql: Sql,
  environmentId: string,
  keys: readonly { key: string; until: number }[],
): Promise<void> {
  const rows = keys.map(({ key, until }) => ({ environment_id: environmentId, erased_key: key, until }))
  await insertRows(
    sql,
    'erased_keys AS k',
    rows.toSorted((a, b) => (a.erased_key < b.erased_key ? -1 : 1)),
    `ON CONFLICT (environment_id, erased_key) DO UPDATE
      SET until = CASE WHEN excluded.until > k.until THEN excluded.until ELSE k.until END`,
  )
}

type Named = Pick<NewEvent, 'runId' | 'sessionId' | 'agentId' | 'agentName' | 'clientId' | 'time'>

function keysOf({ runId, sessionId, agentId, agentName, clientId }: Named): string[] {
  const keys = [
    erasedKey('run', runId),
    erasedKey('agent', agentKey(agentId, agentName)),
    erasedKey('client', clientId),
  ]
  return sessionId === null ? keys : [...keys, erasedKey('session', sessionId)]
}

/** Until when each of these keys is refused. Those that were never erased are missing. */
async function erasedUntil(sql: Sql, environmentId: string, keys: string[]): Promise<Map<string, number>> {
  const text = `SELECT erased_key AS key, until FROM erased_keys WHERE environment_id = ? AND erased_key IN (${PLACES})`
  const rows = await inChunks(keys, (chunk) => sql.all<{ key: string; until: number }>(text, [environmentId, ...chunk]))
  return new Map(rows.map((row) => [row.key, row.until]))
}

/** Which of the events were erased. */
async function findErased(sql: Sql, environmentId: string, events: readonly Named[]): Promise<boolean[]> {
  const keys = events.map(keysOf)
  const until = await erasedUntil(sql, environmentId, keys.flat())
  return events.map(({ time }, index) => (keys[index] ?? []).some((key) => time <= (until.get(key) ?? -Infinity)))
}

/** Those of the clients that were not erased after they were seen. An erasure waits until the transaction ends. */
export async function withoutErasedClients<Client extends { clientId: string; seenAt: number }>(
  sql: Sql,
  environmentId: string,
  clients: readonly Client[],
): Promise<Client[]> {
  if ((await readErasureState(sql, environmentId)).hasKeys === 0) return [...clients]
  const keyOf = ({ clientId }: Client) => erasedKey('client', clientId)
  const until = await erasedUntil(sql, environmentId, clients.map(keyOf))
  return clients.filter((client) => client.seenAt > (until.get(keyOf(client)) ?? -Infinity))
}

/** The caches of an append are older than a removal: it starts over without them. */
export class StaleCaches extends Error {}

const ENVIRONMENTS_KEPT = 10_000

/** The state that the caches of this process belong to, per environment. */
export function knownErasures() {
  const states = new LRUCache<string, ErasureState>({ max: ENVIRONMENTS_KEPT })
  const revisionOf = (environmentId: string): number | undefined => states.get(environmentId)?.revision
  return {
    revisionOf,
    /**
     * Which of the events were erased. Where nothing was, the check shares the round trip that opens the runs: call
     * `confirm` then. `forget`: forgets what is cached.
     */
    async check(
      sql: Sql,
      environmentId: string,
      events: readonly Named[],
      forget: () => void,
    ): Promise<{ erased: number[]; confirm: () => Promise<void> }> {
      const cached = states.get(environmentId)
      const reading = readErasureState(sql, environmentId)
      const isOutdated = async () => {
        const state = await reading
        if (revisionOf(environmentId) === state.revision) return false
        states.set(environmentId, state)
        forget()
        return true
      }
      if (cached?.hasKeys === 0) {
        // If the work fails before, nothing awaits it.
        reading.catch(() => undefined)
        const confirm = async () => {
          if (await isOutdated()) throw new StaleCaches('Something was removed meanwhile')
        }
        return { erased: [], confirm }
      }
      await isOutdated()
      const found = (await reading).hasKeys === 1 ? await findErased(sql, environmentId, events) : []
      return { erased: found.flatMap((isErased, index) => (isErased ? index : [])), confirm: async () => undefined }
    },
  }
}
