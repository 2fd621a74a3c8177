/**
 * What the events of one agent in one client repeat: stored once per environment, and named by number. A client that
 * sends new texts with every event gets a row for each. Sessions are not part of it: see own_session.
 */
import { LRUCache } from 'lru-cache'
import type { NewEvent } from '../../events.ts'
import { entryBytes, ownText } from './cached-text.ts'
import { findOrStore } from './find-or-store.ts'
import { insertJsonRows, type InsertedTable } from '../rows/json-rows.ts'
import { textKey } from '../keys.ts'
import type { Sql } from '../sql.ts'

type Envelope = Pick<NewEvent, 'clientId' | 'agentId' | 'agentName' | 'schemaVersion'>

export const ENVELOPE = {
  clientId: 'client_id',
  agentId: 'agent_id',
  agentName: 'agent_name',
  schemaVersion: 'schema_version',
} as const satisfies Record<keyof Envelope, string>

export function envelopeTexts({ clientId, agentId, agentName, schemaVersion }: Envelope): (string | null)[] {
  return [clientId, agentId, agentName, schemaVersion]
}

/**
 * Joins the envelope `v` of the event `e`. On PostgreSQL by the order of its index: planned for a new table, a plain
 * join reads all envelopes of the environment for each event.
 */
export const withEnvelope = ({ dialect }: Pick<Sql, 'dialect'>, environment = ':env') =>
  dialect === 'sqlite'
    ? `LEFT JOIN envelopes v ON v.environment_id = ${environment} AND v.number = e.envelope`
    : `LEFT JOIN LATERAL (SELECT * FROM envelopes WHERE environment_id = ${environment}
        AND number >= e.envelope AND number <= e.envelope ORDER BY number LIMIT 1) v ON true`

const SELECT = 'SELECT number FROM envelopes WHERE environment_id = :env AND envelope_key = :key'
const ENVELOPES: InsertedTable = {
  name: 'envelopes',
  columns: {
    number: 'bigint',
    envelope_key: 'text',
    client_id: 'text',
    agent_id: 'text',
    agent_name: 'text',
    schema_version: 'text',
  },
  conflict: 'ON CONFLICT (environment_id, envelope_key) DO NOTHING',
}

const CACHE_BYTES = 8 * 1_048_576

/** Numbers that no run and no envelope of the store has. */
export type TakeNumbers = (count: number) => Promise<number[]>

export interface OpenEnvelopes {
  ofEvent: number[]
  loaded: Map<string, number>
}

/** Only erasures change envelopes, and appends forget this cache after them. */
export function knownEnvelopes() {
  const numbers = new LRUCache<string, number>({
    maxSize: CACHE_BYTES,
    sizeCalculation: (_, place) => entryBytes(place.length),
  })

  return {
    async open(
      sql: Sql,
      environmentId: string,
      events: readonly Envelope[],
      takeNumbers: TakeNumbers,
    ): Promise<OpenEnvelopes> {
      const unknown = new Map<string, Envelope>()
      let last: Envelope | null = null
      let found: number | string = ''
      const ofEvent = events.map((event) => {
        // Events of one client come together.
        if (last !== null && isSame(last, event)) return found
        const place = placeOf(environmentId, event)
        found = numbers.get(place) ?? place
        if (found === place) unknown.set(place, event)
        last = event
        return found
      })
      const find = async (envelope: Envelope) =>
        (await sql.get<{ number: number }>(SELECT, { env: environmentId, key: envelopeKey(envelope) }))?.number ?? null
      const store = async (added: Envelope[]) =>
        storeEnvelopes(sql, environmentId, added, await takeNumbers(added.length))
      const loaded = await findOrStore(unknown, find, store)
      return { loaded, ofEvent: ofEvent.map((one) => (typeof one === 'number' ? one : loaded.get(one)!)) }
    },
    keep({ loaded }: OpenEnvelopes): void {
      for (const [place, number] of loaded) numbers.set(ownText(place), number)
    },
    forget: () => numbers.clear(),
  }
}

function isSame(one: Envelope, other: Envelope): boolean {
  return (
    one.clientId === other.clientId &&
    one.agentId === other.agentId &&
    one.agentName === other.agentName &&
    one.schemaVersion === other.schemaVersion
  )
}

async function storeEnvelopes(sql: Sql, environmentId: string, added: Envelope[], numbers: number[]): Promise<void> {
  const rows = added
    .map((envelope) => [envelopeKey(envelope), ...envelopeTexts(envelope)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map((row, index) => [numbers[index] ?? null, ...row])
  await insertJsonRows(sql, ENVELOPES, environmentId, rows)
}

function placeOf(environmentId: string, envelope: Envelope): string {
  const texts = envelopeTexts(envelope).map((text) => (text === null ? '' : `=${text}`))
  return `${environmentId}\0${texts.join('\0')}`
}

/** Each text follows its length, so that no two envelopes have one key. */
function envelopeKey(envelope: Envelope): string {
  const parts = envelopeTexts(envelope).map((text) => (text === null ? '-' : `${Buffer.byteLength(text)}:${text}`))
  return textKey(parts.join(''))
}
