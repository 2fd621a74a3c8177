/** The last steps of the run before a request. */
import type { EventRow } from '@tacho/contract/record/event.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { problemOf } from '@tacho/contract/runs/problem.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { EventType } from '../runs/event-type.tsx'
import { noteOf, stepName } from '../runs/page/notes.ts'
import { ProblemMark, StepNote } from '../runs/page/problem-mark.tsx'
import { tellProblem } from '../runs/page/problems.ts'
import { eventQuery } from '../runs/queries.ts'
import { api, refusalOf } from '../web/api.ts'
import { ShownText } from '../web/text/shown-text.tsx'
import { Time } from '../web/text/times.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { Skeleton } from '../web/ui/states.tsx'

const route = getRouteApi('/w/$workspace/$environment/approvals/$approvalId')
const REFRESH_MS = 2_000
const STEPS_SHOWN = 6
/** Steps with a larger payload show only their label. */
const STEP_BYTES = 65_536

/** Reads the last steps of a run, sorted by time. */
function useLastSteps(environmentId: string, runId: string) {
  const cache = useQueryClient()
  return useQuery({
    queryKey: ['last steps', environmentId, runId],
    queryFn: async ({ signal }) => {
      const query = { order: 'latest', limit: STEPS_SHOWN } as const
      const { items } = await api.listEventRows({ params: { environmentId, runId }, query }, { signal })
      const withNote = async (row: EventRow) => {
        if (row.payloadBytes > STEP_BYTES) return { ...row, note: '', problem: null }
        const { event } = await cache.fetchQuery(eventQuery(environmentId, runId, row.eventId))
        const { eventType, label } = row
        const payload = isObject(event.payload) ? event.payload : {}
        const problem = problemOf({ eventType, label, payload })
        return { ...row, note: noteOf(eventType, label, payload), problem: problem && tellProblem(eventType, problem) }
      }
      return Promise.all(items.toReversed().map(withNote))
    },
    refetchInterval: REFRESH_MS,
  })
}

export function LastSteps({ environmentId, runId }: { environmentId: string; runId: string }) {
  const params = route.useParams()
  const { data, error } = useLastSteps(environmentId, runId)
  return (
    <Section title="Last steps of the run" error={!data && !isUnknown(error) && error}>
      {data ? (
        <ol>
          {data.map(({ eventId, eventType, label, timestamp, problem, note }) => (
            <li
              key={eventId}
              className="relative flex h-8 items-center gap-3 border-b border-line text-sm last:border-0 hover:bg-hover"
            >
              <span className="w-20 shrink-0">
                <EventType type={eventType} />
              </span>
              <Link
                to="/w/$workspace/$environment/runs/$runId"
                params={{ ...params, runId }}
                search={{ step: eventId }}
                title={label}
                className="min-w-0 flex-1 truncate after:absolute after:inset-0"
              >
                <bdi>
                  <ShownText text={stepName({ eventType, label })} />
                </bdi>
                <StepNote note={note} />
              </Link>
              <ProblemMark problem={problem ?? undefined} />
              <span className="text-soft">
                <Time at={timestamp} />
              </span>
            </li>
          ))}
        </ol>
      ) : isUnknown(error) ? (
        <Nothing>No event of this run has been recorded.</Nothing>
      ) : (
        <Skeleton className="h-24" />
      )}
    </Section>
  )
}

/** Whether the server reports that it does not exist. After any other error, it may exist. */
const isUnknown = (error: unknown): boolean => refusalOf(error)?.status === 404
