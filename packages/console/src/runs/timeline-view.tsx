import { useMemo } from 'react'
import { duration } from '../ui/format.ts'
import { EventType, lookOf } from './event-type.tsx'
import { ProblemMark, useProblemMarks } from './problem-mark.tsx'
import type { Problem } from './problems.ts'
import type { Step } from './run-queries.ts'
import { StepList, type StepListProps } from './step-list.tsx'

/** Deeper spans are not indented further. */
const DEEPEST = 8

interface Bar {
  from: number
  to: number
  depth: number
}

/** Waterfall: the step that closes a span is drawn from the span's first event, any other at its own time. */
export function TimelineView({
  all,
  problems,
  ...list
}: StepListProps & { all: readonly Step[]; problems: readonly Problem[] }) {
  const bars = useMemo(() => barsOf(all), [all])
  const marks = useProblemMarks(problems)
  const start = all[0]?.time ?? 0
  const span = Math.max(1, (all.at(-1)?.time ?? 0) - start)
  return (
    <StepList {...list} label="Timeline" rowPx={32}>
      {(step) => {
        const bar = bars[step.index] ?? { from: step.time, to: step.time, depth: 0 }
        const left = ((bar.from - start) / span) * 100
        const width = ((bar.to - bar.from) / span) * 100
        return (
          <div
            data-current={step === list.selected}
            className="flex h-full items-center gap-2 border-b border-line px-3 text-sm hover:bg-hover data-[current=true]:bg-accent-wash sm:px-5"
          >
            <span className="tabular w-14 shrink-0 text-right text-xs text-soft">{duration(step.time - start)}</span>
            <span className="w-18 shrink-0">
              <EventType type={step.eventType} />
            </span>
            <button
              type="button"
              title={step.label}
              onClick={() => list.onSelect(step)}
              className="min-w-0 flex-1 truncate text-left"
              style={{ paddingLeft: bar.depth * 14 }}
            >
              <bdi>{step.label}</bdi>
            </button>
            <ProblemMark problem={marks.get(step.eventId)} />
            <span aria-hidden className="relative hidden h-full w-1/3 shrink-0 sm:block">
              <span
                className={`absolute top-1/2 h-2 -translate-y-1/2 rounded-sm opacity-75 ${lookOf(step.eventType).fill}`}
                style={{ left: `min(${left}%, 100% - 3px)`, width: `max(${width}%, 3px)` }}
              />
            </span>
            <span className="tabular hidden w-16 shrink-0 text-right text-xs text-soft lg:inline">
              {bar.to > bar.from ? duration(bar.to - bar.from) : ''}
            </span>
          </div>
        )
      }}
    </StepList>
  )
}

function barsOf(steps: readonly Step[]): Bar[] {
  const spans = new Map<string, { from: number; last: string; parent: string | null }>()
  for (const { spanId, parentSpanId, time, eventId } of steps) {
    if (spanId === null) continue
    const known = spans.get(spanId)
    if (known) Object.assign(known, { last: eventId, parent: known.parent ?? parentSpanId })
    else spans.set(spanId, { from: time, last: eventId, parent: parentSpanId })
  }
  const depthOf = (spanId: string | null): number => {
    let depth = 0
    // Spans may name each other in a circle.
    for (let at = spanId && spans.get(spanId)?.parent; at && depth < DEEPEST; depth++)
      at = spans.get(at)?.parent ?? null
    return depth
  }
  return steps.map(({ spanId, time, eventId, eventType }) => {
    const own = spanId === null ? undefined : spans.get(spanId)
    // The last event of the run's own span is its outcome, which closes more than this span.
    const closes = own?.last === eventId && eventType === 'AGENT_STEP'
    return { from: closes ? own.from : time, to: time, depth: depthOf(spanId) }
  })
}
