import Type, { type Static } from 'typebox'
import { EventRow } from '../record/event.ts'
import { cursor, id, nextCursor, pageLimit } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { SnippetPart } from './search.ts'

export const RunSearchQuery = Type.Object({
  q: id(
    LIMITS.searchChars,
    'Text that the label, the type, or a string or number of the payload contains, in any case. Not the keys of its objects',
  ),
  limit: pageLimit(LIMITS.searchPageDefault, LIMITS.searchPageMax),
  cursor,
})

export const RunSearchHit = Type.Object(
  {
    event: EventRow,
    snippet: Type.Array(SnippetPart, { description: 'Text around the first match, in order. Joined, it is one text' }),
  },
  { $id: 'RunSearchHit', description: 'An event of a run that contains the text' },
)
export type RunSearchHit = Static<typeof RunSearchHit>

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
