import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import type { RunColumn } from '@tacho/contract/runs/run-view.ts'
import { byOutcome, whyLook } from '@tacho/contract/issues/failure.ts'
import { runScoreText, tokenWords } from '@tacho/contract/runs/run-text.ts'
import { runLength } from '@tacho/contract/runs/run-activity.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, type MouseEvent, type ReactNode } from 'react'
import { ScoreChip } from '../scores/run-scores.tsx'
import { Chip } from '../../web/ui/chip.tsx'
import { Cost } from '../../web/text/figures.tsx'
import { costsOf } from '../../web/text/costs.ts'
import { compact, duration, number, plainText, runName } from '../../web/text/format.ts'
import { useNow, Time } from '../../web/text/times.tsx'
import { ShownText } from '../../web/text/shown-text.tsx'
import { columnWord } from './columns.ts'
import { RunStatusChip } from '../run-status.tsx'
import type { RunListAddress, RunSort } from '../address.ts'

const route = getRouteApi('/w/$workspace/$environment')
const HOUR_MS = 3_600_000
const ROW_PX = 52
const NARROW_ROW_PX = 96

interface Column {
  width: string
  right?: boolean
  /** Hidden on a phone. */
  wide?: boolean
  cell: (run: OperatorRun) => ReactNode
  /** The full text of a cell that may be cut off. */
  title?: (run: OperatorRun) => string
  /** Filters the list by the cell's value. */
  filter?: (run: OperatorRun) => RunListAddress | false
}

const scoresText = ({ scores }: OperatorRun) => scores.map((score) => `${score.name} ${runScoreText(score)}`).join(', ')

const COLUMNS: Record<RunColumn, Column> = {
  status: { width: '7rem', cell: (run) => <RunStatusChip run={run} />, filter: ({ status }) => ({ status }) },
  run: { width: 'minmax(14rem,4fr)', cell: (run) => <RunLink run={run} /> },
  agent: {
    width: 'minmax(7rem,1fr)',
    cell: ({ agent }) => <bdi>{agent.name}</bdi>,
    title: ({ agent }) => agent.name,
    filter: (run) => ({ agent: run.agentId ?? run.agent.name }),
  },
  session: {
    width: 'minmax(6rem,1fr)',
    wide: true,
    cell: ({ sessionId }) => <bdi>{sessionId}</bdi>,
    title: ({ sessionId }) => sessionId ?? '',
    filter: ({ sessionId }) => sessionId !== null && { sessionId },
  },
  started: {
    width: '5.5rem',
    cell: ({ startedAt }) => <Time at={startedAt} />,
    filter: ({ startedAt }) => hourOf(startedAt),
  },
  length: {
    width: '5.5rem',
    right: true,
    cell: (run) => <Length run={run} />,
    filter: (run) => run.endedAt !== null && { minLengthMs: Math.max(1, runLength(run, Date.now())) },
  },
  steps: { width: '5rem', right: true, wide: true, cell: ({ eventCount }) => number(eventCount) },
  why: { width: 'minmax(10rem,3fr)', cell: (run) => <Why run={run} />, title: (run) => whyOf(run, Date.now()) ?? '' },
  errors: {
    width: '4rem',
    right: true,
    wide: true,
    cell: (run) => <Errors run={run} />,
    filter: ({ errorCount }) => errorCount > 0 && { hasErrors: true },
  },
  tools: { width: 'minmax(9rem,1.5fr)', wide: true, ...names('tool', ({ tools }) => tools) },
  models: { width: 'minmax(9rem,1.5fr)', wide: true, ...names('model', ({ models }) => models) },
  tokens: {
    width: '6rem',
    right: true,
    wide: true,
    cell: ({ usage }) => tokenWords(usage.totalTokens, compact),
  },
  // Wide enough for `at least $0.000123`.
  cost: {
    width: '9rem',
    right: true,
    wide: true,
    cell: (run) => <Cost of={costsOf(run)} />,
    filter: ({ usage: { cost } }) => cost > 0 && { minCost: cost },
  },
  scores: { width: 'minmax(8rem,1fr)', cell: (run) => <Scores run={run} />, title: scoresText },
}

/** Filters for runs that started in the same hour. */
function hourOf(startedAt: string): RunListAddress {
  const from = Math.floor(Date.parse(startedAt) / HOUR_MS) * HOUR_MS
  return { from: new Date(from).toISOString(), to: new Date(from + HOUR_MS).toISOString() }
}

const NAMES_SHOWN = 2

