/** Before a publication: how the two versions differ, and how the new one does elsewhere. */
import type { VersionDiff } from '@tacho/contract/policies/version.ts'
import { useQueries, useQuery } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { promptResultsQuery } from '../prompt-queries.ts'
import { Diff } from '../../web/text/diff.tsx'
import { endedRuns } from '@tacho/contract/runs/statistics.ts'
import { failedShare } from '../../web/text/failed.tsx'
import { counted } from '../../web/text/format.ts'
import { Refused } from '../../web/ui/refused.tsx'
import { Skeleton } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/time.tsx'
import type { InForce, Item } from './queries.ts'

interface ChangePreviewProps {
  workspaceId: string
  item: Item
  /** In force now; null: nothing is. */
  from: string | null
  /** Null: it is removed. */
  to: string | null
  /** Where else the item may be in force. */
  others: readonly InForce[]
}

export function ChangePreview({ workspaceId, item, from, to, others }: ChangePreviewProps) {
  const { data, error } = useQuery({
    queryKey: [item.kind, workspaceId, item.id, 'diff', from, to],
    queryFn: ({ signal }) => readDiff(workspaceId, item, { from: from ?? '', to: to ?? '' }, signal),
    enabled: from !== null && to !== null && from !== to,
    staleTime: Infinity,
  })
  return (
    <>
      {to !== null && <Elsewhere item={item} version={to} others={others} />}
      {from !== null && to !== null && from !== to && (
        <div className="mt-3">
          <h3 className="text-sm font-medium">
            Version {from} → version {to}
          </h3>
          {error ? <Refused error={error} /> : data ? <Diff diff={data} /> : <Skeleton className="mt-2 h-24" />}
        </div>
      )}
    </>
  )
}

function readDiff(
  workspaceId: string,
  { kind, id }: Item,
  query: { from: string; to: string },
  signal: AbortSignal,
): Promise<VersionDiff> {
  if (kind === 'prompt') return api.diffPromptVersions({ params: { workspaceId, promptId: id }, query }, { signal })
  return api.diffPolicyVersions({ params: { workspaceId, policyId: id }, query }, { signal })
}

/** Where the version is in force already, since when, and how its runs end there. */
function Elsewhere({ item, version, others }: { item: Item; version: string; others: readonly InForce[] }) {
  const places = others.filter(({ deployment }) => deployment?.version === version)
  const results = useQueries({
    queries: places.map(({ environment }) => ({
      ...promptResultsQuery(environment.id, item.id),
      enabled: item.kind === 'prompt',
    })),
  })
  return places.map(({ environment, deployment }, index) => {
    const result = results[index]?.data?.items.find((one) => one.version === version)
    return (
      <p key={environment.id} className="mt-2 text-sm text-soft">
        In force in <b>{environment.name}</b> since {deployment && <Time at={deployment.deployedAt} />}
        {result && result.runs > 0 && `: ${counted(result.runs, 'run')}`}
        {result && endedRuns(result) > 0 && `, ${failedShare(result)} of those that ended failed`}.
      </p>
    )
  })
}
