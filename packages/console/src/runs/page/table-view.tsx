import { stepName } from './notes.ts'
import { useCallback, useMemo } from 'react'
import { bytes, clock, duration, number } from '../../web/text/format.ts'
import { EventType } from '../event-type.tsx'
import { ProblemMark, RowNote, useProblemMarks } from './problem-mark.tsx'
import type { NotesOf } from './notes.ts'
import type { Problem } from './problems.ts'
import type { Step } from '../queries.ts'
import type { Sort } from '../address.ts'
import { StepList, type StepListProps } from './step-list.tsx'

const ORDERS: Record<Sort, (a: Step, b: Step) => number> = {
  gap: (a, b) => b.gap - a.gap,
  size: (a, b) => b.payloadBytes - a.payloadBytes,
  type: (a, b) => (a.eventType < b.eventType ? -1 : a.eventType > b.eventType ? 1 : a.index - b.index),
}

interface Props extends StepListProps {
  problems: readonly Problem[]
  ofRun: NotesOf
  sort: Sort | undefined
  onSort: (by: Sort | undefined) => void
}

const COLUMNS =
  'grid grid-cols-[3rem_4.5rem_minmax(0,1fr)] items-center gap-3 px-3 sm:grid-cols-[4rem_6rem_5.5rem_minmax(0,1fr)_5rem_5rem] sm:px-5'

export function TableView({ sort, onSort, problems, ofRun, ...list }: Props) {
  const marks = useProblemMarks(problems)
  const steps = useMemo(() => (sort ? [...list.steps].sort(ORDERS[sort]) : list.steps), [list.steps, sort])
  const { onSelect } = list
  const row = useCallback(
    (step: Step, isSelected: boolean) => (
      <div
        data-current={isSelected}
        className={`tabular h-full border-b border-line text-sm hover:bg-hover data-[current=true]:bg-accent-wash ${COLUMNS}`}
      >
        <span className="text-right text-soft">{number(step.index + 1)}</span>
        <span className="hidden text-soft sm:block">{clock(step.time)}</span>
        <span className="truncate">
          <EventType type={step.eventType} />
        </span>
        <span className="flex min-w-0 items-center gap-2">
          <button
            type="button"
            title={step.label}
            onClick={() => onSelect(step)}
            className="min-w-0 truncate text-left"
          >
            <bdi>{stepName(step)}</bdi>
            <RowNote ofRun={ofRun} step={step} />
          </button>
          <ProblemMark problem={marks.get(step.eventId)} />
        </span>
        <span className="hidden text-right text-soft sm:block">{bytes(step.payloadBytes)}</span>
        <span className="hidden text-right text-soft sm:block">{duration(step.gap)}</span>
      </div>
    ),
    [marks, ofRun, onSelect],
  )
  return (
    <>
      <div className={`h-8 border-b border-line text-xs text-soft ${COLUMNS}`}>
        <SortBy name="#" by={undefined} sort={sort} onSort={onSort} right />
        <span className="hidden sm:block">Time</span>
        <SortBy name="Type" by="type" sort={sort} onSort={onSort} />
        <span>Label</span>
        <SortBy name="Size" by="size" sort={sort} onSort={onSort} right />
        <SortBy name="Gap" by="gap" sort={sort} onSort={onSort} right />
      </div>
      <StepList {...list} steps={steps} label="Steps" rowPx={32}>
        {row}
      </StepList>
    </>
  )
}

interface SortByProps {
  name: string
  by: Sort | undefined
  sort: Sort | undefined
  onSort: (by: Sort | undefined) => void
  right?: boolean
}

function SortBy({ name, by, sort, onSort, right = false }: SortByProps) {
  const isChosen = by === sort
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      aria-label={`Sort by ${name === '#' ? 'time' : name.toLowerCase()}`}
      onClick={() => onSort(by)}
      className={`hover:text-ink ${right ? 'text-right' : 'text-left'} ${isChosen ? 'font-semibold text-ink' : ''} ${by === 'size' || by === 'gap' ? 'hidden sm:block' : ''}`}
    >
      {name}
    </button>
  )
}
