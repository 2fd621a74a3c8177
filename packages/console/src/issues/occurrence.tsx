import { failureLine, failureOf } from '@tacho/contract/issues/failure.ts'
import type { Issue } from '@tacho/contract/issues/issue.ts'
import type { IssueRecord } from '@tacho/contract/issues/operator-issue-record.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { EventContent, StepInput } from '../runs/page/event-content.tsx'
import { FailureSaid, Stack } from '../runs/page/event-details.tsx'
import { eventQuery, runQuery } from '../runs/queries.ts'
import { RunStatusChip } from '../runs/run-status.tsx'
import { Button } from '../web/ui/button.tsx'
import { number, runName } from '../web/text/format.ts'
import { useKeys } from '../web/ui/keys.ts'
import { Refused, Skeleton } from '../web/ui/states.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { Time } from '../web/text/times.tsx'
import { Reported } from './occurrences.tsx'
import { recordQuery, useOccurrences } from './queries.ts'
import { StepsBefore } from './steps-before.tsx'

const route = getRouteApi('/w/$workspace/$environment/issues/$issueId')
/** Maximum number of occurrences to step through. For older ones, the list and its filters are faster. */
const READ_AT_MOST = 500

/** A complete occurrence, the newest unless another is chosen: the failure, its input, and the steps before it. */
export function Occurrence({ environmentId, issue }: { environmentId: string; issue: Issue }) {
  const list = useOccurrences(environmentId, issue.id)
  const { occurrence: chosen } = route.useSearch()
  const navigate = useNavigate()
  // Keep showing this occurrence when a newer one arrives, because a person is reading it.
  const [first, setFirst] = useState<string>()
  const newest = list.items[0]?.id
  if (first === undefined && newest !== undefined) setFirst(newest)
  const id = chosen ?? first ?? newest
  const index = list.items.findIndex((record) => record.id === id)
  const { data: named, error } = useQuery({
    ...recordQuery(environmentId, id ?? ''),
    enabled: id !== undefined && index === -1 && !list.isPending,
  })
  const record = list.items[index] ?? (named?.issueId === issue.id ? named : undefined)

  const show = (one: string | undefined) =>
    void navigate({
      to: '.',
      search: one === undefined ? {} : { occurrence: one },
      replace: true,
      resetScroll: false,
    })
  const isLast = index === list.items.length - 1
  const mayRead = list.hasNextPage && list.items.length < READ_AT_MOST
  const hasOlder = index !== -1 && (!isLast || mayRead)
  const older = async () => {
    if (!hasOlder || list.isFetchingNextPage) return
    const items = isLast ? (await list.fetchNextPage()).data?.pages.flatMap((page) => page.items) : list.items
    if (items?.[index + 1]) show(items[index + 1]?.id)
  }
  const newer = () => index > 0 && show(list.items[index - 1]?.id)
  useKeys({
    j: { name: 'Show the occurrence before', act: () => void older() },
    k: { name: 'Show the next newer occurrence', act: newer },
  })
  const all = list.hasNextPage ? Math.max(issue.occurrences, list.items.length) : list.items.length
  const note = record && (
    <span className="flex items-center gap-2">
      {index === -1 ? (
        <Button look="quiet" className="h-6" onClick={() => show(undefined)}>
          Show the newest
        </Button>
      ) : (
        <>
          <span aria-live="polite">
            {number(index + 1)} of {number(all)}
          </span>
          <Button look="quiet" className="h-6" title="Key: k" disabled={index === 0} onClick={newer}>
            ‹ Newer
          </Button>
          <Button
            look="quiet"
            className="h-6"
            title="Key: j"
            disabled={!hasOlder}
            busy={list.isFetchingNextPage}
            onClick={() => void older()}
          >
            Older ›
          </Button>
        </>
      )}
    </span>
  )
  return (
    <Section title="Occurrence" note={note}>
      {record ? (
        <Told key={record.id} environmentId={environmentId} record={record} />
      ) : error ? (
        <Refused error={error} />
      ) : list.isPending || (id !== undefined && named === undefined) ? (
        <Skeleton className="h-40" />
      ) : (
        <Nothing>{id === undefined ? 'No occurrence is kept.' : 'This issue has no such occurrence.'}</Nothing>
      )}
    </Section>
  )
}

function Told({ environmentId, record }: { environmentId: string; record: IssueRecord }) {
  const { runId, eventId, internalRunId, internalEventId } = record
  return (
    <div className="flex flex-col gap-3">
      <Where environmentId={environmentId} record={record} />
      {runId !== null && eventId !== null && internalEventId !== null ? (
        <Failed environmentId={environmentId} runId={runId} eventId={eventId} />
      ) : (
        <>
          <Reported environmentId={environmentId} recordId={record.id} />
          {runId !== null && internalRunId !== null && <StepsBefore environmentId={environmentId} runId={runId} />}
        </>
      )}
    </div>
  )
}

/** Time, run and agent of the occurrence. */
function Where({ environmentId, record }: { environmentId: string; record: IssueRecord }) {
  const params = route.useParams()
  const { runId, eventId, internalRunId, internalEventId } = record
  const { data: run } = useQuery({ ...runQuery(environmentId, runId ?? ''), enabled: internalRunId !== null })
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-soft">
      <Time at={record.detectedAt} />
      <bdi title={record.agentId}>{run?.agent.name ?? record.agentId}</bdi>
      {runId !== null && internalRunId !== null && (
        <Link
          to="/w/$workspace/$environment/runs/$runId"
          params={{ ...params, runId }}
          search={internalEventId !== null && eventId !== null ? { step: eventId } : {}}
          title={runId}
          className="link min-w-0 flex-1 truncate"
        >
          <bdi>{run ? runName(run) : runId}</bdi>
        </Link>
      )}
      {runId !== null && internalRunId === null && <bdi>{runId}</bdi>}
      {run && <RunStatusChip run={run} />}
    </div>
  )
}

interface FailedProps {
  environmentId: string
  runId: string
  eventId: string
}

/** The message, the input, the steps that led to it, and the stack. */
function Failed({ environmentId, runId, eventId }: FailedProps) {
  const { data, error } = useQuery(eventQuery(environmentId, runId, eventId))
  if (error) return <Refused error={error} />
  if (!data) return <Skeleton className="h-40" />
  const { event } = data
  const { eventType, label, payload } = event
  const failure = failureOf({ eventType, label, payload: isObject(payload) ? payload : {} })
  const isSaid = failure !== null && failureLine(failure, null) !== ''
  return (
    <>
      {event.payloadRemoved && <Nothing>The payload was removed by retention.</Nothing>}
      {isSaid ? (
        <>
          <FailureSaid failure={failure} />
          {/* Bounded height, so that a large input does not push the steps out of sight. */}
          <div role="group" aria-label="Input" tabIndex={0} className="max-h-60 overflow-y-auto empty:hidden">
            <StepInput event={event} />
          </div>
        </>
      ) : (
        <EventContent event={event} />
      )}
      <StepsBefore environmentId={environmentId} runId={runId} last={event} />
      {isSaid && <Stack stack={failure.stack} />}
    </>
  )
}
