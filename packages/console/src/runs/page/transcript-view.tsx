import type { Bar } from '@tacho/contract/runs/timeline.ts'
import { useQuery } from '@tanstack/react-query'
import { useCallback } from 'react'
import { duration } from '../../web/text/format.ts'
import { Skeleton } from '../../web/ui/states.tsx'
import { EventContent } from './event-content.tsx'
import { EventType } from '../event-type.tsx'
import { ProblemMark, useProblemMarks } from './problem-mark.tsx'
import type { Problem } from './problems.ts'
import { eventQuery, type Step } from '../queries.ts'
import { StepList, type StepListProps } from './step-list.tsx'

interface Props extends StepListProps {
  environmentId: string
  runId: string
  problems: readonly Problem[]
  /** Bars of all steps of the run, by the index of the step. */
  bars: readonly Bar[]
  /** Start of the run. */
  start: number
}

/** The run as a conversation. Reads payloads of visible steps only. */
export function TranscriptView({ environmentId, runId, problems, bars, start, ...list }: Props) {
  const marks = useProblemMarks(problems)
  const row = useCallback(
    (step: Step, isSelected: boolean) => (
      <TranscriptStep
        environmentId={environmentId}
        runId={runId}
        eventId={step.eventId}
        step={step}
        after={(bars[step.index]?.from ?? step.time) - start}
        // Only for a started tool, because the content of other steps describes the error.
        problem={step.eventType === 'TOOL_START' ? marks.get(step.eventId) : undefined}
        isCurrent={isSelected}
      />
    ),
    [environmentId, runId, bars, start, marks],
  )
  return (
    <StepList {...list} label="Transcript" rowPx={96} measured>
      {row}
    </StepList>
  )
}

interface TranscriptStepProps {
  environmentId: string
  runId: string
  eventId: string
  step: Step
  /** Milliseconds since the start of the run. */
  after: number
  problem?: Problem | undefined
  isCurrent: boolean
}

export function TranscriptStep({
  environmentId,
  runId,
  eventId,
  step,
  after,
  problem,
  isCurrent,
}: TranscriptStepProps) {
  return (
    <article
      data-current={isCurrent}
      className="border-l-2 border-transparent px-3 py-2.5 data-[current=true]:border-accent data-[current=true]:bg-accent-wash sm:px-5"
    >
      <div className="mx-auto max-w-3xl">
        <header className="mb-1 flex items-center gap-2 text-xs text-soft">
          <EventType type={step.eventType} />
          <span className="tabular">+{duration(after)}</span>
          <ProblemMark problem={problem} />
        </header>
        <Content environmentId={environmentId} runId={runId} eventId={eventId} />
      </div>
    </article>
  )
}

function Content({ environmentId, runId, eventId }: { environmentId: string; runId: string; eventId: string }) {
  const { data, error } = useQuery(eventQuery(environmentId, runId, eventId))
  if (error) return <p className="text-sm text-red">This step could not be read.</p>
  if (!data) return <Skeleton className="h-12" />
  return <EventContent event={data.event} isFolded />
}
