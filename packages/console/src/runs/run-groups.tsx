/** Agents and sessions: what their newest runs came to. Each leads to its page. */
import type { Agent } from '@tacho/contract/operator/agent.ts'
import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useAgents } from '../agents/queries.ts'
import { api } from '../api.ts'
import { GetStartedLink } from '../get-started/get-started-link.tsx'
import { Button } from '../ui/button.tsx'
import { Chip } from '../ui/chip.tsx'
import { DataTable, ROW_LINK, type Column } from '../ui/data-table.tsx'
import { Cost } from '../ui/cost.tsx'
import { Failed } from '../ui/failed.tsx'
import { compact, counted, duration, number } from '../ui/format.ts'
import { useListKeys } from '../ui/list-keys.ts'
import { Empty, PagePending, Trouble, isBlocking } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { useTitle } from '../ui/title.ts'
import { groupRuns, type RunGroup } from './group.ts'
import { RunsTabs } from './runs-tabs.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const REFRESH_MS = 10_000
const PAGE_RUNS = 200
/** Bounds what a page reads. */
const MOST_RUNS = 1_000

export const AgentsPage = () => <RunGroups by="agent" title="Agents" />
export const SessionsPage = () => <RunGroups by="session" title="Sessions" />

function RunGroups({ by, title }: { by: 'agent' | 'session'; title: string }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { data, error, refetch } = useNewestRuns(place.environment.id)
  const [hasArchived, setArchived] = useState(false)
  const agents = useAgents(place.environment.id, by === 'agent')
  const archived = useMemo(() => archivedKeys(agents.data ?? []), [agents.data])
  const all = useMemo(() => groupRuns(data?.runs ?? [], by), [data, by])
  const isShown = ({ key }: RunGroup) => by !== 'agent' || hasArchived || !archived.has(key)
  const groups = all.filter(isShown)
  useTitle(title)
  const pageOf = ({ key }: RunGroup) =>
    by === 'agent'
      ? ({ to: '/w/$workspace/$environment/agents/$agent', params: { ...params, agent: key } } as const)
      : ({ to: '/w/$workspace/$environment/sessions/$sessionId', params: { ...params, sessionId: key } } as const)
  const current = useListKeys({
    items: groups,
    keyOf: ({ key }) => key,
    open: (group) => void navigate(pageOf(group)),
    reset: by,
  })
  const columns: Column<RunGroup>[] = [
    {
      head: by === 'agent' ? 'Agent' : 'Session',
      main: true,
      cell: (group) => (
        <>
          <Link {...pageOf(group)} title={group.name} className={ROW_LINK}>
            <bdi>{group.name}</bdi>
          </Link>{' '}
          {by === 'agent' && archived.has(group.key) && <Chip tone="amber">Archived</Chip>}
          {group.key !== group.name && <bdi className="block truncate font-mono text-xs text-soft">{group.key}</bdi>}
        </>
      ),
    },
    { head: 'Runs', right: true, cell: ({ runs }) => number(runs) },
    { head: 'Completed', right: true, wide: true, cell: ({ completed }) => number(completed) },
    { head: 'Failed', right: true, cell: (group) => <Failed of={group} /> },
    { head: 'Running', right: true, wide: true, cell: ({ running }) => number(running) },
    { head: 'p95 length', right: true, wide: true, cell: ({ p95 }) => (p95 === null ? '' : duration(p95)) },
    { head: 'Tokens', right: true, wide: true, cell: ({ tokens }) => compact(tokens) },
    { head: 'Cost', right: true, wide: true, cell: ({ cost }) => <Cost of={cost} /> },
    { head: 'Last run', cell: ({ lastStartedAt }) => <Time at={lastStartedAt} /> },
  ]
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-3 pt-5">
        <h1 className="text-xl font-semibold">{title}</h1>
        {by === 'agent' && archived.size > 0 && (
          <Button look="quiet" aria-pressed={hasArchived} onClick={() => setArchived(!hasArchived)}>
            {hasArchived ? 'Hide archived' : 'Show archived'}
          </Button>
        )}
      </div>
      <RunsTabs />
      {isBlocking(error, data) ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : !data ? (
        <PagePending />
      ) : all.length === 0 ? (
        <Nothing by={by} />
      ) : (
        <>
          <p className="py-3 text-sm text-soft">
            {data.isAll
              ? `All ${counted(data.runs.length, 'run')} of ${place.environment.name}.`
              : `The newest ${counted(data.runs.length, 'run')} of ${place.environment.name}. Usage shows longer times.`}
          </p>
          <DataTable label={title} columns={columns} items={groups} keyOf={({ key }) => key} current={current} />
        </>
      )}
    </div>
  )
}

/** Keys of the groups of archived agents. */
function archivedKeys(agents: readonly Agent[]): ReadonlySet<string> {
  return new Set(agents.flatMap(({ agentId, name, archivedAt }) => (archivedAt === null ? [] : [agentId ?? name])))
}

function Nothing({ by }: { by: 'agent' | 'session' }) {
  return by === 'agent' ? (
    <Empty title="No agent has run yet" action={<GetStartedLink />}>
      Every agent appears here with its outcomes, length, tokens and cost as soon as its first event arrives.
    </Empty>
  ) : (
    <Empty title="No session yet">
      Runs that share a <code className="font-mono">sessionId</code>, such as those of one conversation, are summed up
      here.
    </Empty>
  )
}

function useNewestRuns(environmentId: string) {
  return useQuery({
    queryKey: ['runs', environmentId, 'newest'],
    queryFn: async ({ signal }) => {
      const runs: OperatorRun[] = []
      let cursor: string | undefined
      do {
        const query = { limit: PAGE_RUNS, cursor }
        const page = await api.listOperatorRuns({ params: { environmentId }, query }, { signal })
        runs.push(...page.items)
        cursor = page.nextCursor ?? undefined
      } while (cursor !== undefined && runs.length < MOST_RUNS)
      return { runs, isAll: cursor === undefined }
    },
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}
