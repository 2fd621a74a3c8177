import type { Agent } from '@tacho/contract/operator/agent.ts'
import { isoTime } from '../../storage/iso-time.ts'
import { isStorableText } from '../../domain/text.ts'
import type { AgentRow } from '../../storage/agents.ts'
import { listPage, byId, NOTHING } from '../paging.ts'
import type { OperatorDeps } from './serve.ts'

export function agentsRoutes({ serve, storage, cursors }: OperatorDeps): void {
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
}

export function toAgent({ id, externalId, reportedName, displayName, archivedAt, lastRunAt }: AgentRow): Agent {
  const times = { archivedAt: isoTime(archivedAt), lastRunAt: isoTime(lastRunAt) }
  return { id, agentId: externalId, name: displayName ?? reportedName, reportedName, ...times }
}
