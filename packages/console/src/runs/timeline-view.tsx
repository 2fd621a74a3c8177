import { useCallback, useMemo } from 'react'
import { duration } from '../ui/format.ts'
import { barsOf, extentOf } from '@tacho/contract/bars.ts'
import { EventType, lookOf } from './event-type.tsx'
import { ProblemMark, StepNote, useProblemMarks } from './problem-mark.tsx'
import type { Problem, Sayings } from './problems.ts'
import type { Step } from './run-queries.ts'
import { StepList, type StepListProps } from './step-list.tsx'

/** Waterfall: a call as long as it took, a step that closes its span from the span's first event, any other at its time. */
export function TimelineView({
  all,
  problems,
  notes,
  ...list
}: StepListProps & { all: readonly Step[]; problems: readonly Problem[]; notes: Sayings['notes'] }) {
  const bars = useMemo(() => barsOf(all), [all])
  const marks = useProblemMarks(problems)
  const { from, span } = useMemo(
    () => extentOf(bars.filter((_, index) => all[index]?.eventType !== 'SCORE')),
    [bars, all],
  )
  const { onSelect } = list
  const row = useCallback(
    (step: Step, isSelected: boolean) => {
      const bar = bars[step.index] ?? { from: step.time, to: step.time, depth: 0 }
      const left = ((bar.from - from) / span) * 100
      const width = ((bar.to - bar.from) / span) * 100
      return (
        <div
          data-current={isSelected}
          className="flex h-full items-center gap-2 border-b border-line px-3 text-sm hover:bg-hover data-[current=true]:bg-accent-wash sm:px-5"
        >
          <span className="tabular w-14 shrink-0 text-right text-xs text-soft">{duration(bar.from - from)}</span>
          <span className="w-18 shrink-0">
            <EventType type={step.eventType} />
          </span>
          <button
            type="button"
            title={step.label}
            onClick={() => onSelect(step)}
            className="min-w-0 flex-auto truncate text-left"
            style={{ paddingLeft: bar.depth * 14 }}
          >
            <bdi>{step.label}</bdi>
            <StepNote note={notes.get(step.eventId)} />
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
    },
    [bars, from, span, marks, notes, onSelect],
  )
  return (
    <StepList {...list} label="Timeline" rowPx={32}>
      {row}
    </StepList>
  )
}
