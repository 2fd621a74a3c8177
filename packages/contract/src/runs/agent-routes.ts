import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { Agent, AgentName, AgentPage, AgentParams, AgentsQuery } from './agent.ts'
import { EnvironmentParams } from '../tenants/environment.ts'

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
