/**
 * Reads in one statement what an append must know of its environment: what was removed from it, what must not be stored
 * again, and whether it is searched. Every removal changes the revision, so appends forget the runs, agents and
 * envelopes that they cache. An event that arrives during an erasure is either removed by it or refused after it,
 * because removals wait for the transactions of appends (erased-keys.ts).
 */
import { LRUCache } from 'lru-cache'
import { findErased, type Named } from '../data/erased-keys.ts'
import { SEARCHED } from '../runs/search-index.ts'
import type { Sql } from '../engine/sql.ts'

interface AppendState {
  revision: number
  hasErasedKeys: 0 | 1
  isSearched: 0 | 1
}

const STATE = `SELECT COALESCE((SELECT revision FROM erasure_revisions WHERE environment_id = :env), 0) AS revision,
  CASE WHEN EXISTS (SELECT 1 FROM erased_keys WHERE environment_id = :env) THEN 1 ELSE 0 END AS "hasErasedKeys",
  CASE WHEN EXISTS (${SEARCHED}) THEN 1 ELSE 0 END AS "isSearched"`

async function readAppendState(sql: Sql, environmentId: string): Promise<AppendState> {
  const state = await sql.get<AppendState>(STATE, { env: environmentId })
  return state ?? { revision: 0, hasErasedKeys: 0, isSearched: 0 }
}

/** The caches of an append are older than a removal, so the append must start over without them. */
export class StaleCaches extends Error {}

const ENVIRONMENTS_KEPT = 10_000

export function knownStates() {
  const states = new LRUCache<string, AppendState>({ max: ENVIRONMENTS_KEPT })
  const revisionOf = (environmentId: string): number | undefined => states.get(environmentId)?.revision
  return {
    revisionOf,
    /** If nothing was erased, the check shares the round trip that opens the runs: call `confirm` then. */
    async check(sql: Sql, environmentId: string, events: readonly Named[], forget: () => void) {
      const cached = states.get(environmentId)
      const reading = readAppendState(sql, environmentId)
      const keep = (state: AppendState): boolean => {
        const isOutdated = revisionOf(environmentId) !== state.revision
        if (isOutdated) forget()
        states.set(environmentId, state)
        return !isOutdated
      }
      if (cached?.hasErasedKeys === 0) {
        // If the work fails earlier, nothing awaits this read.
        reading.catch(() => undefined)
        const confirm = async () => {
          const state = await reading
          if (!keep(state) || state.hasErasedKeys === 1) throw new StaleCaches('Something was removed meanwhile')
          return state
        }
        return { erasedStates: [], confirm }
      }
      const state = await reading
      keep(state)
      const erasedStates = state.hasErasedKeys === 1 ? await findErased(sql, environmentId, events) : []
      return { erasedStates, confirm: async () => state }
    },
  }
}
