import type { Policy } from '@tacho/contract/operator/policy.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { InForceChips } from '../deployments/in-force-chips.tsx'
import { useDeployments } from '../deployments/queries.ts'
import { LinkButton } from '../ui/button.tsx'
import { DataTable, ROW_LINK, type Column } from '../ui/data-table.tsx'
import { useListKeys } from '../ui/list-keys.ts'
import { Empty, PagePending, Trouble } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { useTitle } from '../ui/title.ts'
import { ActionChip, severityWord } from './policy-look.tsx'
import { policiesQuery } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/policies')

export function PoliciesPage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { data, error, refetch } = useQuery(policiesQuery(place.workspace.id))
  const deployed = useDeployments(place.workspace.id)
  const canWrite = place.may('admin')
  useTitle('Policies')
  const current = useListKeys({
    items: data ?? [],
    open: ({ policyId }) =>
      void navigate({ to: '/w/$workspace/$environment/policies/$policyId', params: { ...params, policyId } }),
    reset: null,
    ...(canWrite && {
      more: { n: () => void navigate({ to: '/w/$workspace/$environment/new-policy', params }) },
    }),
  })

  const columns: Column<Policy>[] = [
    {
      head: 'Policy',
      main: true,
      cell: ({ policyId, newest }) => (
        <>
          <Link
            to="/w/$workspace/$environment/policies/$policyId"
            params={{ ...params, policyId }}
            className={ROW_LINK}
          >
            <bdi>{newest.name}</bdi>
          </Link>
          <code className="block truncate font-mono text-xs text-soft" title={newest.condition}>
            {newest.condition}
          </code>
        </>
      ),
    },
    { head: 'Acts', cell: ({ newest }) => <ActionChip action={newest.action} /> },
    { head: 'Severity', wide: true, cell: ({ newest }) => severityWord(newest.severity) },
    {
      head: 'In force',
      cell: ({ policyId, newest }) => (
        <InForceChips deployed={deployed} item={{ kind: 'policy', id: policyId }} newestVersion={newest.version} />
      ),
    },
    { head: 'Newest', right: true, wide: true, cell: ({ newest }) => `version ${newest.version}` },
    { head: 'Written', wide: true, cell: ({ newest }) => <Time at={newest.createdAt} /> },
  ]
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex items-center justify-between gap-3 pt-5 pb-3">
        <h1 className="text-xl font-semibold">Policies</h1>
        {canWrite && (
          <LinkButton to="/w/$workspace/$environment/new-policy" params={params}>
            New policy
          </LinkButton>
        )}
      </div>
      {error ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : !data ? (
        <PagePending />
      ) : data.length === 0 ? (
        <Empty title="No policies yet">
          A policy says which tool calls are blocked, need a person, or give a warning. Write one, simulate it on
          recorded calls, then deploy it. {!canWrite && 'An admin of this workspace can write one.'}
        </Empty>
      ) : (
        <DataTable
          label="Policies"
          columns={columns}
          items={data}
          keyOf={({ policyId }) => policyId}
          current={current}
        />
      )}
    </div>
  )
}
