/** The agents of a period: their failures, the duration of their calls, and their costs. */
import { tokensText, tokenWords } from '@tacho/contract/runs/run-text.ts'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Cost, failedShare } from '../../web/text/figures.tsx'
import { costsOf, costText, sumCosts } from '../../web/text/costs.ts'
import { DataTable, ROW_LINK, type Column } from '../../web/ui/data-table.tsx'
import { endedRuns } from '@tacho/contract/runs/statistics.ts'
import { compact, p95Text, number } from '../../web/text/format.ts'
import { rangeText } from '../../web/ui/range-choice.tsx'
import type { Range } from '../../web/address.ts'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { Skeleton } from '../../web/ui/states.tsx'
import { useTime } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment')
const SHOWN = 8

export function AgentsOfTime({ range }: { range: Range }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useTime(place.environment.id, range)
  const runs = { to: '/w/$workspace/$environment/runs', params } as const
  const of = ({ name }: UsagePoint) => ({ ...data?.runs, agent: name ?? '' })
  const columns: Column<UsagePoint>[] = [
    {
      head: 'Agent',
      main: true,
      cell: (agent) => (
        <Link {...runs} search={of(agent)} title={agent.name ?? ''} className={ROW_LINK}>
          <bdi>{agent.name}</bdi>
        </Link>
      ),
    },
    { head: 'Runs', right: true, wide: true, cell: (agent) => number(agent.runs) },
    {
      head: 'Failed',
      right: true,
      cell: (agent) =>
        agent.failed === 0 ? (
          failedShare(agent)
        ) : (
          <Link
            {...runs}
            search={{ ...of(agent), status: 'FAILED' }}
            title={`${number(agent.failed)} of ${number(endedRuns(agent))} ended runs failed`}
            className="link relative text-red"
          >
            {failedShare(agent)}
          </Link>
        ),
    },
    { head: 'Model p95', right: true, cell: ({ llmLatency }) => llmLatency && p95Text(llmLatency) },
    {
      head: 'Tool p95',
      right: true,
      wide: true,
      cell: ({ toolLatency }) => toolLatency && p95Text(toolLatency),
    },
    { head: 'Tokens', right: true, wide: true, cell: ({ usage }) => tokenWords(usage.totalTokens, compact) },
    { head: 'Cost', right: true, cell: (agent) => <Cost of={costsOf(agent)} /> },
  ]
  const title = `Agents, ${rangeText(range).toLowerCase()}`
  const costs = sumCosts(data?.agents ?? [])
  const note = data && (
    <Link to="/w/$workspace/$environment/usage" params={params} search={range} className="link">
      {data.agents.length > SHOWN && `${SHOWN} of ${number(data.agents.length)} agents · `}
      {tokensText(costs.tokens, compact)} · cost {costText(costs)}
    </Link>
  )
  return (
    <Section title={title} note={note} error={data ? null : error} className="min-w-0 lg:col-span-2">
      {!data ? (
        <Skeleton className="mt-2 h-24" />
      ) : data.agents.length === 0 ? (
        <Nothing>No agent recorded anything in this time.</Nothing>
      ) : (
        <DataTable label={title} columns={columns} items={data.agents.slice(0, SHOWN)} keyOf={({ key }) => key} />
      )}
    </Section>
  )
}
