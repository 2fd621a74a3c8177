import { DAMAGED_VERSION } from '../deployments/version-history.tsx'
import type { Prompt } from '@tacho/contract/policies/prompt.ts'
import { allItems } from '@tacho/client/items.ts'
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { endedRuns, failureComparison } from '@tacho/contract/runs/statistics.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Author } from '../../web/ui/chip.tsx'
import { State } from '../../web/ui/state.tsx'
import { InForceChips, ItemList } from '../deployments/item-list.tsx'
import { inForce, useDeployments, type Deployed } from '../deployments/queries.ts'
import { api } from '../../web/api.ts'
import { hoursOf, hourTimes } from '../../web/address.ts'
import { failedShare } from '../../web/text/figures.tsx'
import { failsMoreThan, versionBefore } from './prompt-beside.tsx'
import { ROW_LINK, type Column } from '../../web/ui/data-table.tsx'
import { bytes, counted } from '../../web/text/format.ts'
import { Time } from '../../web/text/times.tsx'
import { promptsQuery } from '../queries.ts'

const route = getRouteApi('/w/$workspace/$environment/prompts')

export function PromptsPage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [hasArchived, setArchived] = useState(false)
  const list = useQuery(promptsQuery(place.workspace.id, hasArchived))
  const deployed = useDeployments(place.workspace.id)
  const results = useVersionPoints(place.environment.id)
  const columns: Column<Prompt>[] = [
    {
      head: 'Prompt',
      main: true,
      cell: ({ promptId, name, newest }) => (
        <>
          <Link to="/w/$workspace/$environment/prompts/$promptId" params={{ ...params, promptId }} className={ROW_LINK}>
            <bdi>{name}</bdi>
          </Link>
          <span dir="auto" className="block truncate text-xs text-soft">
            {newest.damaged ? DAMAGED_VERSION : (newest.note ?? '')}
          </span>
        </>
      ),
    },
    {
      head: 'In force',
      wide: true,
      cell: ({ promptId, newest, archivedAt }) =>
        archivedAt === null ? (
          <InForceChips deployed={deployed} item={{ kind: 'prompt', id: promptId }} newestVersion={newest.version} />
        ) : (
          <State is="ARCHIVED" />
        ),
    },
    {
      head: `Results in ${place.environment.name}, 30 days`,
      cell: ({ promptId, name }) => (
        <PromptResultsInShort
          name={name}
          version={hereInForce(deployed, place.environment.id, promptId)}
          points={results}
        />
      ),
    },
    { head: 'Newest', right: true, wide: true, cell: ({ newest }) => `version ${newest.version}` },
    { head: 'Size', right: true, wide: true, cell: ({ newest }) => bytes(newest.contentBytes) },
    {
      head: 'Author',
      wide: true,
      cell: ({ newest }) => <Author name={newest.author} importedAt={newest.importedAt} />,
    },
    { head: 'Written', wide: true, cell: ({ newest }) => <Time at={newest.createdAt} /> },
  ]
  return (
    <ItemList
      title="Prompts"
      list={list}
      columns={columns}
      keyOf={({ promptId }) => promptId}
      open={({ promptId }) =>
        void navigate({ to: '/w/$workspace/$environment/prompts/$promptId', params: { ...params, promptId } })
      }
      empty="A prompt kept here can change without a release of the agent: agents read the version that is in force in their environment."
      hasArchived={hasArchived}
      onArchived={setArchived}
    />
  )
}

const SINCE = '30d'
/** Maximum number of versions to read before the one in force, to find one with runs. */
const VERSIONS_READ = 20

/** Runs of prompt versions in the last days, by prompt name and version number. */
function useVersionPoints(environmentId: string) {
  const { data } = useQuery({
    queryKey: ['results of prompt versions', environmentId],
    queryFn: async ({ signal }) => {
      const query = {
        ...hourTimes(hoursOf({ since: SINCE }, SINCE, Date.now())),
        by: 'promptVersion' as const,
        step: 'window' as const,
      }
      const points = await allItems((page) => api.readUsagePoints(page, { signal }), {
        params: { environmentId },
        query,
      })
      return new Map(points.map((point) => [point.name ?? point.key, point]))
    },
    refetchInterval: 60_000,
  })
  return data
}

function hereInForce(deployed: readonly Deployed[], environmentId: string, promptId: string): string | null {
  const here = inForce(deployed, { kind: 'prompt', id: promptId }).find((one) => one.environment.id === environmentId)
  return here?.deployment?.version ?? null
}

interface InShortProps {
  name: string
  /** Version in force here; null if none. */
  version: string | null
  points: ReadonlyMap<string, UsagePoint> | undefined
}

/**
 * `v2 in force · failed 38 % (v1: 12 %) · 62 runs`. If the difference is significant, it also explains that the version
 * is worse.
 */
function PromptResultsInShort({ name, version, points }: InShortProps) {
  if (version === null) return <span className="text-soft">not in force here</span>
  if (!points) return <span className="text-soft">v{version} in force</span>
  const length = Math.min(VERSIONS_READ, Number(version))
  const versions = Array.from({ length }, (_, index) => String(Number(version) - index)).flatMap((number) => {
    const point = points.get(`${name} version ${number}`)
    return point ? [{ ...point, version: number }] : []
  })
  const now = versions.find((one) => one.version === version)
  if (!now || endedRuns(now) === 0) return <span className="text-soft">v{version} in force · no run ended yet</span>
  const before = versionBefore(versions, version)
  const isWorse = before !== undefined && failsMoreThan(now, before)
  const text = `v${version} in force · failed ${failedShare(now)}${before ? ` (v${before.version}: ${failedShare(before)})` : ''} · ${counted(now.runs, 'run')}`
  return (
    <span
      title={
        (before && failureComparison({ ...now, name: `v${version}` }, { ...before, name: `v${before.version}` })) ??
        undefined
      }
      className={`max-sm:whitespace-normal ${isWorse ? 'font-medium text-amber' : ''}`}
    >
      {isWorse && <span aria-hidden>▲ </span>}
      {text}
      {isWorse && <span className="block text-xs">fails more often than v{before.version}, beyond chance</span>}
    </span>
  )
}
