import { stepName } from './notes.ts'
import { useCallback, useMemo } from 'react'
import { compact, counted, duration, money, number } from '../../web/text/format.ts'
import type { SnippetPart } from '@tacho/contract/runs/search.ts'
import type { Bar } from '@tacho/contract/runs/timeline.ts'
import { Marked } from '../../web/text/shown-text.tsx'
import { EventType, lookOf } from '../event-type.tsx'
import type { NotesOf } from './notes.ts'
import { ProblemMark, RowNote, useProblemMarks } from './problem-mark.tsx'
import { isRed, type Problem } from './problems.ts'
import type { Step } from '../queries.ts'
import { StepList, type StepListProps } from './step-list.tsx'
import { isFoldable, type Branch, type Row } from './tree.ts'
import type { Range } from './scrubber.tsx'

interface Props extends Omit<StepListProps, 'steps'> {
  /** The rows that are not folded away. */
  rows: readonly Row[]
  onTurn: (row: Row) => void
  /** Bars of all steps of the run, by the index of the step. */
  bars: readonly Bar[]
  /** Start of the run. */
  start: number
  /** The visible period. */
  range: Range
  problems: readonly Problem[]
  ofRun: NotesOf
  /** Snippets of the search's hits, by event id. */
  snippets: ReadonlyMap<string, readonly SnippetPart[]>
}

/** Percent of the width. A bar that ends further right has its text on the left. */
const TURN = 75
const TICKS = [0, 0.25, 0.5, 0.75, 1]
/** Labels of the axis that are hidden in a narrow chart, so that each label has room for `59 m 59 s`. */
const TICK_ROOM: Record<number, string> = {
  0.25: 'hidden @md:inline',
  0.5: 'hidden @min-[13rem]:inline',
  0.75: 'hidden @md:inline',
}
const CHART = 'relative hidden h-full w-[28%] @5xl:w-[34%] shrink-0 overflow-hidden sm:block'
const SUMS = 'tabular hidden w-44 shrink-0 text-right text-xs whitespace-nowrap text-soft @4xl:block'
const LINE = 'flex items-center gap-2 border-b border-line px-3 sm:px-5'

/**
 * The timeline as a waterfall. A call is as long as it took, a step that closes its span begins with the span's first
 * event, and any other step is a point.
 */
export function TimelineView({ rows, onTurn, bars, start, range, problems, ofRun, snippets, ...list }: Props) {
  const marks = useProblemMarks(problems)
  const steps = useMemo(() => rows.map(({ step }) => step), [rows])
  const hasFolds = useMemo(() => rows.some(isFoldable), [rows])
  const hasSums = useMemo(() => rows.some(isSum), [rows])
  const { onSelect } = list
  const row = useCallback(
    (step: Step, isSelected: boolean, index: number) => {
      const branch = rows[index] ?? {
        step,
        depth: 0,
        below: 0,
        to: step.time,
        tokens: step.tokens ?? 0,
        cost: step.cost ?? 0,
        times: 1,
        isClosed: false,
      }
      const { isClosed } = branch
      const bar = bars[step.index] ?? { from: step.time, to: step.time }
      const problem = marks.get(step.eventId)
      const snippet = snippets.get(step.eventId)
      return (
        <div
          data-current={isSelected}
          className={`h-full text-sm hover:bg-hover data-[current=true]:bg-accent-wash ${LINE}`}
        >
          <span className="tabular w-14 shrink-0 text-right text-xs text-soft">{duration(bar.from - start)}</span>
          <span className="w-18 shrink-0">
            <EventType type={step.eventType} />
          </span>
          <span className="flex min-w-0 flex-auto items-center" style={{ paddingLeft: branch.depth * 14 }}>
            {hasFolds && <Turn branch={branch} onTurn={onTurn} />}
            <button
              type="button"
              title={step.label}
              onClick={() => onSelect(step)}
              // Leave room for the step's name beside a long error.
              className="min-w-20 flex-auto truncate text-left sm:min-w-32"
            >
              <bdi>{stepName(step)}</bdi>
              {isClosed ? (
                <Folded branch={branch} from={bar.from} problem={problem} />
              ) : snippet ? (
                <Snippet parts={snippet} label={step.label} />
              ) : (
                <RowNote ofRun={ofRun} step={step} />
              )}
            </button>
          </span>
          <ProblemMark problem={problem} />
          {hasSums && <Sums branch={branch} from={bar.from} />}
          <span aria-hidden className={CHART}>
            <DrawnBar
              from={bar.from}
              to={isClosed ? Math.max(bar.to, branch.to) : bar.to}
              range={range}
              fill={problem && isRed(problem) ? 'bg-red' : lookOf(step.eventType).fill}
            />
          </span>
        </div>
      )
    },
    [rows, hasFolds, hasSums, bars, start, range, marks, ofRun, snippets, onSelect, onTurn],
  )
  return (
    <>
      <div aria-hidden className={`hidden h-6 text-xs text-soft sm:flex ${LINE}`}>
        <span className="flex-auto" />
        {hasSums && <span className={SUMS}>Time · tokens · cost</span>}
        <span data-axis className={`@container ${CHART}`}>
          {TICKS.map((tickShare) => (
            <span
              key={tickShare}
              className={`tabular absolute top-1 whitespace-nowrap ${tickShare > 0 && tickShare < 1 ? '-translate-x-1/2' : ''} ${TICK_ROOM[tickShare] ?? ''}`}
              style={tickShare === 1 ? { right: 0 } : { left: `${tickShare * 100}%` }}
            >
              {duration(range.from - start + tickShare * (range.to - range.from))}
            </span>
          ))}
        </span>
      </div>
      <StepList {...list} steps={steps} label="Timeline" rowPx={32}>
        {row}
      </StepList>
    </>
  )
}

