import Type, { type Static } from 'typebox'
import { id, nextCursor, nullableText, nullableTime, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { ArchivableQuery } from '../tenants/workspace.ts'

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

export const AgentsQuery = Type.Object({
  ...ArchivableQuery.properties,
  q: Type.Optional(
    id(
      LIMITS.searchChars,
      'Search: agents whose name, reported name or external id contains this text; A to Z match a to z. It examines the ' +
        `newest ${LIMITS.searchedAgentNames} agents of the environment`,
    ),
  ),
})

export const AgentPage = Type.Object({ items: Type.Array(Agent), nextCursor }, { $id: 'AgentPage' })

export const AgentParams = Type.Object({ environmentId: uuid('Environment id'), agentId: uuid('Internal agent id') })

export const AgentName = Type.Object(
  { name: id(LIMITS.nameChars, 'Need not be unique. The reported name: operators see that one again, as it changes') },
  { $id: 'AgentName', examples: [{ name: 'Refunds' }] },
)
