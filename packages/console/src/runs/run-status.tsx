import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { stalledMs } from '@tacho/contract/runs/run-activity.ts'
import { State } from '../web/ui/state.tsx'
import { stateWord } from '../web/text/state-styles.ts'
import { duration } from '../web/text/format.ts'
import { useNow } from '../web/text/times.tsx'
import { needsPerson } from '../approvals/caller-state.tsx'
import { pendingQuery } from '../approvals/queries.ts'

export const Status = ({ status }: { status: RunStatus }) => <State is={status} />

/** The current status of a run. A running one may wait for a person, or be stalled if it has sent no event for long. */
export function RunStatusChip({ run }: { run: OperatorRun }) {
  const silence = stalledMs(run, useNow())
  const approval = useWaitingFor(run.runId)
  const isPaused = run.activity === 'WAITING_FOR_APPROVAL'
  if (run.status === 'RUNNING' && (approval !== null || isPaused))
    return <State is="WAITING" note={approval === null ? 'Waits for a person' : 'Waits for an approval'} />
  if (silence === null) return <State is={run.status} />
  return <State is="STALLED" note={`No event for ${duration(silence)}`} />
}

export const statusWord = (status: RunStatus): string => stateWord(status)

const route = getRouteApi('/w/$workspace/$environment')

/** The approval request that a run waits for, if the header counts it. A killed agent waits for none. */
export function useWaitingFor(runId: string): string | null {
  const { place } = route.useRouteContext()
  const { data } = useQuery({
    ...pendingQuery(place.environment.id),
    select: ({ items }) => items.find((approval) => approval.runId === runId && needsPerson(approval))?.id ?? null,
  })
  return data ?? null
}
