import { allItems } from '@tacho/client/items.ts'
import type { UsagePoint } from '@tacho/contract/operator/usage.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { api } from '../api.ts'
import { Button } from '../ui/button.tsx'
import { DataTable, ROW_LINK, type Column } from '../ui/data-table.tsx'
import { csv, download } from '../ui/download.ts'
import { changed, Choice } from '../ui/filters.tsx'
import { Cost, costNote, costsOf, sumCosts } from '../ui/cost.tsx'
import { compact, duration, money, number, percentiles } from '../ui/format.ts'
import { Plot } from '../ui/plot.tsx'
import { Empty, PagePending, Trouble } from '../ui/states.tsx'
import { useTitle } from '../ui/title.ts'
import { DAYS, type GROUPS, type UsageSearch } from './search.ts'
import { linesOf, nameOf, sorted, timesOf, type Measure } from './series.ts'

type Group = (typeof GROUPS)[number]

const route = getRouteApi('/w/$workspace/$environment/usage')
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const REFRESH_MS = 60_000
/** Points of one call: LIMITS.usagePointsPage, which stands in a larger file. */
const PAGE = 2_000
const DAY_WORDS = [
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
  ['90d', 'Last 90 days'],
  ['365d', 'Last year'],
] as const
const MEASURE_WORDS = [
  ['cost', 'Cost'],
  ['tokens', 'Tokens'],
  ['steps', 'Steps'],
  ['outcomes', 'Runs by outcome'],
  ['llm', 'Model latency, p95'],
  ['tool', 'Tool latency, p95'],
] as const
const GROUP_WORDS = [
  ['agent', 'by agent'],
  ['model', 'by model'],
  ['promptVersion', 'by prompt version'],
] as const
const FORMATS: Record<Measure, (value: number) => string> = {
  cost: money,
  tokens: compact,
  steps: compact,
  outcomes: compact,
  llm: duration,
  tool: duration,
}
const HEADS: Record<Group, string> = { agent: 'Agent', model: 'Model', promptVersion: 'Prompt version' }

export function UsagePage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { since = '7d', by = 'agent', show = 'cost' } = search
  const usage = useUsage(place.environment.id, DAYS[since], by)
  useTitle('Usage')
  const { data } = usage
  const sums = useMemo(() => data && sorted(data.sums, show), [data, show])
  const times = useMemo(() => data && timesOf(data.window), [data])
  const series = useMemo(() => (data && sums ? linesOf(data.points, sums, data.window, show) : []), [data, sums, show])

  const set = (change: Partial<Record<keyof UsageSearch, string>>) =>
    void navigate({ to: '.', search: changed(search, change), replace: true })
  const openRuns = (time: number) => {
    const at = (seconds: number) => new Date(seconds * 1_000).toISOString()
    void navigate({
      to: '/w/$workspace/$environment/runs',
      params,
      search: { from: at(time), to: at(time + (data?.window.stepMs ?? HOUR_MS) / 1_000) },
    })
  }
  const from = data && { from: new Date(data.window.from).toISOString() }
  const columns: Column<UsagePoint>[] = [
    {
      head: HEADS[by],
      main: true,
      cell: (sum) =>
        by === 'agent' ? (
          <Link
            to="/w/$workspace/$environment/runs"
            params={params}
            search={{ agent: nameOf(sum), ...from }}
            className={ROW_LINK}
          >
            <bdi>{nameOf(sum)}</bdi>
          </Link>
        ) : (
          <bdi className="block truncate font-medium">{nameOf(sum)}</bdi>
        ),
    },
    ...(by === 'model' ? [] : RUN_COLUMNS),
    { head: 'Steps', right: true, wide: true, cell: ({ events }) => number(events) },
    { head: 'Tokens', right: true, cell: ({ usage: { totalTokens } }) => number(totalTokens) },
    { head: 'Cost', right: true, cell: (sum) => <Cost of={costsOf(sum)} /> },
    ...(by === 'promptVersion' ? [] : LATENCY_COLUMNS),
  ]
  const save = () => data && download(`usage-${place.environment.name}.csv`, 'text/csv', csv(rowsOf(data.points, by)))
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-3 pt-5 pb-3">
        <h1 className="text-xl font-semibold">Usage</h1>
        <div className="flex flex-wrap items-center gap-2">
          <Choice label="Measure" value={show} options={MEASURE_WORDS} onChange={(one) => set({ show: one })} />
          <Choice label="By" value={by} options={GROUP_WORDS} onChange={(one) => set({ by: one })} />
          <Choice label="Period" value={since} options={DAY_WORDS} onChange={(one) => set({ since: one })} />
          <Button onClick={save} disabled={!data}>
            CSV
          </Button>
        </div>
      </div>
      {usage.error ? (
        <Trouble error={usage.error} retry={() => void usage.refetch()} />
      ) : !data || !sums || !times ? (
        <PagePending />
      ) : sums.length === 0 ? (
        <Empty title="Nothing was recorded in this period">
          Runs, steps, tokens, cost and latency appear here by agent, model and prompt version, hour by hour.
        </Empty>
      ) : (
        <>
          <Plot
            label={`${show} by ${by} over time; the table below has the sums`}
            times={times}
            series={series}
            format={FORMATS[show]}
            onPick={openRuns}
          />
          <p className="mt-1 mb-4 text-sm text-soft">
            Drag to zoom, double click to see all again, click to open the runs of that time.
            {(show === 'llm' || show === 'tool') && ' Percentiles are at most 9 % from the exact ones.'}
          </p>
          <Estimated sums={sums} />
          <DataTable label="Sums" columns={columns} items={sums} keyOf={({ key }) => key} />
        </>
      )}
    </div>
  )
}

