/** The index gives candidates. Each is compared with the stored event, so a result never depends on it. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { StoredEvent } from '../../record/events.ts'
import type { RunRow } from '../../runs/runs.ts'
import {
  type EventSearch,
  type SearchHitRow,
  type SearchPlace,
  type SearchRead,
  type RunSearch,
  type RunSearchRead,
  hashOf,
  matchEvent,
  requiredTerms,
  containedIn,
  soughtText,
} from '../../runs/search.ts'
import { read, lookup, type Sql } from '../engine/sql.ts'
import { withEnvelope } from '../record/envelopes.ts'
import { ofRun, ROW, WITH_RUN, listEvents } from '../record/events.ts'
import { PAYLOAD, withPayloads } from '../record/payloads.ts'
import { findByUuid } from './runs.ts'
import { HOUR_MS } from '../../engine/times.ts'
import { placeFrom, seedOf, TIES, wordOf } from './search-index.ts'

export const searchActs = read({ searchEvents })

interface Candidate extends SearchPlace {
  seq: number
}

/** Events of the same time have an arbitrary order that never changes. */
async function searchEvents(sql: Sql, environmentId: string, search: EventSearch): Promise<SearchRead> {
  const rows: SearchHitRow[] = []
  const runs = new Map<number, RunRow | null>()
  let [examined, bytes] = [0, 0]
  let lookedTo: SearchPlace | undefined
  for await (const { seq, ...place } of candidates(sql, environmentId, search)) {
    const isFull = rows.length === search.limit
    if (isFull || examined === LIMITS.searchedEvents || bytes >= LIMITS.searchedPayloadBytes) {
      return { rows, more: true, ...(lookedTo && { lookedTo }) }
    }
    lookedTo = place
    examined++
    if (!runs.has(place.run)) runs.set(place.run, await runOf(sql, environmentId, place.run))
    const run = runs.get(place.run)
    const event = run ? await eventAt(sql, environmentId, run.id, place.time, seq) : null
    if (!run || !event) continue
    bytes += event.payloadBytes
    const snippet = matchEvent(event, search.clauses)
    if (snippet === null) continue
    const { payload: _, ...row } = event
    rows.push({ run, event: row, snippet, place })
  }
  return { rows, more: false }
}

async function runOf(sql: Sql, environmentId: string, number: number): Promise<RunRow | null> {
  const text = 'SELECT id FROM search_runs WHERE environment_id = :env AND run = :number'
  const runRow = await sql.get<{ id: string }>(text, { env: environmentId, number })
  return runRow && findByUuid(sql, environmentId, runRow.id)
}

async function eventAt(sql: Sql, environmentId: string, run: string, time: number, seq: number) {
  const text = `${WITH_RUN} SELECT ${ROW}, ${PAYLOAD} FROM events e ${withEnvelope(sql)}
    WHERE ${ofRun(sql)} AND e.time = :time AND e.seq = :seq`
  const rows = await sql.all<StoredEvent>(text, { env: environmentId, run, time, seq })
  return (await withPayloads(sql, environmentId, rows))[0] ?? null
}

const PAGE = 50

async function* candidates(sql: Sql, environmentId: string, search: EventSearch): AsyncGenerator<Candidate> {
  const terms = requiredTerms(search.clauses)
  const find = sql.dialect === 'sqlite' ? placesBefore : hoursBefore
  let before: SearchPlace = search.after ?? { time: search.to, run: 0, tie: 0 }
  for (;;) {
    const { found, next } = await find(sql, environmentId, terms, search.from, before)
    yield* found
    if (next === null) return
    before = next
  }
}

async function placesBefore(sql: Sql, environmentId: string, terms: string[], from: number, before: SearchPlace) {
  const seed = seedOf(sql, environmentId, from)
  const words = terms.map((term) => `"${wordOf(hashOf(term, seed))}"`).join(' AND ')
  const candidateEvents = await sql.all<Candidate>(
    `SELECT s.place / ${TIES} AS time, s.place % ${TIES} AS tie, s.run, s.seq
      FROM search_words CROSS JOIN search_entries s ON s.place = search_words.rowid
      WHERE search_words MATCH :words AND search_words.rowid >= ${placeFrom('from', 'first')}
        AND search_words.rowid < ${placeFrom('time', 'tie')} AND s.environment_id = :env
      ORDER BY search_words.rowid DESC LIMIT ${PAGE}`,
    { words, from, first: 0, time: before.time, tie: before.tie, env: environmentId },
  )
  return { found: candidateEvents, next: candidateEvents.length < PAGE ? null : (candidateEvents.at(-1) ?? null) }
}

