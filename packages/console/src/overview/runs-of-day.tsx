/** Runs of the last 24 hours by outcome: the sums, then a bar for each hour. Each number and bar leads to its runs. */
import type { RunStatus } from '@tacho/contract/run.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { statusWord } from '../runs/run-status.tsx'
import { STATUSES } from '../runs/search.ts'
import { counted, hourOfDay, number } from '../ui/format.ts'
import { Nothing, Unread } from '../ui/section.tsx'
import { Skeleton } from '../ui/states.tsx'
import { OUTCOME_COLOURS, STACKED, type Outcomes } from '../runs/outcomes.ts'
import { HOUR_MS, useDay, type Hour } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment')
const FILLS = { accent: 'bg-accent', green: 'bg-green', red: 'bg-red', soft: 'bg-soft' } as const
const fillOf = (status: RunStatus) => FILLS[OUTCOME_COLOURS[status]]
/** A label below every third bar. */
const LABELLED = 3

export function RunsOfDay() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useDay(place.environment.id)
  return (
    <section aria-label="Runs of the last 24 hours" className="mt-4 overflow-hidden rounded-xl border border-line">
      <div className="grid grid-cols-2 gap-px border-b border-line bg-line sm:grid-cols-4">
        {STATUSES.map((status) => (
          <Link
            key={status}
            to="/w/$workspace/$environment/runs"
            params={params}
            search={{ status, ...(data ? { from: data.from } : { since: '24h' }) }}
            className="bg-page px-4 py-3 hover:bg-hover"
          >
            <span className="flex items-center gap-1.5 text-sm text-soft">
              <span aria-hidden className={`size-2 rounded-xs ${fillOf(status)}`} />
              {statusWord(status)}, 24 h
            </span>
            <span className="tabular mt-0.5 block text-xl font-semibold">
              {data ? number(data.outcomes[status]) : error ? '–' : <Skeleton className="h-7 w-12" />}
            </span>
            {data && <span className="tabular text-xs text-soft">{number(data.before[status])} the day before</span>}
          </Link>
        ))}
      </div>
      <div className="px-4 py-2">
        {data ? <Hours hours={data.hours} /> : error ? <Unread /> : <Skeleton className="h-24" />}
      </div>
    </section>
  )
}

function Hours({ hours }: { hours: readonly Hour[] }) {
  const most = Math.max(...hours.map(({ outcomes }) => runsOf(outcomes)))
  if (most === 0) return <Nothing>No run started in the last 24 hours.</Nothing>
  return (
    <>
      <div className="flex justify-between gap-3 text-sm text-soft">
        <h2>Runs per hour</h2>
        <span className="tabular">at most {number(most)}</span>
      </div>
      {/* Two lines on a phone: a thumb needs the width. */}
      <ol aria-label="Runs per hour" className="mt-1 grid grid-cols-12 gap-y-2 sm:grid-cols-24">
        {hours.map((hour, index) => (
          <li key={hour.from} className="min-w-0">
            <Bar hour={hour} most={most} />
            <span className="tabular block h-4 text-xs whitespace-nowrap text-soft">
              {index % LABELLED === 0 && hourOfDay(hour.from)}
            </span>
          </li>
        ))}
      </ol>
    </>
  )
}

const BAR = 'flex h-16 flex-col-reverse border-b border-edge px-px'

function Bar({ hour: { from, outcomes }, most }: { hour: Hour; most: number }) {
  const params = route.useParams()
  const runs = runsOf(outcomes)
  if (runs === 0) return <div className={BAR} />
  const parts = STACKED.filter((status) => outcomes[status] > 0)
  const words = parts.map((status) => `${number(outcomes[status])} ${statusWord(status).toLowerCase()}`).join(', ')
  const label = `${hourOfDay(from)} to ${hourOfDay(from + HOUR_MS)}, ${counted(runs, 'run')}: ${words}`
  return (
    <Link
      to="/w/$workspace/$environment/runs"
      params={params}
      search={{ from: new Date(from).toISOString(), to: new Date(from + HOUR_MS).toISOString() }}
      aria-label={label}
      title={label}
      className={`${BAR} hover:bg-hover`}
    >
      {parts.map((status) => (
        <span
          key={status}
          style={{ height: `${(100 * outcomes[status]) / most}%` }}
          className={`min-h-0.5 shrink border-t border-page ${fillOf(status)}`}
        />
      ))}
    </Link>
  )
}

const runsOf = (outcomes: Outcomes): number => STATUSES.reduce((sum, status) => sum + outcomes[status], 0)
