import Type, { type Static } from 'typebox'
import { EventRow } from '../record/event.ts'
import { cursor, id, nextCursor, nullableText, nullableTime, pageLimit, time } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { Run } from './run.ts'

/** Fields that a query can name, as in `tool:refund`. */
export const SEARCH_FIELDS = ['tool', 'type', 'agent', 'model', 'label'] as const
export type SearchField = (typeof SEARCH_FIELDS)[number]

export const SEARCH_STATES = ['OFF', 'INDEXING', 'ON', 'FAILED', 'REMOVING'] as const

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

export const SearchSwitch = Type.Object(
  { enabled: Type.Boolean({ description: 'true: build the index and keep it up to date. false: delete it' }) },
  { $id: 'SearchSwitch', additionalProperties: false, examples: [{ enabled: true }] },
)
export type SearchSwitch = Static<typeof SearchSwitch>

export const SearchQuery = Type.Object({
  q: id(
    LIMITS.searchQueryChars,
    'Words that an event must contain, "phrases", -excluded words and field:value, with the fields ' +
      `${SEARCH_FIELDS.join(', ')}. See docs/search.md`,
  ),
  from: Type.Optional(time('Events at or after this time; default: 30 days before `to`')),
  to: Type.Optional(time('Events before this time; default: now, and events of the next minutes')),
  limit: pageLimit(LIMITS.searchPageDefault, LIMITS.searchPageMax),
  cursor,
})
export type SearchQuery = Static<typeof SearchQuery>

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