/** A column with chips for the first names, and the number of the other names. */
function names(
  by: 'tool' | 'model',
  of: (run: OperatorRun) => readonly string[],
): Pick<Column, 'cell' | 'title' | 'filter'> {
  return {
    cell: (run) => <Names names={of(run)} />,
    title: (run) => of(run).join(', '),
    filter: (run) => {
      const [first] = of(run)
      return first !== undefined && { [by]: first }
    },
  }
}

function Names({ names: all }: { names: readonly string[] }) {
  const more = all.length - NAMES_SHOWN
  return (
    <span className="flex gap-1">
      {all.slice(0, NAMES_SHOWN).map((name) => (
        <span key={name} className="min-w-0">
          <Chip>
            <bdi>{name}</bdi>
          </Chip>
        </span>
      ))}
      {more > 0 && <span className="shrink-0">+{more}</span>}
    </span>
  )
}

interface Props {
  items: readonly OperatorRun[]
  columns: readonly RunColumn[]
  /** Id of the run that was reached by keyboard. */
  current: string | null
  order: RunSort | undefined
  /** Undefined: sort by time, newest first. */
  onOrder: (order: RunSort | undefined) => void
  onFilter: (filter: RunListAddress) => void
}

/** A windowed list: rows that are out of sight are not in the page. */
export function RunList({ items, columns, current, order, onOrder, onFilter }: Props) {
  const list = useRef<HTMLDivElement>(null)
  const rowPx = window.matchMedia('(min-width: 64rem)').matches ? ROW_PX : NARROW_ROW_PX
  const rows = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => rowPx,
    overscan: 12,
    scrollMargin: list.current?.offsetTop ?? 0,
    getItemKey: (index) => items[index]?.id ?? index,
  })
  useEffect(() => {
    const index = items.findIndex(({ id }) => id === current)
    if (index >= 0) rows.scrollToIndex(index)
    // Only a key press scrolls the window; a new row does not.
  }, [current, rows])
  // Columns of a wide window. In a narrow one, cells wrap, because the reason of a failure would be out of sight.
  const gridTemplateColumns = columns.map((column) => COLUMNS[column].width).join(' ')

  return (
    <div
      role="table"
      aria-label="Runs"
      aria-rowcount={items.length + 1}
      className="text-sm lg:overflow-x-auto lg:overflow-y-hidden"
    >
      <div role="rowgroup" className="hidden lg:block">
        <div
          role="row"
          className="grid h-8 items-center gap-3 border-b border-line px-2 text-xs text-soft"
          style={{ gridTemplateColumns }}
        >
          {columns.map((column) => (
            <Header key={column} column={column} order={order} onOrder={onOrder} />
          ))}
        </div>
      </div>
      <div ref={list} role="rowgroup" className="relative" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, key, start }) => {
          const run = items[index]
          if (!run) return null
          return (
            <div
              key={key}
              role="row"
              aria-rowindex={index + 2}
              data-current={run.id === current}
              onClick={openRow}
              className="absolute inset-x-0 flex h-24 cursor-pointer flex-wrap content-center items-center gap-x-3 gap-y-0.5 border-b border-line px-2 hover:bg-hover data-[current=true]:bg-accent-wash lg:grid lg:h-13"
              style={{ transform: `translateY(${start - rows.options.scrollMargin}px)`, gridTemplateColumns }}
            >
              {columns.map((column) => (
                <Cell key={column} column={column} run={run} order={order} onFilter={onFilter} />
              ))}
            </div>
          )
        })}
      </div>
    </div>
  )
}

const SORTS: Partial<Record<RunColumn, RunSort>> = {
  length: 'length',
  errors: 'failures',
  tokens: 'tokens',
  cost: 'cost',
}

/** A column heading. If the list can be sorted by the column, it is a button; a second press restores newest first. */
function Header({ column, order, onOrder }: Pick<Props, 'order' | 'onOrder'> & { column: RunColumn }) {
  const columnSort = SORTS[column]
  const headLook = COLUMNS[column].right ? 'text-right' : ''
  const word = columnWord(column)
  if (columnSort === undefined) {
    return (
      <span role="columnheader" className={headLook}>
        {word}
      </span>
    )
  }
  const isSorted = order === columnSort
  return (
    <span role="columnheader" aria-sort={isSorted ? 'descending' : 'none'} className={headLook}>
      <button
        type="button"
        onClick={() => onOrder(isSorted ? undefined : columnSort)}
        title={isSorted ? 'Newest first' : `Sort by ${word.toLowerCase()}`}
        className={`hover:text-ink ${isSorted ? 'font-medium text-ink' : ''}`}
      >
        {word}
        {isSorted && <span aria-hidden> ↓</span>}
      </button>
    </span>
  )
}

