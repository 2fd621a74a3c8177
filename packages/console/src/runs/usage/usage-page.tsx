import { allItems } from '@tacho/client/items.ts'
import { knownCost, knownTokens, tokenWords } from '@tacho/contract/runs/run-text.ts'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { api } from '../../web/api.ts'
import { MarkTable, plotMarks, useMarks } from '../../policies/deployments/marks.tsx'
import { ScoreSums } from '../scores/score-sums.tsx'
import { Button } from '../../web/ui/button.tsx'
import { DataTable, ROW_LINK, type Column } from '../../web/ui/data-table.tsx'
import { csv, download, useTitle } from '../../web/ui/browser.ts'
import { changed, Choice } from '../../web/ui/filters.tsx'
import { Cost, Failed } from '../../web/text/figures.tsx'
import { costNote, costsOf, sumCosts } from '../../web/text/costs.ts'
import { compact, duration, money, number, percent, percentiles } from '../../web/text/format.ts'
import { Plot } from '../../web/ui/plot.tsx'
import { Nothing } from '../../web/ui/section.tsx'
import { Empty, PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { RangeChoice, beforeText } from '../../web/ui/range-choice.tsx'
import {
  hourTimes,
  stepAt,
  stepsOf,
  hoursBefore,
  hoursOf,
  NO_RANGE,
  readRange,
  runsRange,
  zoneText,
  type HourWindow,
  type Range,
} from '../../web/address.ts'
import { MEASURES_OF, SUMS_SINCE, type GROUPS, type UsageAddress } from '../address.ts'
import { costColumns } from './cost-columns.tsx'
import { areLines, markOf, nameOf, seriesOf, shownWindow, sorted, sumOf, timesOf, type Measure } from './series.ts'

type Group = (typeof GROUPS)[number]

const route = getRouteApi('/w/$workspace/$environment/usage')
const REFRESH_MS = 60_000
/** Points per request: LIMITS.usagePointsPage. Importing the limits would make the page larger. */
const PAGE = 2_000
/** Maximum number of rows in the table. The downloaded file contains all rows that were read. */
const ROWS = 200
const MEASURE_WORDS = [
  ['cost', 'Cost'],
  ['tokens', 'Tokens'],
  ['steps', 'Steps'],
  ['outcomes', 'Runs by outcome'],
  ['failed', 'Failed runs'],
  ['llm', 'Model latency, p95'],
  ['tool', 'Tool latency, p95'],
] as const
/** Labels of measures in the breakdown by tool. */
const CALL_WORDS: Partial<Record<Measure, string>> = { steps: 'Calls', failed: 'Failed calls' }
const wordOf = (show: Measure, by: Group): string =>
  (by === 'tool' ? CALL_WORDS[show] : undefined) ?? MEASURE_WORDS.find(([one]) => one === show)?.[1] ?? show
const GROUP_WORDS = [
  ['agent', 'by agent'],
  ['model', 'by model'],
  ['promptVersion', 'by prompt version'],
  ['tool', 'by tool'],
  ['session', 'by session'],
  ['user', 'by end user'],
] as const
const FORMATS: Record<Measure, (value: number) => string> = {
  cost: money,
  tokens: compact,
  steps: compact,
  outcomes: compact,
  failed: compact,
  llm: duration,
  tool: duration,
}
const HEADS: Record<Group, string> = {
  agent: 'Agent',
  model: 'Model',
  promptVersion: 'Prompt version',
  tool: 'Tool',
  session: 'Session',
  user: 'End user',
}
/** Groups with many members. Only the first members are read. */
const isOfRuns = (by: Group): boolean => by === 'session' || by === 'user'
/**
 * Groups that can be compared with the previous period. Models and tools have no counts of runs, and for sessions and
 * end users the previous period is not read.
 */
const hasChange = (by: Group): boolean => by === 'agent' || by === 'promptVersion'
const SORTS = { cost: 'cost', tokens: 'tokens', steps: 'events', outcomes: 'runs', failed: 'failed' } as const

export function UsagePage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { by = 'agent' } = search
  const measures = MEASURES_OF[by]
  const show = measures.find((one) => one === search.show) ?? measures[0] ?? 'cost'
  const usage = useUsage(place.environment.id, search, by, show)
  useTitle('Usage')
  const { data } = usage
  const sums = useMemo(() => data && sorted(data.sums, show), [data, show])
  const window = useMemo(() => data && shownWindow(data.window, show), [data, show])
  const times = useMemo(() => window && timesOf(window), [window])
  const drawn = isOfRuns(by) ? NONE : sums
  const series = useMemo(
    () => (data && drawn && window ? seriesOf(data.points, drawn, window, show) : []),
    [data, drawn, window, show],
  )
  const before = data && sumOf(data.before, show)
  const beforeByKey = useMemo(() => new Map(data?.before.map((sum) => [sum.key, sum])), [data])
  const marks = useMarks(place.environment.id, data?.window)
  const onAxis = useMemo(() => plotMarks(marks), [marks])

  const set = (change: { [Name in keyof UsageAddress]?: string | undefined }) =>
    void navigate({ to: '.', search: changed(search, change), replace: true })
  const openRuns = (time: number) => {
    const at = (seconds: number) => new Date(seconds * 1_000).toISOString()
    void navigate({
      to: '/w/$workspace/$environment/runs',
      params,
      search: {
        from: at(time),
        to: at(window ? stepAt(window, time * 1_000).end / 1_000 : time),
        ...(show === 'failed' && (by === 'tool' ? { hasErrors: true } : { status: 'FAILED' as const })),
      },
    })
  }
  const range = data && runsRange(data.window, search)
  const columns: Column<UsagePoint>[] = [
    {
      head: HEADS[by],
      main: true,
      cell: (sum) =>
        by === 'agent' || by === 'user' || (by === 'tool' && sum.name) ? (
          <Link
            to="/w/$workspace/$environment/runs"
            params={params}
            search={{ [by]: nameOf(sum), ...range, ...(show === 'cost' && { order: 'cost' as const }) }}
            className={ROW_LINK}
          >
            <bdi>{nameOf(sum)}</bdi>
          </Link>
        ) : by === 'session' ? (
          <Link
            to="/w/$workspace/$environment/sessions/$sessionId"
            params={{ ...params, sessionId: nameOf(sum) }}
            className={ROW_LINK}
          >
            <bdi>{nameOf(sum)}</bdi>
          </Link>
        ) : (
          <bdi className="block truncate font-medium">{nameOf(sum)}</bdi>
        ),
    },
    ...(by === 'tool' ? TOOL_COLUMNS : by === 'model' ? USED_COLUMNS : [...RUN_COLUMNS, ...USED_COLUMNS]),
    ...(hasChange(by) ? costColumns<UsagePoint>(beforeByKey, beforeText(search, SUMS_SINCE)) : []),
    ...(isOfRuns(by) || by === 'tool' ? [] : LATENCY_COLUMNS),
    ...(by === 'agent' ? WAITING_COLUMNS : []),
  ]
  const save = () => {
    if (!data) return
    const rows = rowsOf(isOfRuns(by) ? data.sums : data.points, by)
    download(`usage-${place.environment.name}.csv`, 'text/csv', csv(rows))
  }
  const words = MEASURE_WORDS.filter(([one]) => measures.includes(one))
  const options = words.map(([one]) => [one, wordOf(one, by)] as const)
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-3 pt-5 pb-3">
        <h1 className="text-xl font-semibold">Usage</h1>
        <div className="flex flex-wrap items-center gap-2">
          <Choice label="Measure" value={show} options={options} onChange={(one) => set({ show: one })} />
          <Choice label="By" value={by} options={GROUP_WORDS} onChange={(one) => set({ by: one })} />
          <RangeChoice
            label="Period"
            range={search}
            byDefault={SUMS_SINCE}
            onChange={(range) => set({ ...NO_RANGE, ...range })}
          />
          <Button onClick={save} disabled={!data}>
            CSV
          </Button>
        </div>
      </div>
      {isBlocking(usage.error, usage.data) ? (
        <Trouble error={usage.error} retry={() => void usage.refetch()} />
      ) : !data || !sums || !times || !window ? (
        <PagePending />
      ) : sums.length === 0 ? (
        <Empty title="Nothing was recorded in this period">
          Runs, steps, tokens, cost and latency appear here by agent, model, prompt version, tool, session and end user,
          hour by hour.
        </Empty>
      ) : (
        <>
          {series.length === 0 ? (
            <Nothing>None of it was recorded in this period.</Nothing>
          ) : (
            <Plot
              unit={wordOf(show, by)}
              label={`${show} ${isOfRuns(by) ? 'of all runs' : `by ${by}`} over time; the table below has the sums`}
              times={times}
              stepSeconds={window.stepMs / 1_000}
              series={series}
              areLines={areLines(show)}
              format={FORMATS[show]}
              before={
                typeof before === 'number'
                  ? { sum: before, mark: markOf(data.before, show), period: beforeText(search, SUMS_SINCE) }
                  : undefined
              }
              {...onAxis}
              onPick={openRuns}
            />
          )}
          <p className="mt-1 mb-4 text-sm text-soft">
            Drag to zoom, double click to see all again, click to open the runs of that time.
            {` ${zoneText(data.window)}`}
            {data.window.isCut && ' Usage is shown for a year at most.'}
            {areLines(show) && ' Percentiles are at most 1 % from the exact ones; with ≈, at most 10 %.'}
          </p>
          <MarkTable marks={marks} />
          <Estimated sums={sums} />
          <DataTable label="Sums" columns={columns} items={sums.slice(0, ROWS)} keyOf={({ key }) => key} />
          {(by === 'agent' || by === 'promptVersion') && (
            <ScoreSums environmentId={place.environment.id} window={data.window} by={by} />
          )}
          {sums.length > ROWS && (
            <p className="mt-2 text-sm text-soft">
              The first {number(ROWS)} are shown. The CSV file has {isOfRuns(by) ? `up to ${number(PAGE)}` : 'all'}.
            </p>
          )}
        </>
      )}
    </div>
  )
}

