import Type, { type Static } from 'typebox'
import { EventRow } from '../record/event.ts'
import { cursor, filterSchemas, id, nextCursor, nullableText, nullableTime, pageLimit } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { Run } from './run.ts'
import { SEARCH_FILTERS } from './search-filters.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'

const SEARCH_STATES = ['OFF', 'INDEXING', 'ON', 'FAILED', 'REMOVING'] as const

export const SearchSettings = Type.Object(
  {
    state: Type.Enum([...SEARCH_STATES], {
      description:
        'OFF: no index. INDEXING: older runs are being indexed; newer ones are found. ON: all runs are indexed. ' +
        'FAILED: indexing stopped; see error. REMOVING: the index is being deleted',
    }),
    changedAt: nullableTime('When it was last switched on or off; null: never'),
    indexedEvents: Type.Integer({ minimum: 0, description: 'Events in the index since it was switched on' }),
    olderRunsBefore: nullableTime('While INDEXING: runs that started earlier are not yet indexed'),
    waitingRuns: Type.Integer({
      minimum: 0,
      description: `Runs with events that are not yet indexed, counted up to ${LIMITS.searchRunsCounted}`,
    }),
    waitingSince: nullableTime('Since when the longest waiting of the counted runs waits; null: none waits'),
    error: nullableText('Why indexing stopped'),
  },
  {
    $id: 'SearchSettings',
    description: 'Whether payloads of an environment can be searched, and how far the index is',
  },
)
export type SearchSettings = Static<typeof SearchSettings>

const SearchSwitch = Type.Object(
  { enabled: Type.Boolean({ description: 'true: build the index and keep it up to date. false: delete it' }) },
  { $id: 'SearchSwitch', additionalProperties: false, examples: [{ enabled: true }] },
)
type SearchSwitch = Static<typeof SearchSwitch>

const SearchQuery = Type.Object({
  ...filterSchemas(SEARCH_FILTERS),
  q: id(LIMITS.searchQueryChars, SEARCH_FILTERS.q.describes),
  limit: pageLimit(LIMITS.searchPageDefault, LIMITS.searchPageMax),
  cursor,
})
type SearchQuery = Static<typeof SearchQuery>

export const SnippetPart = Type.Object(
  { text: Type.String(), isHit: Type.Boolean({ description: 'Whether the query matched this text' }) },
  { $id: 'SnippetPart', description: 'Part of a snippet. Plain text, not HTML' },
)
export type SnippetPart = Static<typeof SnippetPart>

export const SearchHit = Type.Object(
  {
    run: Type.Pick(Run, ['id', 'runId', 'status', 'startedAt', 'agent']),
    event: EventRow,
    snippet: Type.Array(SnippetPart, { description: 'Text around the first match, in order. Joined, it is one text' }),
  },
  { $id: 'SearchHit', description: 'An event that matches' },
)
export type SearchHit = Static<typeof SearchHit>

export const SearchHitPage = Type.Object({ items: Type.Array(SearchHit), nextCursor }, { $id: 'SearchHitPage' })
export type SearchHitPage = Static<typeof SearchHitPage>

export const RunSearchQuery = Type.Object({
  q: id(
    LIMITS.searchChars,
    'Text that the label, the type, or a string or number of the payload contains, in any case. Not the keys of its objects',
  ),
  limit: pageLimit(LIMITS.searchPageDefault, LIMITS.searchPageMax),
  cursor,
})

const RunSearchHit = Type.Object(
  {
    event: EventRow,
    snippet: Type.Array(SnippetPart, { description: 'Text around the first match, in order. Joined, it is one text' }),
  },
  { $id: 'RunSearchHit', description: 'An event of a run that contains the text' },
)
type RunSearchHit = Static<typeof RunSearchHit>

export const RunSearchPage = Type.Object(
  {
    items: Type.Array(RunSearchHit),
    examined: Type.Integer({
      minimum: 0,
      description: `Events that were compared for this page: at most ${LIMITS.eventsLookedAt}, or ${LIMITS.searchedPayloadBytes / 1_048_576} MiB of payloads. A page can have few or no items and still a nextCursor`,
    }),
    nextCursor,
  },
  { $id: 'RunSearchPage' },
)
export type RunSearchPage = Static<typeof RunSearchPage>

const common = { tag: 'Search', scopes: [], params: EnvironmentParams, status: 200 } as const
const read = { ...common, method: 'GET', access: 'viewer' } as const
const SEARCH = '/environments/{environmentId}/search'

/** Search over payload text. */
export const searchRoutes = {
  searchEvents: {
    ...read,
    path: SEARCH,
    summary: 'Search the payloads and labels of events, newest first',
    query: SearchQuery,
    reply: SearchHitPage,
    // 0, because searches have a separate queue: while a search waits there, it must not occupy one of the few slots
    // for pages.
    replyBytes: 0,
    errors: ['not_found', 'conflict', 'invalid_cursor'],
  },
  readSearchSettings: {
    ...read,
    path: `${SEARCH}/settings`,
    summary: 'Read whether search is on, and how far the index is',
    reply: SearchSettings,
    errors: ['not_found'],
  },
  switchSearch: {
    ...common,
    method: 'POST',
    access: 'admin',
    path: `${SEARCH}/settings`,
    summary: 'Switch search on or off. Switching it off deletes the index',
    bodyBytes: LIMITS.operatorBodyBytes,
    body: SearchSwitch,
    reply: SearchSettings,
    errors: ['not_found', 'conflict'],
  },
} as const satisfies Record<string, OperatorRoute>
