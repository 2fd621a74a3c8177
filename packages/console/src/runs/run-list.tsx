import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import type { RunColumn } from '@tacho/contract/operator/run-view.ts'
import { whyLook } from '@tacho/contract/failure.ts'
import { runScoreText } from '@tacho/contract/score-text.ts'
import { runLength } from '@tacho/contract/stalled.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, type ReactNode } from 'react'
import { ScoreChip } from '../scores/run-scores.tsx'
import { Cost, costsOf } from '../ui/cost.tsx'
import { compact, duration, number } from '../ui/format.ts'
import { useNow } from '../ui/now.ts'
import { Time } from '../ui/time.tsx'
import { columnWord } from './columns.ts'
import { RunStatusChip } from './run-status.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const ROW_PX = 36
const NARROW_ROW_PX = 80

interface Column {
  width: string
  right?: boolean
  /** Left out on a phone. */
  wide?: boolean
  cell: (run: OperatorRun) => ReactNode
  /** The whole text, for what may be cut. */
  title?: (run: OperatorRun) => string
}

const scoresText = ({ scores }: OperatorRun) => scores.map((score) => `${score.name} ${runScoreText(score)}`).join(', ')

const COLUMNS: Record<RunColumn, Column> = {
  status: { width: '7rem', cell: (run) => <RunStatusChip run={run} /> },
  run: { width: 'minmax(8rem,1.4fr)', cell: (run) => <RunLink run={run} /> },
  agent: { width: 'minmax(7rem,1fr)', cell: ({ agent }) => <bdi>{agent.name}</bdi>, title: ({ agent }) => agent.name },
  session: {
    width: 'minmax(6rem,1fr)',
    wide: true,
    cell: ({ sessionId }) => <bdi>{sessionId}</bdi>,
    title: ({ sessionId }) => sessionId ?? '',
  },
  started: { width: '5.5rem', cell: ({ startedAt }) => <Time at={startedAt} /> },
  length: { width: '5.5rem', right: true, cell: (run) => <Length run={run} /> },
  steps: { width: '5rem', right: true, wide: true, cell: ({ eventCount }) => number(eventCount) },
  why: { width: 'minmax(10rem,4fr)', cell: (run) => <Why run={run} />, title: (run) => whyLook(run, Date.now()) ?? '' },
  errors: { width: '4rem', right: true, wide: true, cell: (run) => <Errors run={run} /> },
  tools: { width: 'minmax(6rem,1fr)', wide: true, ...names(({ tools }) => tools) },
  models: { width: 'minmax(6rem,1fr)', wide: true, ...names(({ models }) => models) },
  tokens: { width: '5rem', right: true, wide: true, cell: ({ usage }) => compact(usage.totalTokens) },
  cost: { width: '5rem', right: true, wide: true, cell: (run) => <Cost of={costsOf(run)} /> },
  scores: { width: 'minmax(8rem,1fr)', cell: (run) => <Scores run={run} />, title: scoresText },
}

function names(of: (run: OperatorRun) => readonly string[]): Pick<Column, 'cell' | 'title'> {
  const title = (run: OperatorRun) => of(run).join(', ')
  return { cell: (run) => <bdi>{title(run)}</bdi>, title }
}

interface Props {
  items: readonly OperatorRun[]
  columns: readonly RunColumn[]
  current: number
}

/** Windowed: what is out of sight is not in the page. */
export function RunList({ items, columns, current }: Props) {
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
    if (current >= 0) rows.scrollToIndex(current)
  }, [current, rows])
  // A narrow window wraps the cells of a row: the reason of a failure would be out of sight.
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
            <span key={column} role="columnheader" className={COLUMNS[column].right ? 'text-right' : ''}>
              {columnWord(column)}
            </span>
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
              data-current={index === current}
              className="absolute inset-x-0 flex h-20 flex-wrap content-center items-center gap-x-3 gap-y-0.5 border-b border-line px-2 hover:bg-hover data-[current=true]:bg-accent-wash lg:grid lg:h-9"
              style={{ transform: `translateY(${start - rows.options.scrollMargin}px)`, gridTemplateColumns }}
            >
              {columns.map((column) => (
                <Cell key={column} column={column} run={run} />
              ))}
            </div>
          )
        })}
      </div>
    </div>
  )
}

/** On a phone the run stands above the rest. */
const PLACES: Partial<Record<RunColumn, string>> = { run: 'order-first w-full lg:order-none lg:w-auto', status: '' }

function Cell({ column, run }: { column: RunColumn; run: OperatorRun }) {
  const { right, wide, cell, title } = COLUMNS[column]
  const look = `${right ? 'tabular lg:text-right' : ''} ${wide ? 'hidden lg:block' : ''}`
  const place = PLACES[column] ?? (right ? '' : 'text-soft')
  return (
    <span role="cell" title={title?.(run)} className={`min-w-0 truncate ${look} ${place}`}>
      {cell(run)}
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

function RunLink({ run: { runId } }: { run: OperatorRun }) {
  const params = route.useParams()
  return (
    <Link
      to="/w/$workspace/$environment/runs/$runId"
      params={{ ...params, runId }}
      title={runId}
      // The whole row opens the run.
      className="block truncate font-medium after:absolute after:inset-0"
    >
      <bdi>{runId}</bdi>
    </Link>
  )
}

/** The length of a run; for a running one, the time since its start. */
function Length({ run }: { run: OperatorRun }) {
  return duration(runLength(run, useNow()))
}

function Why({ run }: { run: OperatorRun }) {
  const why = whyLook(run, useNow())
  return why === null ? null : <bdi className={run.status === 'FAILED' ? 'text-red' : 'text-amber'}>{why}</bdi>
}

function Errors({ run: { errorCount } }: { run: OperatorRun }) {
  if (errorCount === 0) return 0
  return <span className="font-medium text-red">{number(errorCount)}</span>
}
