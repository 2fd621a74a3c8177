import type { Agent } from '@tacho/contract/runs/agent.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import { isStorableText } from '../../domain/web/text.ts'
import type { AgentRow } from '../../storage/runs/agents.ts'
import { listById, NOTHING } from '../web/paging.ts'
import type { OperatorDeps } from '../web/serve.ts'

export function agentsRoutes({ serve, storage }: OperatorDeps): void {
  serve('listAgents', ({ query: { archived, q }, environment: { id }, walk }) => {
    if (q !== undefined && !isStorableText(q)) return NOTHING
    const filter = { withArchived: archived === 'true', search: q }
    return listById(walk, (page) => storage.listAgents(id, page, filter), toAgent)
  })
}

export function toAgent({ id, externalId, reportedName, displayName, archivedAt, lastRunAt }: AgentRow): Agent {
  const times = { archivedAt: isoTime(archivedAt), lastRunAt: isoTime(lastRunAt) }
  return { id, agentId: externalId, name: displayName ?? reportedName, reportedName, ...times }
}
