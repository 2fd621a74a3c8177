import Type, { type Static } from 'typebox'
import { nextCursor, time, uuid, CreationHeaders } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { ERASURE_KINDS, ERASURE_STATUSES } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams, ListQuery } from '../tenants/workspace.ts'

export type ErasureKind = (typeof ERASURE_KINDS)[number]
export type ErasureStatus = (typeof ERASURE_STATUSES)[number]

const kind = Type.Enum([...ERASURE_KINDS], {
  $id: 'ErasureKind',
  description:
    '`run`: one run. `session`: every run of a session. `agent`: every run of an agent. `client`: every run with an event that the client sent. `user`: every run whose session id, end user, or a named payload field, is the user id',
})
const text = (description: string) => Type.String({ minLength: 1, maxLength: LIMITS.textChars, description })
const count = (description: string) => Type.Integer({ minimum: 0, description })

const field = Type.Array(text('A key'), {
  minItems: 1,
  maxItems: LIMITS.erasureFieldKeys,
  description: 'Keys of the payload field with the user id, outermost first. Only with kind `user`',
})

export const ErasureSubject = Type.Object(
  {
    kind,
    id: text(
      'What to erase: an external run id, session id, agent id, client id or user id. An agent without an id is named by its name',
    ),
    field: Type.Optional(field),
  },
  { $id: 'ErasureSubject', examples: [{ kind: 'session', id: 'conversation-81' }] },
)
export type ErasureSubject = Static<typeof ErasureSubject>

export const NewErasure = Type.Object(
  {
    ...ErasureSubject.properties,
    reason: Type.Optional(
      Type.String({ maxLength: LIMITS.erasureReasonChars, description: 'For the receipt. Never the erased id itself' }),
    ),
  },
  {
    $id: 'NewErasure',
    examples: [{ kind: 'user', id: 'user-4711', field: ['customer', 'id'], reason: 'Request 2026-118' }],
  },
)
export type NewErasure = Static<typeof NewErasure>

export const Erasure = Type.Object(
  {
    id: uuid('Erasure id'),
    environmentId: uuid('Its environment'),
    kind,
    subjectHash: Type.String({
      description: 'SHA-256 (hex) of `<erasure id> <kind> <id>`: a person who knows the id can check the receipt',
    }),
    field: Type.Union([field, Type.Null()], { description: 'The payload field that was searched' }),
    reason: Type.Union([Type.String(), Type.Null()]),
    status: Type.Enum([...ERASURE_STATUSES], {
      $id: 'ErasureStatus',
      description:
        '`SEARCHING`: runs are still being found. `REMOVING`: effective; stored rows are being deleted. `DONE`: everything is deleted',
    }),
    requestedBy: Type.Object({ kind: Type.String(), id: Type.String(), name: Type.String() }),
    createdAt: time('When it was requested. Late retries are refused from then on'),
    effectiveAt: Type.Union([time('When the last of it became invisible to every reader'), Type.Null()]),
    finishedAt: Type.Union([time('When the last of it was deleted'), Type.Null()]),
    searched: count('Runs searched so far'),
    toSearch: count('Runs to search; 0 if an index finds them'),
    runs: count('Runs erased'),
    runningRuns: count('Of these, runs that had not ended'),
    events: count('Events erased'),
    eventsDeleted: count('Of these, events deleted from the store'),
    approvals: count('Approvals erased'),
    issueRecords: count('Issue records erased'),
    issues: count('Issues that had no records left'),
    checksum: Type.String({ description: 'Chain of SHA-256 over the erased runs; empty if there were none' }),
  },
  { $id: 'Erasure', description: 'What an operator erased on request' },
)
export type Erasure = Static<typeof Erasure>

export const ErasurePreview = Type.Object(
  {
    runs: count('Runs that an index finds now'),
    events: count('Their events'),
    runningRuns: count(
      'Runs of these that have not ended. After the erasure of a run or user, what they record from then on is refused; after that of a session, agent or client, it is stored as a new run',
    ),
    more: Type.Boolean({ description: 'There are more runs than were counted' }),
    toSearch: count('Runs that have to be searched in addition, counted up to the same bound'),
  },
  { $id: 'ErasurePreview', description: 'What an erasure would remove now' },
)
export type ErasurePreview = Static<typeof ErasurePreview>

const ErasurePage = Type.Object({ items: Type.Array(Erasure), nextCursor }, { $id: 'ErasurePage' })
type ErasurePage = Static<typeof ErasurePage>

const ErasableId = Type.Object(
  { id: text('Id of a person, as clients send it') },
  { $id: 'ErasableId', additionalProperties: false, examples: [{ id: 'user-4711' }] },
)
type ErasableId = Static<typeof ErasableId>

const ErasableSteps = Type.Object(
  {
    items: Type.Array(Type.Object({ runId: Type.String({ description: 'External run id' }), eventId: Type.String() }), {
      description: 'The newest first',
    }),
    more: Type.Boolean({ description: 'Whether older steps have it too' }),
  },
  { $id: 'ErasableSteps', description: 'The newest steps with an id in their payload or label' },
)
type ErasableSteps = Static<typeof ErasableSteps>

const ErasureParams = Type.Object({ environmentId: uuid('Environment id'), erasureId: uuid('Erasure id') })

const common = { tag: 'Erasures', scopes: [], params: EnvironmentParams } as const
const read = { ...common, method: 'GET', access: 'viewer', status: 200 } as const
const write = { ...common, method: 'POST', access: 'admin', bodyBytes: LIMITS.operatorBodyBytes } as const

const ERASURES = '/environments/{environmentId}/erasures'

export const erasureRoutes = {
  createErasure: {
    ...write,
    path: ERASURES,
    audit: { action: 'erasure.create', target: 'erasure' },
    summary: 'Erase a run, a session, an agent, a client or everything of a user, forever',
    headers: CreationHeaders,
    body: NewErasure,
    status: 201,
    reply: Erasure,
    errors: ['not_found', 'conflict'],
  },
  previewErasure: {
    ...write,
    path: `${ERASURES}/preview`,
    summary: 'Count what an erasure would remove',
    body: ErasureSubject,
    status: 200,
    reply: ErasurePreview,
    errors: ['not_found'],
  },
  findErasableSteps: {
    ...write,
    path: `${ERASURES}/steps`,
    // By POST, because proxies log addresses, and ids of people must not be logged.
    summary: 'Find the newest steps with an id, to choose the payload field of an erasure. Needs the search',
    body: ErasableId,
    status: 200,
    reply: ErasableSteps,
    replyBytes: 0,
    errors: ['not_found', 'conflict'],
  },
  listErasures: {
    ...read,
    path: ERASURES,
    summary: 'List the erasures of an environment, newest first',
    query: ListQuery,
    reply: ErasurePage,
    errors: ['not_found', 'invalid_cursor'],
  },
  readErasure: {
    ...read,
    path: `${ERASURES}/{erasureId}`,
    summary: 'Read an erasure and how far it is',
    params: ErasureParams,
    reply: Erasure,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
