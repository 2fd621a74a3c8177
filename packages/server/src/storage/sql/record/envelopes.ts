/**
 * An envelope holds the texts that the events of one agent in one client repeat. It is stored once per environment, and
 * events name it by number. A client that sends new texts with every event gets a row for each. Sessions are not part
 * of it: see own_session.
 */
import type { NewEvent } from '../../record/events.ts'
import { columnOf } from '../../data/exports.ts'
import { knownRows } from './known-rows.ts'
import { insertJsonRows, type InsertedTable } from '../engine/rows.ts'
import { textKey } from '../engine/keys.ts'
import type { Sql } from '../engine/sql.ts'

export const ENVELOPE = ['clientId', 'agentId', 'agentName', 'schemaVersion'] as const
type Envelope = Pick<NewEvent, (typeof ENVELOPE)[number]>

export const envelopeTexts = (envelope: Envelope) => ENVELOPE.map((name) => envelope[name])

/**
 * Joins the envelope `v` of the event `e`. On PostgreSQL it uses the order of the index: a plain join, planned for a
 * new table, reads all envelopes of the environment for each event.
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
    ...Object.fromEntries(ENVELOPE.map((name) => [columnOf(name), 'text'] as const)),
  },
  conflict: 'ON CONFLICT (environment_id, envelope_key) DO NOTHING',
}

/** Numbers that no run and no envelope of the store has. */
export type TakeNumbers = (count: number) => Promise<number[]>

/** Only erasures change envelopes, and appends forget this cache after them. */
export function knownEnvelopes() {
  const numbers = knownRows<number>()
  return {
    ...numbers,
    open(sql: Sql, environmentId: string, events: readonly Envelope[], takeNumbers: TakeNumbers) {
      let last: { event: Envelope; place: string } | null = null
      const place = (event: Envelope) => {
        // Events of one client arrive together, so reuse the last place.
        last = { event, place: last !== null && isSame(last.event, event) ? last.place : placeOf(environmentId, event) }
        return last.place
      }
      const find = async (envelope: Envelope) =>
        (await sql.get<{ number: number }>(SELECT, { env: environmentId, key: envelopeKey(envelope) }))?.number ?? null
      const store = async (added: Envelope[]) =>
        storeEnvelopes(sql, environmentId, added, await takeNumbers(added.length))
      return numbers.open(events, place, find, store)
    },
  }
}

const isSame = (one: Envelope, other: Envelope) => ENVELOPE.every((name) => one[name] === other[name])

async function storeEnvelopes(sql: Sql, environmentId: string, added: Envelope[], numbers: number[]): Promise<void> {
  const rows = added
    .map((envelope) => [envelopeKey(envelope), ...envelopeTexts(envelope)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map((row, index) => [numbers[index] ?? null, ...row])
  await insertJsonRows(sql, ENVELOPES, environmentId, rows)
}

/** Client texts never contain NUL. */
function placeOf(environmentId: string, envelope: Envelope): string {
  const texts = envelopeTexts(envelope).map((text) => (text === null ? '' : `=${text}`))
  return `${environmentId}\0${texts.join('\0')}`
}

/** Each text follows its length, so that no two envelopes have one key. */
function envelopeKey(envelope: Envelope): string {
  const parts = envelopeTexts(envelope).map((text) => (text === null ? '-' : `${Buffer.byteLength(text)}:${text}`))
  return textKey(parts.join(''))
}
