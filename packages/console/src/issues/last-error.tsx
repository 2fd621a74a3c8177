import { failureLine, failureOf } from '@tacho/contract/failure.ts'
import { isObject } from '@tacho/contract/read-payload.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { FailureDetails } from '../runs/failure.tsx'
import { eventQuery } from '../runs/run-queries.ts'
import { Section } from '../ui/section.tsx'
import { Time } from '../ui/time.tsx'
import { useOccurrences } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/issues/$issueId')

/** The error of the latest occurrence whose event is recorded, with its causes and its stack. Nothing if it tells none. */
export function LastError({ environmentId, issueId }: { environmentId: string; issueId: string }) {
  const latest = useOccurrences(environmentId, issueId).items.find(({ internalEventId }) => internalEventId !== null)
  if (!latest?.runId || !latest.eventId) return null
  return <ErrorOf environmentId={environmentId} runId={latest.runId} eventId={latest.eventId} at={latest.detectedAt} />
}

interface Props {
  environmentId: string
  runId: string
  eventId: string
  at: string
}

function ErrorOf({ environmentId, runId, eventId, at }: Props) {
  const params = route.useParams()
  const { data } = useQuery(eventQuery(environmentId, runId, eventId))
  if (!data) return null
  const { eventType, label } = data.event
  const told = { eventType, label, payload: isObject(data.event.payload) ? data.event.payload : {} }
  const failure = failureOf(told)
  if (failure === null || failureLine(failure, null) === '') return null
  return (
    <Section title="Last error">
      <FailureDetails {...told} />
      <p className="mt-2 text-sm text-soft">
        <Time at={at} /> in{' '}
        <Link
          to="/w/$workspace/$environment/runs/$runId"
          params={{ ...params, runId }}
          search={{ step: eventId }}
          className="link"
        >
          <bdi>{runId}</bdi>
        </Link>
      </p>
    </Section>
  )
}
