import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { stalledMs } from '@tacho/contract/runs/run-activity.ts'
import { Chip, type Tone } from '../web/ui/chip.tsx'
import { duration } from '../web/text/format.ts'
import { useNow } from '../web/text/times.tsx'
import { needsPerson } from '../approvals/caller-state.tsx'
import { pendingQuery } from '../approvals/queries.ts'

const LOOKS: Record<RunStatus, { tone: Tone; word: string; sign: string }> = {
  RUNNING: { tone: 'accent', word: 'Running', sign: '●' },
  COMPLETED: { tone: 'green', word: 'Completed', sign: '✓' },
  FAILED: { tone: 'red', word: 'Failed', sign: '✕' },
  CANCELLED: { tone: 'plain', word: 'Cancelled', sign: '–' },
}

export function Status({ status }: { status: RunStatus }) {
  const { tone, word, sign } = LOOKS[status]
  return (
    <Chip tone={tone}>
      <span aria-hidden className={status === 'RUNNING' ? 'animate-pulse' : ''}>
        {sign}
      </span>
      {word}
    </Chip>
  )
}

/** The status of a run now: a running one may wait for a person, or be stalled: without an event for long. */
export function RunStatusChip({ run }: { run: OperatorRun }) {
  const silence = stalledMs(run, useNow())
  const approval = useWaitingFor(run.runId)
  const isPaused = run.activity === 'WAITING_FOR_APPROVAL'
  if (run.status === 'RUNNING' && (approval !== null || isPaused)) {
    return (
      <span title={approval === null ? 'Waits for a person' : 'Waits for an approval'}>
        <Chip tone="amber">
          <span aria-hidden>‖</span>
          Waiting
        </Chip>
      </span>
    )
  }
  if (silence === null) return <Status status={run.status} />
  return (
    <span title={`No event for ${duration(silence)}`}>
      <Chip tone="amber">
        <span aria-hidden>!</span>
        Stalled
      </Chip>
    </span>
  )
}

export function statusWord(status: RunStatus): string {
  return LOOKS[status].word
}

const route = getRouteApi('/w/$workspace/$environment')

/** The request for approval that a run waits for, if it is one of those that the header counts: a killed agent waits for none. */
export function useWaitingFor(runId: string): string | null {
  const { place } = route.useRouteContext()
  const { data } = useQuery({
    ...pendingQuery(place.environment.id),
    select: ({ items }) => items.find((approval) => approval.runId === runId && needsPerson(approval))?.id ?? null,
  })
  return data ?? null
}
