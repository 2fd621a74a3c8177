import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { EventContent } from '../runs/event-content.tsx'
import { eventQuery, type Step } from '../runs/run-queries.ts'
import { Refused } from '../ui/refused.tsx'
import { Nothing } from '../ui/section.tsx'
import { Skeleton } from '../ui/states.tsx'
import type { Pair } from './align.ts'

const route = getRouteApi('/w/$workspace/$environment/compare')

/** What was recorded at one step in each run. */
export function BothContents({ pair, a, b }: { pair: Pair; a: string; b: string }) {
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  return (
    <div className="grid grid-cols-1 gap-4 bg-page px-2 py-3 md:grid-cols-2">
      <Content environmentId={environmentId} runId={a} step={pair.a} />
      <Content environmentId={environmentId} runId={b} step={pair.b} />
    </div>
  )
}

function Content({ environmentId, runId, step }: { environmentId: string; runId: string; step: Step | null }) {
  if (step === null) return <Nothing>This run has no such step.</Nothing>
  return <Recorded environmentId={environmentId} runId={runId} eventId={step.eventId} />
}

function Recorded(props: { environmentId: string; runId: string; eventId: string }) {
  const { data, error } = useQuery(eventQuery(props.environmentId, props.runId, props.eventId))
  if (error) return <Refused error={error} />
  return <div className="min-w-0">{data ? <EventContent event={data.event} /> : <Skeleton className="h-16" />}</div>
}
