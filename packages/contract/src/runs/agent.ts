import Type, { type Static } from 'typebox'
import { id, nextCursor, nullableText, nullableTime, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { ArchivableQuery, EnvironmentParams } from '../tenants/workspace.ts'
import type { OperatorRoute } from '../web/route.ts'

export const Agent = Type.Object(
  {
    id: uuid('Internal agent id'),
    agentId: nullableText('External id; null: the agent is identified by the name that it reports'),
    name: Type.String({ description: 'What operators see: the name that an operator gave it, or the reported one' }),
    reportedName: Type.String({ description: 'The newest name that its events reported' }),
    archivedAt: nullableTime('When it was archived; null: it is in use, or a run of it started later'),
    lastRunAt: time('When its newest run started'),
  },
  { $id: 'Agent', description: 'An agent of an environment' },
)
export type Agent = Static<typeof Agent>

const AgentsQuery = Type.Object({
  ...ArchivableQuery.properties,
  q: Type.Optional(
    id(
      LIMITS.searchChars,
      'Search: agents whose name, reported name or external id contains this text; A to Z match a to z. It examines the ' +
        `newest ${LIMITS.searchedAgentNames} agents of the environment`,
    ),
  ),
})

const AgentPage = Type.Object({ items: Type.Array(Agent), nextCursor }, { $id: 'AgentPage' })

const AgentParams = Type.Object({ environmentId: uuid('Environment id'), agentId: uuid('Internal agent id') })

export const AgentName = Type.Object(
  { name: id(LIMITS.nameChars, 'Need not be unique. The reported name: operators see that one again, as it changes') },
  { $id: 'AgentName', examples: [{ name: 'Refunds' }] },
)

const AGENTS = '/environments/{environmentId}/agents'
const AGENT = `${AGENTS}/{agentId}` as const
const common = { tag: 'Runs', scopes: [], status: 200 } as const
const act = { ...common, method: 'POST', access: 'admin', params: AgentParams, reply: Agent } as const

export const agentRoutes = {
  listAgents: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: AGENTS,
    summary: 'List the agents of an environment with a stored run, in the order in which they were first seen',
    params: EnvironmentParams,
    query: AgentsQuery,
    reply: AgentPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  renameAgent: {
    ...act,
    path: `${AGENT}/rename`,
    audit: { action: 'agent.rename', target: 'agent' },
    summary: 'Give an agent a name that operators see instead of the reported one',
    bodyBytes: LIMITS.operatorBodyBytes,
    body: AgentName,
    errors: ['not_found', 'conflict'],
  },
  archiveAgent: {
    ...act,
    path: `${AGENT}/archive`,
    audit: { action: 'agent.archive', target: 'agent' },
    summary: 'Hide an agent from the list of agents until it starts a run; it can record as before',
    errors: ['not_found'],
  },
  restoreAgent: {
    ...act,
    path: `${AGENT}/restore`,
    audit: { action: 'agent.restore', target: 'agent' },
    summary: 'Show an archived agent in the list of agents again',
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
