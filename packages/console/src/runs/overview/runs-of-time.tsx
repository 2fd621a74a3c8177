/** Runs of a period by outcome: sums, then bars. Each number and bar links to its runs. */
import { endedRuns, failureComparison } from '@tacho/contract/runs/statistics.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { CSSProperties } from 'react'
import { statusWord } from '../run-status.tsx'
import { STATUSES } from '../address.ts'
import { compact, counted, dayOfYear, hourOfDay, minuteOfDay, number, percent } from '../../web/text/format.ts'
import { Nothing, Unread } from '../../web/ui/section.tsx'
import { Skeleton } from '../../web/ui/states.tsx'
import { OUTCOME_COLOURS, scaleOf, STACKED, type Outcomes } from '../../web/ui/chart-series.ts'
import { beforeText, rangeText } from '../../web/ui/range-choice.tsx'
import { zoneText, type HourWindow, type Range } from '../../web/address.ts'
import { MarkRow, MarkTable, useMarks } from '../../policies/deployments/marks.tsx'
import { OVERVIEW_SINCE, useTime, type Bar as Part } from './queries.ts'
import { failsMore, outcomes } from './what-is-wrong.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const FILLS = { accent: 'bg-accent', green: 'bg-green', red: 'bg-red', soft: 'bg-soft' } as const
const fillOf = (status: RunStatus) => FILLS[OUTCOME_COLOURS[status]]
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Maximum number of labels below the bars. */
const LABELS = 8

export function RunsOfTime({ range }: { range: Range }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useTime(place.environment.id, range)
  const words = rangeText(range).toLowerCase()
  const earlier = beforeText(range, OVERVIEW_SINCE)
  const [now, before] = [outcomes(data?.outcomes ?? NO_RUNS), outcomes(data?.before ?? NO_RUNS)]
  const comparison = failureComparison({ name: 'This time', ...now }, { name: earlier, ...before })
  const isWorse = failsMore(now, before) === true
  return (
    <section aria-label={`Runs, ${words}`} className="mt-4 overflow-hidden rounded-xl border border-line">
      <div className="grid grid-cols-2 gap-px border-b border-line bg-line sm:grid-cols-4">
        {STATUSES.map((status) => (
          <Link
            key={status}
            to="/w/$workspace/$environment/runs"
            params={params}
            search={{ ...(data?.runs ?? range), status }}
            className={`px-4 py-3 hover:bg-hover ${status === 'FAILED' && isWorse ? 'bg-red-wash' : 'bg-page'}`}
          >
            <span className="flex items-center gap-1.5 text-sm text-soft">
              <span aria-hidden className={`size-2 rounded-xs ${fillOf(status)}`} />
              {statusWord(status)}
            </span>
            <span className="tabular mt-0.5 block text-xl font-semibold">
              {data ? number(data.outcomes[status]) : error ? '–' : <Skeleton className="h-7 w-12" />}
              {data && <Share of={data.outcomes} status={status} className="ml-1.5 text-sm font-normal" />}
            </span>
            {data && (
              <span className="tabular text-xs text-soft">
                {status === 'FAILED' && isWorse && <span className="font-medium text-red">▲ more often: </span>}
                {number(data.before[status])} <Share of={data.before} status={status} /> in {earlier}
              </span>
            )}
          </Link>
        ))}
      </div>
      {comparison && <p className="border-b border-line px-4 py-2 text-sm text-soft">{comparison}</p>}
      <div className="px-4 py-2">
        {data ? (
          <Bars {...data} environmentId={place.environment.id} />
        ) : error ? (
          <Unread />
        ) : (
          <Skeleton className="h-24" />
        )}
      </div>
    </section>
  )
}

const NO_RUNS: Outcomes = { RUNNING: 0, COMPLETED: 0, FAILED: 0, CANCELLED: 0 }

/** The share among the ended runs, because a running one has no outcome yet. */
function Share({ of, status, className }: { of: Outcomes; status: RunStatus; className?: string }) {
  const ended = endedRuns(outcomes(of))
  return status === 'RUNNING' || ended === 0 ? null : <span className={className}>({percent(of[status], ended)})</span>
}

interface BarsProps {
  environmentId: string
  window: HourWindow
  bars: readonly Part[]
  barMs: number
}

