import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { pendingQuery } from '../approvals/queries.ts'

const route = getRouteApi('/w/$workspace/$environment')

/** The request for approval that a run waits for, if it is one of those that the header counts. */
export function useWaitingFor(runId: string): string | null {
  const { place } = route.useRouteContext()
  const { data } = useQuery({
    ...pendingQuery(place.environment.id),
    select: ({ items }) => items.find((approval) => approval.runId === runId)?.id ?? null,
  })
  return data ?? null
}
