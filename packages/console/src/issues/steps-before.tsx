import type { OperatorEvent } from '@tacho/contract/runs/operator-run.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { EventContent } from '../runs/page/event-content.tsx'
import { EventType } from '../runs/event-type.tsx'
import { useNote, stepName } from '../runs/page/notes.ts'
import { StepNote } from '../runs/page/problem-mark.tsx'
import { eventQuery, type Step } from '../runs/queries.ts'
import { duration } from '../web/text/format.ts'
import { Refused, Skeleton } from '../web/ui/states.tsx'
import { STEPS_BEFORE, stepsBeforeQuery } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/issues/$issueId')
const ROW = 'flex min-h-8 w-full items-center gap-2 border-b border-line px-1 text-left text-sm'

interface Props {
  environmentId: string
  runId: string
  /** The last of the steps to show. Absent: the last step of the run. */
  last?: OperatorEvent
}

/** The agent's steps before the failure. Each can be opened in place. */
export function StepsBefore({ environmentId, runId, last }: Props) {
  const params = route.useParams()
  const { data: steps, error } = useQuery(stepsBeforeQuery(environmentId, runId, last?.eventId))
  const end = last ? Date.parse(last.timestamp) : (steps?.at(-1)?.time ?? 0)
  return (
    <section aria-label="Steps before">
      <h3 className="mb-0.5 text-xs font-medium text-soft">
        {last ? `The steps before it, at most ${STEPS_BEFORE}` : `The last steps of the run, at most ${STEPS_BEFORE}`}
      </h3>
      {error ? (
        <Refused error={error} />
      ) : !steps ? (
        <Skeleton className="h-40" />
      ) : (
        <ol className="border-t border-line">
          {steps.map((step) => (
            <StepRow key={step.eventId} environmentId={environmentId} runId={runId} step={step} before={end} />
          ))}
          {last && (
            <li className={`${ROW} bg-red-wash`}>
              <span className="w-4 shrink-0" aria-hidden />
              <span className="w-18 shrink-0">
                <EventType type={last.eventType} />
              </span>
              <bdi className="min-w-0 flex-1 truncate font-medium" title={last.label}>
                {stepName(last)}
              </bdi>
              <Link
                to="/w/$workspace/$environment/runs/$runId"
                params={{ ...params, runId }}
                search={{ step: last.eventId }}
                className="link shrink-0"
              >
                Open in the run
              </Link>
            </li>
          )}
        </ol>
      )}
    </section>
  )
}

interface StepRowProps {
  environmentId: string
  runId: string
  step: Step
  /** The time of the failure. */
  before: number
}

function StepRow({ environmentId, runId, step, before }: StepRowProps) {
  const [isOpen, setOpen] = useState(false)
  const note = useNote({ environmentId, runId, areProblemsRead: true }, step)
  return (
    <li>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className={`${ROW} hover:bg-hover`}>
        <span aria-hidden className="w-4 shrink-0 text-soft">
          {isOpen ? '▾' : '▸'}
        </span>
        <span className="w-18 shrink-0">
          <EventType type={step.eventType} />
        </span>
        <span className="min-w-0 flex-1 truncate">
          <bdi title={step.label}>{stepName(step)}</bdi> <StepNote note={note} />
        </span>
        <span className="tabular shrink-0 text-xs text-soft">{timeBefore(before - step.time)}</span>
      </button>
      {isOpen && <Opened environmentId={environmentId} runId={runId} eventId={step.eventId} />}
    </li>
  )
}

const timeBefore = (ms: number) => `${ms > 0 ? '−' : ''}${duration(ms)}`

function Opened({ environmentId, runId, eventId }: { environmentId: string; runId: string; eventId: string }) {
  const { data, error } = useQuery(eventQuery(environmentId, runId, eventId))
  if (error) return <Refused error={error} className="py-2" />
  return (
    <div className="border-b border-line bg-side px-3 py-2">
      {data ? <EventContent event={data.event} /> : <Skeleton className="h-12" />}
    </div>
  )
}
