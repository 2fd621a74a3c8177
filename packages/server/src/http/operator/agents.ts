import type { Agent } from '@tacho/contract/operator/agent.ts'
import type { FastifyRequest } from 'fastify'
import { isoTime, nullableIsoTime } from '../../domain/run.ts'
import { isStorableText } from '../../domain/text.ts'
import type { AgentChange, AgentRow } from '../../storage/agents.ts'
import { refuse } from '../reply-error.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { listPage, byId, NOTHING } from '../paging.ts'
import { checkTexts } from '../field.ts'
import type { OperatorDeps } from './serve.ts'

const NO_ID = refuse('conflict', 'Events identify the agent by its name; send an agentId to rename it')

export function agentsRoutes({ serve, storage, cursors, now }: OperatorDeps): void {
  serve('listAgents', ({ query, environment: { id } }) => {
    const withArchived = query.archived === 'true'
    if (query.q !== undefined && !isStorableText(query.q)) return NOTHING
    return listPage(cursors, query, {
      of: ['agents', id, withArchived, query.q],
      read: (page) => storage.listAgents(id, page, { withArchived, search: query.q }),
      toItem: toAgent,
      placeOf: byId,
    })
  })

  serve('renameAgent', ({ params, body: { name }, request }) => {
    checkTexts({ name })
    return change(request, params.agentId, 'rename', now(), { displayName: name }, { name })
  })

  for (const verb of ['archive', 'restore'] as const) {
    serve(`${verb}Agent`, ({ params, request }) => {
      const at = now()
      return change(request, params.agentId, verb, at, { archivedAt: verb === 'archive' ? at : null })
    })
  }

  async function change(
    request: FastifyRequest,
    agentId: string,
    verb: string,
    at: number,
    to: AgentChange,
    detail: object = {},
  ) {
    const id = agentId.toLowerCase()
    const audit = [auditOf(request, at, `agent.${verb}`, { kind: 'agent', id }, detail)]
    const row = await storage.changeAgent(environmentOf(request).id, id, to, audit)
    if (row === 'no_id') return NO_ID
    return row === null ? refuse('not_found', 'The agent does not exist') : toAgent(row)
  }
}

function toAgent({ id, externalId, reportedName, displayName, archivedAt, lastRunAt }: AgentRow): Agent {
  const times = { archivedAt: nullableIsoTime(archivedAt), lastRunAt: isoTime(lastRunAt) }
  return { id, agentId: externalId, name: displayName ?? reportedName, reportedName, ...times }
}