/** The text around a hit; nothing if the hit is in the label, which is visible already. */
function Snippet({ parts, label }: { parts: readonly SnippetPart[]; label: string }) {
  if (parts.map(({ text }) => text).join('') === label) return null
  return (
    <bdi className="text-soft">
      {' '}
      <Marked parts={parts} />
    </bdi>
  )
}

interface TurnProps {
  branch: Row
  onTurn: (row: Row) => void
}

function Turn({ branch, onTurn }: TurnProps) {
  if (!isFoldable(branch)) return <span className="w-4 shrink-0" />
  return (
    <button
      type="button"
      aria-expanded={!branch.isClosed}
      aria-label={`Steps of ${stepName(branch.step)}`}
      onClick={() => onTurn(branch)}
      // 24 px wide for touch, but it takes only 16 px of the row.
      className="relative z-10 -mr-1 -ml-1 h-6 w-6 shrink-0 pl-1 text-left text-xs text-soft hover:text-ink"
    >
      {branch.isClosed ? '▸' : '▾'}
    </button>
  )
}

/** Whether the row also stands for the steps below it, or for those of a folded loop. */
const isSum = ({ below, isClosed }: Row): boolean => below > 0 || isClosed

/** Sums of a branch with everything below it, or of a model call. */
function Sums({ branch, from }: { branch: Row; from: number }) {
  const isOfMore = isSum(branch)
  const { tokens, cost } = isOfMore ? branch : branch.step
  const parts = [
    ...(isOfMore ? [duration(branch.to - from)] : []),
    ...(tokens ? [compact(tokens)] : []),
    ...(cost ? [money(cost)] : []),
  ]
  const steps = isOfMore ? counted(branch.times > 1 ? branch.times : branch.below + 1, 'step') : 'This step'
  const stepNote = [...(tokens ? [`${number(tokens)} tokens`] : []), ...(cost ? [`${money(cost)}, as sent`] : [])]
  return (
    <span className={SUMS} title={stepNote.length === 0 ? undefined : `${steps}: ${stepNote.join(', ')}`}>
      {parts.join(' · ')}
    </span>
  )
}

/** A row that stands for its folded steps. */
function Folded({
  branch: { below, times, to, tokens },
  from,
  problem,
}: {
  branch: Branch
  from: number
  problem: Problem | undefined
}) {
  const stepNote =
    times > 1
      ? `×${number(times)}${problem ? `, same ${isRed(problem) ? 'error' : 'reason'}` : ''}`
      : `${counted(below, 'step')}, ${duration(to - from)}`
  return (
    <span className="tabular text-soft">
      {' '}
      {stepNote}
      {tokens > 0 && <span className="@4xl:hidden">, {compact(tokens)} tokens</span>}
    </span>
  )
}

/** A bar as long as the step took, with the duration beside it. */
function DrawnBar({ from, to, range, fill }: { from: number; to: number; range: Range; fill: string }) {
  const span = Math.max(1, range.to - range.from)
  const left = ((from - range.from) / span) * 100
  const right = ((to - range.from) / span) * 100
  if (right < 0 || left > 100) return null
  const [begin, end] = [Math.max(0, left), Math.min(100, right)]
  return (
    <>
      <span
        className={`absolute top-1/2 h-2 -translate-y-1/2 rounded-sm opacity-75 ${fill}`}
        style={{ left: `min(${begin}%, 100% - 3px)`, width: `max(${end - begin}%, 3px)` }}
      />
      {to > from && (
        <span
          className="tabular absolute top-1/2 -translate-y-1/2 rounded bg-page px-1.5 text-xs whitespace-nowrap text-soft"
          style={end > TURN && begin > 100 - TURN ? { right: `${100 - begin}%` } : { left: `min(${end}%, ${TURN}%)` }}
        >
          {duration(to - from)}
        </span>
      )}
    </>
  )
}
