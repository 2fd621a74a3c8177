import Type, { type Static } from 'typebox'
import {
  CreationHeaders,
  cursor,
  id,
  nextCursor,
  nullableText,
  nullableTime,
  pageLimit,
  time,
  uuid,
} from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { STOP_SCOPES } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'

export const StopScope = Type.Enum([...STOP_SCOPES], { $id: 'StopScope' })
export type StopScope = (typeof STOP_SCOPES)[number]

const reason = id(LIMITS.stopReasonChars, 'Why; each blocked call says it, after the name of the operator')

export const Stop = Type.Object(
  {
    id: uuid('Stop id'),
    scope: StopScope,
    target: Type.String({ description: 'The agent, session or run, as it was named; empty for the environment' }),
    reason: Type.String(),
    stoppedAt: time('When it was stopped'),
    stoppedBy: Type.String({ description: 'Name of the operator or token' }),
    resumedAt: nullableTime('When it was resumed; null: the stop is in effect'),
    resumedBy: nullableText('Name of the operator or token'),
    resumeReason: nullableText('Why it was resumed'),
  },
  { $id: 'Stop', description: 'A scope in which every guarded call is blocked' },
)
export type Stop = Static<typeof Stop>

const clients = Type.Object(
  {
    confirmed: Type.Integer({ minimum: 0, description: 'Clients that have the current configuration' }),
    unconfirmed: Type.Integer({ minimum: 0, description: 'Clients that had another one when they last asked' }),
    silent: Type.Integer({ minimum: 0, description: 'Clients that stopped asking, and are probably gone' }),
  },
  { description: 'Clients of the environment; `listConfigurationClients` names them' },
)

const StopResult = Type.Object(
  {
    ...Stop.properties,
    isNew: Type.Boolean({ description: 'False: the scope was stopped already, and that stop stays in effect' }),
    isKnown: Type.Boolean({ description: 'False: the environment has recorded no such agent, session or run so far' }),
    rejected: Type.Integer({ minimum: 0, description: 'Pending approvals that the stop rejected' }),
  },
  { $id: 'StopResult' },
)

const StopPage = Type.Object({ clients, items: Type.Array(Stop), nextCursor }, { $id: 'StopPage' })
export type StopPage = Static<typeof StopPage>

const NewStop = Type.Object(
  {
    scope: StopScope,
    target: Type.Optional(
      id(LIMITS.textChars, 'Agent id or name, session id, or run id; required unless the scope is the environment'),
    ),
    reason,
  },
  { $id: 'NewStop', examples: [{ scope: 'agent', target: 'support', reason: 'It pays invoices twice' }] },
)

const Resumption = Type.Object(
  { reason: Type.Optional(id(LIMITS.stopReasonChars, 'Why it may go on')) },
  { $id: 'Resumption', examples: [{ reason: 'The prompt is repaired' }] },
)

const StopsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  state: Type.Optional(
    Type.Enum(['in_effect', 'all'], { default: 'in_effect', description: 'all: also those that were resumed' }),
  ),
  runId: Type.Optional(
    id(
      LIMITS.runIdChars,
      'External run id: only stops that covered this run while it ran. A page can then have few or no items and still a nextCursor',
    ),
  ),
})

const STOPS = '/environments/{environmentId}/stops'
const common = { tag: 'Deployments', scopes: [] } as const

export const stopRoutes = {
  listStops: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: STOPS,
    summary: 'List stops, newest first, and how many clients have the current configuration',
    params: EnvironmentParams,
    query: StopsQuery,
    status: 200,
    reply: StopPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  stop: {
    ...common,
    method: 'POST',
    access: 'approver',
    path: STOPS,
    audit: { action: 'stop.create', target: 'stop' },
    summary:
      'Block every guarded call of a run, session, agent or environment until it is resumed; reject what waits for approval',
    params: EnvironmentParams,
    headers: CreationHeaders,
    body: NewStop,
    bodyBytes: LIMITS.operatorBodyBytes,
    status: 201,
    reply: StopResult,
    errors: ['not_found', 'conflict'],
  },
  resume: {
    ...common,
    method: 'POST',
    access: 'approver',
    path: `${STOPS}/{stopId}/resume`,
    audit: { action: 'stop.resume', target: 'stop' },
    summary: 'End a stop',
    params: Type.Object({ environmentId: uuid('Environment id'), stopId: uuid('Stop id') }),
    body: Resumption,
    bodyBytes: LIMITS.operatorBodyBytes,
    status: 200,
    reply: Stop,
    errors: ['not_found', 'conflict'],
  },
} as const satisfies Record<string, OperatorRoute>