/** The estimated part of the cost, and a link to the prices. */
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

const NONE: UsagePoint[] = []

const USED_COLUMNS: Column<UsagePoint>[] = [
  { head: 'Steps', right: true, wide: true, cell: ({ events }) => number(events) },
  { head: 'Tokens', right: true, cell: ({ usage: { totalTokens } }) => tokenWords(totalTokens, number) },
  { head: 'Cost', right: true, cell: (sum) => <Cost of={costsOf(sum)} /> },
]

const RUN_COLUMNS: Column<UsagePoint>[] = [
  { head: 'Runs', right: true, wide: true, cell: ({ runs }) => number(runs) },
  {
    head: 'Failed',
    right: true,
    wide: true,
    cell: (sum) => <Failed of={sum} />,
  },
]

const latency = (head: string, of: 'llmLatency' | 'toolLatency'): Column<UsagePoint> => ({
  head,
  right: true,
  wide: true,
  cell: ({ [of]: latencies }) => percentiles(latencies),
})
const TOOL_COLUMNS: Column<UsagePoint>[] = [
  { head: 'Calls', right: true, cell: ({ events }) => number(events) },
  {
    head: 'Failed',
    right: true,
    cell: ({ events, calls }) => (
      <span className={calls?.failed ? 'text-red' : ''}>
        {number(calls?.failed ?? 0)} {events > 0 && `(${percent(calls?.failed ?? 0, events)})`}
      </span>
    ),
  },
  { head: 'Blocked', right: true, wide: true, cell: ({ calls }) => number(calls?.blocked ?? 0) },
  { head: 'Approvals', right: true, wide: true, cell: ({ calls }) => number(calls?.approvals ?? 0) },
  latency('p50 / p95', 'toolLatency'),
]
const waits = (head: string, of: 'runs' | 'approvals'): Column<UsagePoint> => ({
  head,
  right: true,
  wide: true,
  cell: ({ waiting }) => percentiles(waiting?.[of] ?? null),
})
/** Columns for waiting times: people waiting for the agent, and the agent waiting for people. */
const WAITING_COLUMNS = [waits('Run p50 / p95', 'runs'), waits('Decision p50 / p95', 'approvals')]
const LATENCY_COLUMNS = [latency('Model p50 / p95', 'llmLatency'), latency('Tool p50 / p95', 'toolLatency')]