function Bars({ environmentId, window, bars, barMs }: BarsProps) {
  const marks = useMarks(environmentId, window)
  const counts = bars.map(({ outcomes }) => runsOf(outcomes))
  const [most, scale] = [Math.max(...counts), scaleOf(counts)]
  if (most === 0) return <Nothing>No run started in this time.</Nothing>
  const title = `Runs per ${lengthText(barMs)}`
  const labelled = Math.ceil(bars.length / LABELS)
  const label = barMs < DAY_MS && bars.length * barMs <= DAY_MS ? hourOfDay : dayOfYear
  return (
    <>
      <div className="flex justify-between gap-3 text-sm text-soft">
        <h2>{title}</h2>
        <span className="tabular">
          at most {number(most)}
          {scale < most && `; bars above ${number(scale)} are cut`}
        </span>
      </div>
      {/* Hidden on a phone, whose bars take two lines: the table below has the same figures. */}
      <div className="hidden sm:block">
        <MarkRow marks={marks} placeOf={(time) => placeIn(bars, time)} />
      </div>
      {/* Two lines on a phone, so that each bar is wide enough to tap. */}
      <ol aria-label={title} style={widths(bars.length)} className="bar-row mt-1 grid gap-y-2">
        {bars.map((bar, index) => (
          <li key={bar.from} className="min-w-0">
            <Bar bar={bar} barMs={barMs} scale={scale} areCut={scale < most} />
            <span className="tabular block h-4 text-xs whitespace-nowrap text-soft">
              {index % labelled === 0 && label(bar.from)}
            </span>
          </li>
        ))}
      </ol>
      <MarkTable marks={marks} />
      <p className="text-xs text-soft">{zoneText(window)}</p>
    </>
  )
}

/** The position of a time. All bars have the same width, including the last one, which may cover less time. */
function placeIn(bars: readonly Part[], time: number): number | null {
  const at = bars.findIndex(({ from, to }) => time >= from && time < to)
  const bar = bars[at]
  return bar === undefined ? null : (at + (time - bar.from) / (bar.to - bar.from)) / bars.length
}

/** The length of a bar in words: `hour`, `6 hours`, `day`, `3 days`. */
function lengthText(ms: number): string {
  const [count, unit] = ms % DAY_MS === 0 ? [ms / DAY_MS, 'day'] : [ms / HOUR_MS, 'hour']
  return count === 1 ? unit : `${count} ${unit}s`
}

/** Column widths for `.bar-row` in theme.css. */
const widths = (barCount: number) =>
  ({ '--bars': barCount, '--bars-of-phone': Math.ceil(barCount / 2) }) as CSSProperties

const BAR = 'flex h-16 flex-col-reverse border-b border-edge px-px'

/** Height for bars, in percent. A cut bar has its count above it. */
const roomOf = (areCut: boolean) => (areCut ? 72 : 100)

interface BarProps {
  bar: Part
  barMs: number
  /** Number of runs at the top of the chart. */
  scale: number
  /** Whether higher bars of the chart are cut. */
  areCut: boolean
}

function Bar({ bar: { from, to, outcomes }, barMs, scale, areCut }: BarProps) {
  const params = route.useParams()
  const runs = runsOf(outcomes)
  if (runs === 0) return <div className={BAR} />
  const isCut = runs > scale
  const parts = STACKED.filter((status) => outcomes[status] > 0)
  const words = parts.map((status) => `${number(outcomes[status])} ${statusWord(status).toLowerCase()}`).join(', ')
  const time = barMs === HOUR_MS ? hourOfDay : minuteOfDay
  const label = `${time(from)} to ${time(to)}, ${counted(runs, 'run')}: ${words}`
  return (
    <Link
      to="/w/$workspace/$environment/runs"
      params={params}
      search={{ from: new Date(from).toISOString(), to: new Date(to).toISOString() }}
      aria-label={label}
      title={label}
      className={`${BAR} relative hover:bg-hover`}
    >
      {isCut && (
        <span className="tabular absolute inset-x-0 top-0 text-center text-xs leading-4 text-soft">
          {compact(runs)}
          <span aria-hidden className="mt-2 block border-t-4 border-double border-page" />
        </span>
      )}
      {parts.map((status) => (
        <span
          key={status}
          style={{ height: `${(roomOf(areCut) * outcomes[status]) / (isCut ? runs : scale)}%` }}
          className={`min-h-0.5 shrink border-t border-page ${fillOf(status)}`}
        />
      ))}
    </Link>
  )
}

const runsOf = (outcomes: Outcomes): number => STATUSES.reduce((sum, status) => sum + outcomes[status], 0)