/** Number of hours that a statement examines: more, the further back it is. */
async function hoursBefore(sql: Sql, environmentId: string, terms: string[], from: number, before: SearchPlace) {
  let hours = 1
  let last = Math.floor(before.time / HOUR_MS)
  const first = Math.floor(from / HOUR_MS)
  while (last >= first) {
    const examined = Math.min(hours, last - first + 1)
    const words = Array.from({ length: examined }, (_, index) => {
      const seed = seedOf(sql, environmentId, (last - index) * HOUR_MS)
      return `{${terms.map((term) => hashOf(term, seed)).join(',')}}`
    })
    const hourMatches = await matchesOfHours(sql, environmentId, words, from, before)
    if (hourMatches.length === PAGE) return { found: hourMatches, next: hourMatches.at(-1) ?? null }
    last -= examined
    hours = Math.min(hours * HOURS_GROWTH, HOURS_MAX)
    const next = last < first ? null : { time: (last + 1) * HOUR_MS, run: 0, tie: 0 }
    if (hourMatches.length > 0 || next === null) return { found: hourMatches, next }
  }
  return { found: [], next: null }
}

const HOURS_GROWTH = 6
const HOURS_MAX = 48

/**
 * Our connections turn bitmap scans off. But the index of words supports only those: without them, all entries would be
 * read.
 */
const scansOf = (bitmap: 'on' | 'off', index: 'on' | 'off') =>
  `SELECT set_config('enable_bitmapscan', '${bitmap}', true), set_config('enable_indexscan', '${index}', true)`

/**
 * The planner assumes that this condition matches one in 200 entries, whatever the words. If it expects more than one
 * row, it also reads the environment's whole primary key. Repeated four times, the condition seems to match one entry
 * in a billion.
 */
const HAS_WORDS = Array<string>(4).fill('words @> hour.words::integer[]').join(' AND ')

async function matchesOfHours(sql: Sql, environmentId: string, words: string[], from: number, before: SearchPlace) {
  const { time, run, tie } = before
  const order = `ORDER BY time DESC, run DESC, seq DESC LIMIT ${PAGE}`
  const text = `SELECT e.time, e.run, e.seq AS tie, e.seq FROM jsonb_array_elements_text(:words::jsonb) AS hour (words),
    LATERAL (SELECT time, run, seq FROM search_entries WHERE environment_id = :env AND ${HAS_WORDS}
      AND time >= :from AND (time, run, seq) < (:time, :run, :tie) ${order}) AS e ${order}`
  const params = { words: JSON.stringify(words), env: environmentId, from, time, run, tie }
  // Sent together, so they cost no round trip. The settings end with the transaction at the latest.
  const [, found] = await Promise.all([
    sql.get(scansOf('on', 'off')),
    sql.all<Candidate>(text, params),
    sql.get(scansOf('off', 'on')),
  ])
  return found
}

/** A search in one run needs no index: its events are read by time and compared, a bounded number for a page. */

// A search needs no transaction: stored events never change, and on PostgreSQL other work continues between two pieces.
export const runSearchActs = lookup({ searchRun })

async function searchRun(sql: Sql, environmentId: string, run: string, { text, limit, after, bounds }: RunSearch) {
  const sought = soughtText(text)
  const rows: RunSearchRead['rows'] = []
  let [examined, bytes] = [0, 0]
  let place = after
  for (;;) {
    const most = Math.min(bounds.piece.limit, bounds.events - examined)
    const piece = await listEvents(sql, environmentId, run, { ...bounds.piece, limit: most, after: place })
    for (const { payload, ...event } of piece.rows) {
      examined++
      bytes += event.payloadBytes
      place = { time: event.time, seq: event.seq }
      const snippet = containedIn({ ...event, payload }, sought)
      if (snippet !== null) rows.push({ event, snippet })
      if (rows.length === limit || examined === bounds.events || bytes >= bounds.bytes) {
        const isLast = !piece.more && event.seq === piece.rows.at(-1)?.seq
        return { rows, examined, lookedTo: isLast ? null : place }
      }
    }
    if (!piece.more) return { rows, examined, lookedTo: null }
  }
}
