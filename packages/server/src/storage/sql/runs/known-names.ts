/**
 * The number of names is bounded, because each adds a row per hour and agent. Names beyond the bound share the bucket
 * "other".
 */
import { LRUCache } from 'lru-cache'
import { entryBytes } from '../record/known-rows.ts'
import { insertJsonRows, type InsertedTable } from '../engine/rows.ts'
import { textKey } from '../engine/keys.ts'
import { holdName } from '../engine/revision.ts'
import type { Sql } from '../engine/sql.ts'

const NAMES_PER_ENVIRONMENT = 1_000
const OTHER = 'other'
export const OTHER_KEY = textKey(OTHER)
const CACHE_BYTES = 8 * 1_048_576
/** Memory of one key: a hash in hex, and its entry in a set. */
const KEY_BYTES = 150

const TABLES = {
  models: {
    name: 'models',
    columns: { model_key: 'text', model: 'text' },
    conflict: 'ON CONFLICT (environment_id, model_key) DO NOTHING',
  },
  tools: {
    name: 'tools',
    columns: { tool_key: 'text', tool: 'text' },
    conflict: 'ON CONFLICT (environment_id, tool_key) DO NOTHING',
  },
} as const satisfies Record<string, InsertedTable>

export type Kind = keyof typeof TABLES
const KINDS = ['models', 'tools'] as const satisfies readonly Kind[]

/** Keys by name. The empty name has the empty key. */
export type NameKeys = Record<Kind, ReadonlyMap<string, string>>

export interface Buckets extends NameKeys {
  added: Record<Kind, [key: string, name: string][]>
}

const NONE: ReadonlySet<string> = new Set()

const ownNames = (keys: ReadonlySet<string>): number => keys.size - (keys.has(OTHER_KEY) ? 1 : 0)

/** Names with a bucket are never deleted, so this cache stays valid. */
export function knownNames() {
  const known = new LRUCache<string, ReadonlySet<string>>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ size }, place) => entryBytes(place.length) + size * KEY_BYTES,
  })

  async function load(sql: Sql, kind: Kind, environmentId: string): Promise<ReadonlySet<string>> {
    const [key] = Object.keys(TABLES[kind].columns)
    const text = `SELECT ${key} AS key FROM ${kind} WHERE environment_id = :env`
    const rows = await sql.all<{ key: string }>(text, { env: environmentId })
    const keys = new Set(rows.map((row) => row.key))
    known.set(placeOf(kind, environmentId), keys)
    return keys
  }

  async function bucketsOf(sql: Sql, kind: Kind, environmentId: string, names: Iterable<string>) {
    const keys = new Map(Array.from(names, (name) => [name, name === '' ? '' : textKey(name)]))
    let stored = known.get(placeOf(kind, environmentId)) ?? NONE
    // A cached full set needs no reload: sets only grow.
    const mayAdd = () =>
      ownNames(stored) < NAMES_PER_ENVIRONMENT && [...keys.values()].some((key) => key !== '' && !stored.has(key))
    // Another node may have stored the name.
    if (mayAdd()) stored = await load(sql, kind, environmentId)
    if (mayAdd() && sql.dialect === 'postgres') {
      // Without the lock, two transactions could both take the last places. A node that read the names in between would
      // count a name as "other" that other nodes count separately. The lock is a separate statement, because a
      // statement that waits does not see what was committed meanwhile.
      await holdName(sql, placeOf(kind, environmentId))
      stored = await load(sql, kind, environmentId)
    }
    const added = new Map<string, string>()
    let left = NAMES_PER_ENVIRONMENT - ownNames(stored)
    for (const [name, key] of keys) {
      if (key === '' || stored.has(key)) continue
      const isOwn = key !== OTHER_KEY && left > 0
      if (isOwn) left--
      else keys.set(name, OTHER_KEY)
      if (isOwn) added.set(key, name)
      else if (!stored.has(OTHER_KEY)) added.set(OTHER_KEY, OTHER)
    }
    return { keys, added: [...added].toSorted(([a], [b]) => (a < b ? -1 : 1)) }
  }

  return {
    async bucketsOf(sql: Sql, environmentId: string, used: Record<Kind, Iterable<string>>): Promise<Buckets> {
      const models = await bucketsOf(sql, 'models', environmentId, used.models)
      const tools = await bucketsOf(sql, 'tools', environmentId, used.tools)
      return { models: models.keys, tools: tools.keys, added: { models: models.added, tools: tools.added } }
    },
    /** Call this after the commit. */
    keep(environmentId: string, { added }: Buckets): void {
      for (const kind of KINDS) {
        const place = placeOf(kind, environmentId)
        const stored = known.get(place)
        if (!stored || added[kind].length === 0) continue
        known.set(place, new Set([...stored, ...added[kind].map(([key]) => key)]))
      }
    },
  }
}

const placeOf = (kind: Kind, environmentId: string): string => `${kind} ${environmentId}`

export function storeNames(sql: Sql, environmentId: string, { added }: Buckets): Promise<unknown>[] {
  return KINDS.filter((kind) => added[kind].length > 0).map((kind) => {
    return insertJsonRows(sql, TABLES[kind], environmentId, added[kind])
  })
}
