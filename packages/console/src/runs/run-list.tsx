import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, type ReactNode } from 'react'
import { compact, duration, money, number } from '../ui/format.ts'
import { useNow } from '../ui/now.ts'
import { Time } from '../ui/time.tsx'
import { Status } from './status.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const ROW_PX = 36
const NARROW_ROW_PX = 60
const COLUMNS = 'sm:grid-cols-[7rem_minmax(8rem,1.4fr)_minmax(7rem,1fr)_5.5rem_5.5rem_5rem_5rem_5rem]'
const HEADS = ['Status', 'Run', 'Agent', 'Started', 'Length', 'Steps', 'Tokens', 'Cost']

/** Windowed: what is out of sight is not in the page. */
export function RunList({ items, current }: { items: readonly OperatorRun[]; current: number }) {
  const list = useRef<HTMLDivElement>(null)
  const rowPx = window.matchMedia('(min-width: 40rem)').matches ? ROW_PX : NARROW_ROW_PX
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

  return (
    <div role="table" aria-label="Runs" aria-rowcount={items.length + 1} className="text-sm">
      <div role="rowgroup" className="hidden sm:block">
        <div
          role="row"
          className={`grid h-8 items-center gap-3 border-b border-line px-2 text-xs text-soft ${COLUMNS}`}
        >
          {HEADS.map((head, index) => (
            <span key={head} role="columnheader" className={index > 3 ? 'text-right' : ''}>
              {head}
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
              className={`absolute inset-x-0 flex h-15 flex-wrap content-center items-center gap-x-3 gap-y-0.5 border-b border-line px-2 hover:bg-hover data-[current=true]:bg-accent-wash sm:grid sm:h-9 ${COLUMNS}`}
              style={{ transform: `translateY(${start - rows.options.scrollMargin}px)` }}
            >
              <RunCells run={run} />
            </div>
          )
        })}
      </div>
    </div>
  )
}

function RunCells({ run }: { run: OperatorRun }) {
  const params = route.useParams()
  return (
    <>
      <Cell>
        <Status status={run.status} />
      </Cell>
      <Cell className="order-first w-full sm:order-none sm:w-auto">
        <Link
          to="/w/$workspace/$environment/runs/$runId"
          params={{ ...params, runId: run.runId }}
          title={run.runId}
          // The whole row opens the run.
          className="block truncate font-medium after:absolute after:inset-0"
        >
          <bdi>{run.runId}</bdi>
        </Link>
      </Cell>
      <Cell className="text-soft" title={run.agent.name}>
        <bdi>{run.agent.name}</bdi>
      </Cell>
      <Cell className="text-soft">
        <Time at={run.startedAt} />
      </Cell>
      <Cell right>
        <Length run={run} />
      </Cell>
      <Cell right wide>
        {number(run.eventCount)}
      </Cell>
      <Cell right wide>
        {compact(run.usage.totalTokens)}
      </Cell>
      <Cell right wide>
        {money(run.usage.cost)}
      </Cell>
    </>
  )
}

interface CellProps {
  children: ReactNode
  className?: string
  title?: string
  right?: boolean
  /** Left out on a phone. */
  wide?: boolean
}

function Cell({ children, className = '', title, right = false, wide = false }: CellProps) {
  const look = `${right ? 'tabular sm:text-right' : ''} ${wide ? 'hidden sm:block' : ''}`
  return (
    <span role="cell" title={title} className={`min-w-0 truncate ${look} ${className}`}>
      {children}
    </span>
  )
}

/** Of a running run: so far. */
function Length({ run }: { run: OperatorRun }) {
  const now = useNow()
  const end = run.endedAt === null ? now : Date.parse(run.endedAt)
  return duration(Math.max(0, end - Date.parse(run.startedAt)))
}
