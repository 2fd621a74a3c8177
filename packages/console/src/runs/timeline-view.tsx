import { useCallback } from 'react'
import { duration } from '../ui/format.ts'
import type { Bar } from '@tacho/contract/bars.ts'
import { EventType, lookOf } from './event-type.tsx'
import { ProblemMark, RowNote, useProblemMarks } from './problem-mark.tsx'
import type { OfRun } from './notes.ts'
import type { Problem } from './problems.ts'
import type { Step } from './run-queries.ts'
import { StepList, type StepListProps } from './step-list.tsx'

interface Props extends StepListProps {
  /** Of all steps of the run, by their index. */
  bars: readonly Bar[]
  /** The time that all bars take up. */
  extent: { from: number; span: number }
  problems: readonly Problem[]
  ofRun: OfRun
}

/** Waterfall: a call as long as it took, a step that closes its span from the span's first event, any other at its time. */
export function TimelineView({ bars, extent: { from, span }, problems, ofRun, ...list }: Props) {
  const marks = useProblemMarks(problems)
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
            <RowNote ofRun={ofRun} step={step} />
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
    [bars, from, span, marks, ofRun, onSelect],
  )
  return (
    <StepList {...list} label="Timeline" rowPx={32}>
      {row}
    </StepList>
  )
}