/** Which part of the cost is an estimate, and where prices are set. */
function Estimated({ sums }: { sums: readonly UsagePoint[] }) {
  const params = route.useParams()
  const costs = sumCosts(sums)
  const note = costNote(costs)
  if (note === '') return null
  return (
    <p className="mb-4 text-sm text-soft">
      Cost: {note}{' '}
      <Link to="/w/$workspace/$environment/settings/prices" params={params} className="link underline">
        Prices
      </Link>
    </p>
  )
}

const RUN_COLUMNS: Column<UsagePoint>[] = [
  { head: 'Runs', right: true, wide: true, cell: ({ runs }) => number(runs) },
  {
    head: 'Failed',
    right: true,
    wide: true,
    cell: ({ runs, failed }) => (
      <span className={failed > 0 ? 'text-red' : ''}>
        {number(failed)} {runs > 0 && `(${Math.round((100 * failed) / runs)} %)`}
      </span>
    ),
  },
]

const latency = (head: string, of: 'llmLatency' | 'toolLatency'): Column<UsagePoint> => ({
  head,
  right: true,
  wide: true,
  cell: ({ [of]: found }) => percentiles(found),
})
const LATENCY_COLUMNS = [latency('Model p50 / p95', 'llmLatency'), latency('Tool p50 / p95', 'toolLatency')]

function rowsOf(points: readonly UsagePoint[], by: Group): (string | number)[][] {
  const counts = ['runs', 'completed', 'failed', 'cancelled'] as const
  const head = ['time', HEADS[by].toLowerCase(), ...counts, 'steps', 'tokens', 'cost', 'estimated cost']
  const latencies = ['llm p50 ms', 'llm p95 ms', 'tool p50 ms', 'tool p95 ms']
  return [
    [...head, ...latencies],
    ...points.map((point) => [
      point.from,
      nameOf(point),
      ...counts.map((count) => point[count]),
      point.events,
      point.usage.totalTokens,
      point.usage.cost,
      point.estimatedCost ?? '',
      ...[point.llmLatency, point.toolLatency].flatMap((found) => [found?.p50Ms ?? '', found?.p95Ms ?? '']),
    ]),
  ]
}

/** A point for each hour of up to a week, for each day of more; and the sums of the whole time. */
function useUsage(environmentId: string, days: number, by: Group) {
  return useQuery({
    queryKey: ['usage', environmentId, days, by],
    queryFn: async ({ signal }) => {
      const to = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
      const step = days > 7 ? ('day' as const) : ('hour' as const)
      const stepMs = step === 'day' ? DAY_MS : HOUR_MS
      const window = { from: to + HOUR_MS - days * DAY_MS, to, stepMs }
      const query = { from: new Date(window.from).toISOString(), to: new Date(to).toISOString(), by, limit: PAGE }
      const read = (one: 'hour' | 'day' | 'window') =>
        allItems((input) => api.readUsagePoints(input, { signal }), {
          params: { environmentId },
          query: { ...query, step: one },
        })
      const [points, sums] = await Promise.all([read(step), read('window')])
      return { window, points, sums }
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
