import { DAMAGED_VERSION } from './deployments/version-history.tsx'
import type { Policy } from '@tacho/contract/policies/policy.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { InForceChips, ItemList } from './deployments/item-list.tsx'
import { useDeployments } from './deployments/queries.ts'
import { State } from '../web/ui/state.tsx'
import { ROW_LINK, type Column } from '../web/ui/data-table.tsx'
import { Time } from '../web/text/times.tsx'
import { ActionChip, severityWord } from './action-chip.tsx'
import { policiesQuery } from './queries.ts'
import { ReadySetsPage } from './ready-sets-page.tsx'

const route = getRouteApi('/w/$workspace/$environment/policies')

export function PoliciesPage() {
  return route.useSearch().set === undefined ? <PolicyList /> : <ReadySetsPage />
}

function PolicyList() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [hasArchived, setArchived] = useState(false)
  const list = useQuery(policiesQuery(place.workspace.id, hasArchived))
  const deployed = useDeployments(place.workspace.id)
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
            {newest.damaged ? DAMAGED_VERSION : newest.condition}
          </code>
        </>
      ),
    },
    { head: 'Acts', cell: ({ newest }) => <ActionChip action={newest.action} /> },
    { head: 'Severity', wide: true, cell: ({ newest }) => severityWord(newest.severity) },
    {
      head: 'In force',
      cell: ({ policyId, newest, archivedAt }) =>
        archivedAt === null ? (
          <InForceChips deployed={deployed} item={{ kind: 'policy', id: policyId }} newestVersion={newest.version} />
        ) : (
          <State is="ARCHIVED" />
        ),
    },
    { head: 'Newest', right: true, wide: true, cell: ({ newest }) => `version ${newest.version}` },
    { head: 'Written', wide: true, cell: ({ newest }) => <Time at={newest.createdAt} /> },
  ]
  return (
    <ItemList
      title="Policies"
      beside={
        <Link from={route.id} search={{ set: '' }} className="link text-sm">
          Ready sets
        </Link>
      }
      list={list}
      columns={columns}
      keyOf={({ policyId }) => policyId}
      open={({ policyId }) =>
        void navigate({ to: '/w/$workspace/$environment/policies/$policyId', params: { ...params, policyId } })
      }
      empty="A policy says which tool calls are blocked, need a person, or give a warning. Write one, simulate it on recorded calls, then deploy it. Or begin with a ready set."
      hasArchived={hasArchived}
      onArchived={setArchived}
    />
  )
}
