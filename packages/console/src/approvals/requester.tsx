import type { OperatorApproval } from '@tacho/contract/operator/approval.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api } from '../api.ts'

const route = getRouteApi('/w/$workspace/$environment')

/** Who asked: the agent by its newest name, or the client that named no agent. */
export function useRequester({ agentId, clientId }: Pick<OperatorApproval, 'agentId' | 'clientId'>): string {
  const environmentId = route.useRouteContext().place.environment.id
  const { data } = useQuery({
    queryKey: ['agent name', environmentId, agentId],
    queryFn: async ({ signal }) => {
      const query = { agent: agentId ?? '', limit: 1 }
      const { items } = await api.listOperatorRuns({ params: { environmentId }, query }, { signal })
      return items.find((run) => run.agentId === agentId)?.agent.name ?? null
    },
    enabled: agentId !== null,
    staleTime: 5 * 60_000,
  })
  return data ?? agentId ?? clientId
}

export function Requester({ of }: { of: Pick<OperatorApproval, 'agentId' | 'clientId'> }) {
  return (
    <bdi className="min-w-0 truncate" title={of.agentId ?? of.clientId}>
      {useRequester(of)}
    </bdi>
  )
}
