import { eachItem } from '@tacho/client/items.ts'
import type { UsageHour } from '@tacho/contract/operator/usage.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { api } from '../api.ts'
import { Button } from '../ui/button.tsx'
import { DataTable, ROW_LINK, type Column } from '../ui/data-table.tsx'
import { csv, download } from '../ui/download.ts'
import { changed, Choice } from '../ui/filters.tsx'
import { compact, money, number } from '../ui/format.ts'
import { Plot } from '../ui/plot.tsx'
import { Empty, PagePending, Trouble } from '../ui/states.tsx'
import { useTitle } from '../ui/title.ts'
import { DAYS, type UsageSearch } from './search.ts'
import { drawn, linesOf, type Measure, type Sum } from './series.ts'

const route = getRouteApi('/w/$workspace/$environment/usage')
const HOUR_MS = 3_600_000
const REFRESH_MS = 60_000
const CALL_MS = 31 * 24 * HOUR_MS
/** Rows of one hour, agent and model; bounds what is read beyond the newest 31 days. */
const MOST_HOURS = 20_000
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
] as const
const FORMATS: Record<Measure, (value: number) => string> = { cost: money, tokens: compact, steps: compact }

export function UsagePage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { since = '7d', by = 'agent', show = 'cost' } = search
  const usage = useUsage(place.environment.id, DAYS[since])
  useTitle('Usage')
  const lines = useMemo(
    () => usage.data && linesOf(usage.data.hours, { ...usage.data, by, show }),
    [usage.data, by, show],
  )
  const series = useMemo(() => drawn(lines?.sums ?? []), [lines])

  const set = (change: Partial<Record<keyof UsageSearch, string>>) =>
    void navigate({ to: '.', search: changed(search, change), replace: true })
  const openRuns = (time: number) => {
    const width = (lines?.times[1] ?? 0) - (lines?.times[0] ?? 0)
    const at = (seconds: number) => new Date(seconds * 1_000).toISOString()
    void navigate({
      to: '/w/$workspace/$environment/runs',
      params,
      search: { from: at(time), to: at(time + width) },
    })
  }
  const window = usage.data && { from: new Date(usage.data.from).toISOString() }
  const columns: Column<Sum>[] = [
    {
      head: by === 'agent' ? 'Agent' : 'Model',
      main: true,
      cell: ({ name }) =>
        by === 'agent' ? (
          <Link
            to="/w/$workspace/$environment/runs"
            params={params}
            search={{ agent: name, ...window }}
            className={ROW_LINK}
          >
            <bdi>{name}</bdi>
          </Link>
        ) : (
          <bdi className="block truncate font-medium">{name}</bdi>
        ),
    },
    { head: 'Steps', right: true, cell: ({ steps }) => number(steps) },
    { head: 'Tokens', right: true, cell: ({ tokens }) => number(tokens) },
    { head: 'Cost', right: true, cell: ({ cost }) => money(cost) },
  ]
  const save = () =>
    lines &&
    download(
      `usage-${place.environment.name}.csv`,
      'text/csv',
      csv([['time', by, show], ...pointsOf(lines.times, lines.sums)]),
    )
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-3 pt-5 pb-3">
        <h1 className="text-xl font-semibold">Usage</h1>
        <div className="flex flex-wrap items-center gap-2">
          <Choice label="Measure" value={show} options={MEASURE_WORDS} onChange={(one) => set({ show: one })} />
          <Choice
            label="By"
            value={by}
            options={[
              ['agent', 'by agent'],
              ['model', 'by model'],
            ]}
            onChange={(one) => set({ by: one })}
          />
          <Choice label="Period" value={since} options={DAY_WORDS} onChange={(one) => set({ since: one })} />
          <Button onClick={save} disabled={!lines}>
            CSV
          </Button>
        </div>
      </div>
      {usage.error ? (
        <Trouble error={usage.error} retry={() => void usage.refetch()} />
      ) : !lines ? (
        <PagePending />
      ) : lines.sums.length === 0 ? (
        <Empty title="Nothing was recorded in this period">
          Steps, tokens and cost appear here by agent and by model, hour by hour.
        </Empty>
      ) : (
        <>
          <Plot
            label={`${show} by ${by} over time; the table below has the sums`}
            times={lines.times}
            series={series}
            format={FORMATS[show]}
            onPick={openRuns}
          />
          <p className="mt-1 mb-4 text-sm text-soft">
            Drag to zoom, double click to see all again, click to open the runs of that time.
            {usage.data?.isAll === false && ' There is too much to read at once: the oldest part is missing.'}
          </p>
          <DataTable label="Sums" columns={columns} items={lines.sums} keyOf={({ key }) => key} />
        </>
      )}
    </div>
  )
}

function pointsOf(times: readonly number[], sums: readonly Sum[]): (string | number)[][] {
  return sums.flatMap(({ name, values }) =>
    times.map((time, slot) => [new Date(time * 1_000).toISOString(), name, values[slot] ?? 0]),
  )
}

function useUsage(environmentId: string, days: number) {
  return useQuery({
    queryKey: ['usage', environmentId, days],
    queryFn: async () => {
      const to = Date.now()
      const from = Math.floor(to / HOUR_MS) * HOUR_MS - (days * 24 - 1) * HOUR_MS
      const { hours, isAll } = await readHours(environmentId, from, to)
      return { from, to, hours, isAll }
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}

/** One call reads at most 31 days. The newest part comes first and is always whole; an older one is whole or missing. */
async function readHours(environmentId: string, from: number, to: number) {
  const hours: UsageHour[] = []
  for (let end = to; end >= from; end -= CALL_MS) {
    const start = Math.max(from, end - CALL_MS + HOUR_MS)
    const query = { from: new Date(start).toISOString(), to: new Date(end).toISOString(), limit: 200 }
    const part: UsageHour[] = []
    for await (const hour of eachItem(api.readUsage, { params: { environmentId }, query })) {
      part.push(hour)
      if (hours.length > 0 && hours.length + part.length > MOST_HOURS) return { hours, isAll: false }
    }
    hours.push(...part)
  }
  return { hours, isAll: true }
}
