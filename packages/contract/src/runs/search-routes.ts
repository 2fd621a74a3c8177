import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { SearchHitPage, SearchQuery, SearchSettings, SearchSwitch } from './search.ts'

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
    // It would hold one of the few places for pages while it waits for its turn.
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
