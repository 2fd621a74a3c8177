/** The agents of an environment: their activity in a period, and their last run. */
import type { Agent } from '@tacho/contract/runs/agent.ts'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { GetStartedLink, Button } from '../../web/ui/button.tsx'
import { SUM_COLUMNS, SumsChoices, useSums } from './usage-sums.tsx'
import { State } from '../../web/ui/state.tsx'
import { DataTable, ROW_LINK, type Column } from '../../web/ui/data-table.tsx'
import { counted, p95Text } from '../../web/text/format.ts'
import { readRange } from '../../web/address.ts'
import { Cost } from '../../web/text/figures.tsx'
import { costsOf } from '../../web/text/costs.ts'
import { beforeText } from '../../web/ui/range-choice.tsx'
import { SUMS_SINCE } from '../address.ts'
import { costColumns } from '../usage/cost-columns.tsx'
import { useListKeys } from '../../web/ui/keys.ts'
import { Empty, PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/times.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { useAgents } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/agents')
const SEARCH_ID = 'search-agents'

interface Row extends UsagePoint {
  agent: Agent | undefined
}

export function AgentsPage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { order = 'cost', q } = search
  const { data, error, refetch } = useSums(place.environment.id, 'agent', search, order)
  const agents = useAgents(place.environment.id)
  const [hasArchived, setArchived] = useState(false)
  useTitle('Agents')
  const rows = useMemo(() => {
    const byId = new Map(agents.data?.map((agent) => [agent.id, agent]))
    return data?.sums.map((sum): Row => ({ ...sum, agent: byId.get(sum.key) }))
  }, [data, agents.data])
  const before = useMemo(() => new Map(data?.before.map((sum) => [sum.key, sum])), [data])
  const isArchived = ({ agent }: Row) => agent !== undefined && agent.archivedAt !== null
  const wanted = (q ?? '').toLowerCase()
  const shown = (rows ?? []).filter(
    (row) =>
      (hasArchived || !isArchived(row)) &&
      `${row.name ?? ''}\n${row.agent?.agentId ?? ''}`.toLowerCase().includes(wanted),
  )
  const pageOf = ({ agent, name }: Row) =>
    ({
      to: '/w/$workspace/$environment/agents/$agent',
      params: { ...params, agent: agent?.agentId ?? name ?? '' },
      search: readRange(search),
    }) as const
  const current = useListKeys({
    items: shown,
    keyOf: ({ key }) => key,
    open: (row) => void navigate(pageOf(row)),
    reset: search,
    more: { '/': () => document.getElementById(SEARCH_ID)?.focus() },
  })
  const [perRun, change] = costColumns<Row>(before, beforeText(search, SUMS_SINCE))
  const columns: Column<Row>[] = [
    {
      head: 'Agent',
      main: true,
      cell: (row) => (
        <>
          <Link {...pageOf(row)} title={row.name ?? ''} className={ROW_LINK}>
            <bdi>{row.name}</bdi>
          </Link>{' '}
          {isArchived(row) && <State is="ARCHIVED" />}
          {row.agent?.agentId && row.agent.agentId !== row.name && (
            <bdi className="block truncate font-mono text-xs text-soft">{row.agent.agentId}</bdi>
          )}
        </>
      ),
    },
    ...SUM_COLUMNS,
    {
      head: 'Cost',
      right: true,
      cell: (row) => (
        <>
          <Link
            to="/w/$workspace/$environment/runs"
            params={params}
            search={{ ...data?.runs, agent: row.agent?.agentId ?? row.name ?? '', order: 'cost' }}
            title="Its dearest runs"
            className="link relative"
          >
            <Cost of={costsOf(row)} />
          </Link>
          {/* On a phone, there is no room for a separate column. */}
          <span className="block text-xs sm:hidden">{change.cell(row)}</span>
        </>
      ),
    },
    perRun,
    { ...change, wide: true },
    {
      head: 'Model p95',
      right: true,
      wide: true,
      cell: ({ llmLatency }) => llmLatency && p95Text(llmLatency),
    },
    { head: 'Last run', cell: ({ agent }) => agent && <Time at={agent.lastRunAt} /> },
  ]
  const idle = (agents.data ?? []).filter(({ id }) => data !== undefined && !data.sums.some(({ key }) => key === id))
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-3 pt-5">
        <h1 className="text-xl font-semibold">Agents</h1>
        {agents.data?.some(({ archivedAt }) => archivedAt !== null) && (
          <Button look="quiet" aria-pressed={hasArchived} onClick={() => setArchived(!hasArchived)}>
            {hasArchived ? 'Hide archived' : 'Show archived'}
          </Button>
        )}
      </div>
      {isBlocking(error, data) ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : !rows ? (
        <PagePending />
      ) : rows.length === 0 && agents.data?.length === 0 ? (
        <Empty title="No agent has run yet" action={<GetStartedLink />}>
          Every agent appears here with its outcomes, tokens, cost and latency as soon as its first event arrives.
        </Empty>
      ) : (
        <>
          <SumsChoices
            id={SEARCH_ID}
            label="Agent"
            search={search}
            onChange={(to) => void navigate({ to: '.', search: to, replace: true })}
          />
          <DataTable label="Agents" columns={columns} items={shown} keyOf={({ key }) => key} current={current} />
          {shown.length === 0 && <p className="py-3 text-sm text-soft">No agent of this time matches.</p>}
          {idle.length > 0 && <Idle agents={idle} />}
        </>
      )}
    </div>
  )
}

const IDLE_SHOWN = 20

/** Agents without activity in the chosen period, so that they can be found too. */
function Idle({ agents }: { agents: readonly Agent[] }) {
  const params = route.useParams()
  return (
    <p className="mt-4 text-sm text-soft">
      {counted(agents.length, 'other agent')} recorded nothing in this time:{' '}
      {agents.slice(0, IDLE_SHOWN).map(({ id, agentId, name }, index) => (
        <span key={id}>
          {index > 0 && ', '}
          <Link
            to="/w/$workspace/$environment/agents/$agent"
            params={{ ...params, agent: agentId ?? name }}
            className="link"
          >
            <bdi>{name}</bdi>
          </Link>
        </span>
      ))}
      {agents.length > IDLE_SHOWN && ', …'}
    </p>
  )
}
