import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { SearchHit, SearchSettings } from '@tacho/contract/runs/search.ts'
import { DAY_MS, isoTime } from '../../storage/engine/times.ts'
import { toEventRow, toRun } from '../../domain/runs/run.ts'
import { parseSearchQuery } from '../../domain/runs/search-query.ts'
import { wordsOf, type SearchHitRow, type SearchPlace, type SearchSettingsRow } from '../../storage/runs/search.ts'
import { createTurnsOfWorkspaces } from '../web/turns.ts'
import { refuse } from '../web/reply-error.ts'
import { auditOf } from '../people/audit.ts'
import { refuseField, timeOf } from '../web/field.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { isStorableText } from '../../domain/web/text.ts'
import type { TimelinePlace } from '../../storage/record/events.ts'

const OFF = refuse('conflict', 'Search is off in this environment. An admin can switch it on: `tacho search --enable`')
const REMOVING = refuse('conflict', 'The previous index is still being deleted. Try again when its state is OFF')

/** Few, because a person reads the payloads of these steps. */
const STEPS_FOUND = 12

export function searchRoutes({ serve, storage, work }: OperatorDeps): void {
  const takeTurn = createTurnsOfWorkspaces(LIMITS.searchesAtOnce, 'searches')

  serve('searchEvents', async ({ query, reply, environment, at, paging: { limit, ...paging } }) => {
    const parsed = parseSearchQuery(query.q)
    if (!parsed.ok) return refuseField('q', `${parsed.message} (at character ${parsed.position})`)
    const range = rangeOf(query, at)
    // Without `from` and `to`, the cursor of the first page stores where the range begins.
    const after = paging.after<SearchPlace & { from: number }>()
    const settings = await storage.readSearchSettings(environment.id)
    if (settings?.state !== 'ON') return OFF
    const { from, to } = { ...range, ...(after && { from: after.from }) }
    const { rows, more, lookedTo } = await takeTurn(reply, () =>
      storage.searchEvents(environment.id, { clauses: parsed.clauses, from, to, limit, after }),
    )
    const last = lookedTo ?? rows.at(-1)?.place
    return { items: rows.map(toHit), nextCursor: more && last ? paging.cursorAt({ ...last, from }) : null }
  })

  serve('findErasableSteps', async ({ body: { id }, reply, environment, at }) => {
    const settings = await storage.readSearchSettings(environment.id)
    if (settings?.state !== 'ON') return OFF
    // Searches only the first words of a long id. This may find steps with another id that begins alike, but misses none.
    const words = wordsOf(id)
      .map(({ word }) => word)
      .slice(0, LIMITS.searchQueryWords)
    // An id without a letter or digit contains no indexed word.
    if (words.length === 0) return { items: [], more: false }
    const clauses = [{ field: null, words, isExcluded: false }]
    const range = rangeOf({ from: isoTime(at - LIMITS.searchedDaysMax * DAY_MS) }, at)
    const { rows, more } = await takeTurn(reply, () =>
      storage.searchEvents(environment.id, { clauses, ...range, limit: STEPS_FOUND, after: null }),
    )
    return { items: rows.map(({ run, event }) => ({ runId: run.runId, eventId: event.eventId })), more }
  })

  serve('readSearchSettings', async ({ environment }) => toSettings(await storage.readSearchSettings(environment.id)))

  serve('switchSearch', async ({ body: { enabled }, request, environment: { id }, at }) => {
    const audit = auditOf(request, at, `search.switch_${enabled ? 'on' : 'off'}`, { kind: 'environment', id })
    const outcome = await storage.switchSearch(id, enabled, at, [audit])
    if (outcome === 'removing') return REMOVING
    work.wake('index_search')
    return toSettings(await storage.readSearchSettings(id))
  })
}

/** Events can be a few minutes ahead of the clock. */
function rangeOf(query: { from?: string; to?: string }, now: number): { from: number; to: number } {
  const last = now + LIMITS.eventFutureMs
  const to = query.to === undefined ? last : timeOf('to', query.to)
  const from = query.from === undefined ? to - LIMITS.searchedDaysDefault * DAY_MS : timeOf('from', query.from)
  if (to < from) throw refuseField('to', 'must not be before from')
  const days = LIMITS.searchedDaysMax
  // Without `to`, the range ends a few minutes in the future.
  if (to - from > days * DAY_MS + LIMITS.eventFutureMs)
    throw refuseField('from', `must be at most ${days} days before to`)
  const within = (time: number) => Math.min(Math.max(time, 0), last)
  return { from: within(from), to: within(to) }
}

function toHit({ run, event, snippet }: SearchHitRow): SearchHit {
  const { id, runId, status, startedAt, agent } = toRun(run)
  return { run: { id, runId, status, startedAt, agent }, event: toEventRow(run, event), snippet }
}

function toSettings(row: SearchSettingsRow | null): SearchSettings {
  if (row === null) {
    const nothing = { olderRunsBefore: null, waitingRuns: 0, waitingSince: null, error: null }
    return { state: 'OFF', changedAt: null, indexedEvents: 0, ...nothing }
  }
  const { state, changedAt, olderBefore, indexedEvents, waitingRuns, waitingSince, error } = row
  // Older runs count as waiting since the search was switched on, until their last portion is indexed.
  const isIndexing = olderBefore !== null || (waitingSince !== null && waitingSince <= changedAt)
  return {
    state: state === 'REMOVING' ? state : error !== null ? 'FAILED' : isIndexing ? 'INDEXING' : 'ON',
    changedAt: isoTime(changedAt),
    indexedEvents,
    olderRunsBefore: olderBefore === null ? null : isoTime(Math.min(olderBefore, changedAt)),
    waitingRuns,
    waitingSince: isoTime(waitingSince),
    error,
  }
}

/** Bounds of a piece; other requests run between two pieces. */
const PIECE = { limit: 250, pageBytes: 524_288 }

export function runSearchRoutes({ serve, storage }: OperatorDeps): void {
  const takeTurn = createTurnsOfWorkspaces(LIMITS.searchesAtOnce, 'searches of runs')

  serve('searchRun', async ({ query: { q }, reply, environment, run, paging: { limit, ...paging } }) => {
    const after = paging.after<TimelinePlace>()
    if (!isStorableText(q)) return { items: [], examined: 0, nextCursor: null }
    const bounds = { events: LIMITS.eventsLookedAt, bytes: LIMITS.searchedPayloadBytes, piece: PIECE }
    const { rows, examined, lookedTo } = await takeTurn(reply, () =>
      storage.searchRun(environment.id, run.id, { text: q, limit, after, bounds }),
    )
    const items = rows.map(({ event, snippet }) => ({ event: toEventRow(run, event), snippet }))
    return { items, examined, nextCursor: lookedTo === null ? null : paging.cursorAt(lookedTo) }
  })
}