/** Makes the whole row act like its link, including for new tabs. Text in the row can still be selected. */
function openRow(event: MouseEvent<HTMLElement>): void {
  const { target, currentTarget, ctrlKey, metaKey, shiftKey } = event
  const isOwn = target instanceof Element && target.closest('a, button') !== null
  if (isOwn || getSelection()?.isCollapsed === false) return
  const keys = { ctrlKey, metaKey, shiftKey }
  currentTarget
    .querySelector('a')
    ?.dispatchEvent(new window.MouseEvent('click', { bubbles: true, cancelable: true, ...keys }))
}

/** On a phone, the run is the first cell. */
const PLACES: Partial<Record<RunColumn, string>> = { run: 'order-first w-full lg:order-none lg:w-auto', status: '' }

function Cell({ column, run, order, onFilter }: CellProps) {
  const { right, wide, cell, title, filter } = COLUMNS[column]
  const sameAs = filter?.(run)
  const cellLook = `${right ? 'tabular lg:text-right' : ''} ${wide && SORTS[column] !== (order ?? '') ? 'hidden lg:block' : ''}`
  const place = PLACES[column] ?? (right ? '' : 'text-soft')
  return (
    <span role="cell" title={title?.(run)} className={`group/cell relative min-w-0 truncate ${cellLook} ${place}`}>
      {cell(run)}
      {sameAs && (
        <button
          type="button"
          // Not in the tab order: the fields above the list do the same.
          tabIndex={-1}
          aria-label={`Only runs with this ${columnWord(column).toLowerCase()}`}
          title={`Only runs with this ${columnWord(column).toLowerCase()}`}
          onClick={() => onFilter(sameAs)}
          className={`absolute top-1/2 z-10 hidden -translate-y-1/2 rounded border border-line bg-raised px-1 text-xs leading-5 text-soft hover:text-ink lg:group-hover/cell:block ${right ? 'left-0' : 'right-0'}`}
        >
          only
        </button>
      )}
    </span>
  )
}

function Scores({ run: { scores } }: { run: OperatorRun }) {
  return scores.map((score) => (
    <span key={score.name} className="mr-1">
      <ScoreChip score={score} />
    </span>
  ))
}

interface CellProps {
  column: RunColumn
  run: OperatorRun
  order: RunSort | undefined
  onFilter: (filter: RunListAddress) => void
}

/** Two lines: the question; then the run's id, and its error or answer. */
function RunLink({ run }: { run: OperatorRun }) {
  const { runId, title } = run
  const params = route.useParams()
  return (
    <Link
      to="/w/$workspace/$environment/runs/$runId"
      params={{ ...params, runId }}
      title={title === null ? runId : `${title}\n${runId}`}
      className="block"
    >
      <bdi className="block truncate font-medium">
        <ShownText text={runName(run)} />
      </bdi>{' '}
      <span className="flex gap-2 text-xs leading-4 text-soft">
        {/* On a phone, the reason of the end needs the whole line. */}
        {title !== null && <bdi className="max-w-36 shrink-0 truncate font-mono max-sm:hidden">{shortId(runId)}</bdi>}
        <End run={run} />
      </span>
    </Link>
  )
}

const ID_CHARS = 19
const ID_END = 8

/** An id with its middle cut, because ids of one program often begin alike. */
function shortId(runId: string): string {
  if (runId.length <= ID_CHARS) return runId
  return `${runId.slice(0, ID_CHARS - ID_END - 1).toWellFormed()}…${runId.slice(-ID_END).toWellFormed()}`
}

/** The duration of a run; for a running one, the time since its start. */
function Length({ run }: { run: OperatorRun }) {
  return duration(runLength(run, useNow()))
}

/** The reason of a failure. An imported run may have no event with the reason; its outcome is named then. */
const whyOf = (run: OperatorRun, now: number): string | null =>
  whyLook(run, now) ?? (run.status === 'FAILED' ? byOutcome(run) : null)

function End({ run }: { run: OperatorRun }) {
  const why = whyOf(run, useNow())
  return (
    <bdi className={`min-w-0 truncate ${why === null ? '' : toneOf(run)}`}>
      <ShownText text={why ?? plainText(run.answer ?? '')} />
    </bdi>
  )
}

const toneOf = ({ status }: OperatorRun): string => (status === 'FAILED' ? 'text-red' : 'text-amber')

function Why({ run }: { run: OperatorRun }) {
  const why = whyOf(run, useNow())
  return why === null ? null : <bdi className={toneOf(run)}>{why}</bdi>
}

function Errors({ run: { errorCount } }: { run: OperatorRun }) {
  if (errorCount === 0) return 0
  return <span className="font-medium text-red">{number(errorCount)}</span>
}