function rowsOf(points: readonly UsagePoint[], by: Group): (string | number)[][] {
  const counts = ['runs', 'completed', 'failed', 'cancelled'] as const
  const head = [
    'time',
    HEADS[by].toLowerCase(),
    ...counts,
    'steps',
    'tokens',
    'cost in US dollars',
    'estimated cost in US dollars',
    'calls without a known cost',
  ]
  const latencies = ['llm p50 ms', 'llm p95 ms', 'tool p50 ms', 'tool p95 ms']
  const calls = ['failed calls', 'blocked calls', 'approvals']
  return [
    [...head, ...latencies, ...calls],
    ...points.map((point) => [
      point.from,
      nameOf(point),
      ...counts.map((count) => point[count]),
      point.events,
      knownTokens(point.usage) ?? '',
      knownCost(point) ?? '',
      point.estimatedCost ?? '',
      point.unpricedCalls,
      ...[point.llmLatency, point.toolLatency].flatMap((latencies) => [latencies?.p50Ms ?? '', latencies?.p95Ms ?? '']),
      point.calls?.failed ?? '',
      point.calls?.blocked ?? '',
      point.calls?.approvals ?? '',
    ]),
  ]
}

/**
 * Reads a point for each hour of up to a week, or each day of a longer period; and the sums of the whole period. Only
 * the first sessions and end users are read, because there can be many; the points then cover all runs.
 */
const WHOLE = { step: 'window' } as const

function useUsage(environmentId: string, search: Range, by: Group, show: Measure) {
  const range = readRange(search)
  const sort = isOfRuns(by) ? SORTS[show as keyof typeof SORTS] : undefined
  return useQuery({
    queryKey: ['usage', environmentId, range, by, sort],
    queryFn: async ({ signal }) => {
      const window = hoursOf(range, SUMS_SINCE, Date.now())
      const read = (one: ReturnType<typeof stepsOf> | typeof WHOLE, of: Group, time: HourWindow = window) =>
        allItems((input) => api.readUsagePoints(input, { signal }), {
          params: { environmentId },
          query: { ...hourTimes(time), limit: PAGE, by: of, ...one },
        })
      const first = async () => {
        const usageTexts = {
          params: { environmentId },
          query: { ...hourTimes(window), limit: PAGE, by, step: 'window' as const, sort },
        }
        return (await api.readUsagePoints(usageTexts, { signal })).items
      }
      const of = isOfRuns(by) ? 'agent' : by
      const [points, sums, before] = await Promise.all([
        read(stepsOf(window), of),
        isOfRuns(by) ? first() : read(WHOLE, by),
        read(WHOLE, of, hoursBefore(window)),
      ])
      return { window, points, sums, before }
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
