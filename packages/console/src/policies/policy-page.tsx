import type { Policy } from '@tacho/contract/policies/policy.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { api } from '../web/api.ts'
import { ApprovalStatusChip, Requester } from '../approvals/approval-summary.tsx'
import { ItemHead } from './deployments/item-head.tsx'
import { DeploymentHistory } from './deployments/deployment-history.tsx'
import { InForceSection } from './deployments/in-force.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Tabs } from '../web/ui/tabs.tsx'
import { Time } from '../web/text/times.tsx'
import { useDraftState } from '../web/ui/draft-state.ts'
import { useTitle } from '../web/ui/browser.ts'
import { VersionHistory } from './deployments/version-history.tsx'
import { ActionChip } from './action-chip.tsx'
import { PolicyEditor } from './policy-editor.tsx'
import { Blocked, PolicyLife } from './policy-life.tsx'
import { policyQuery, useAskedBy, usePolicyVersions } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/policies/$policyId')

export function PolicyPage() {
  const params = route.useParams()
  const { policyId } = params
  const { show = 'edit', ...search } = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const workspaceId = place.workspace.id
  // The address keeps the simulation while the part of the page changes. The tab keeps it until the person returns from
  // another page.
  const lastSimulation = useDraftState<string>(`simulation of ${place.environment.id} ${policyId}`, '')
  const simulation = search.simulation ?? (lastSimulation.value || undefined)
  useEffect(() => {
    if (search.simulation !== undefined && search.simulation !== lastSimulation.value)
      lastSimulation.set(search.simulation)
  })
  const { data, error, refetch } = useQuery(policyQuery(workspaceId, policyId))
  useTitle(data?.newest.name ?? 'Policy')
  const keptSearch = simulation === undefined ? {} : { simulation }
  const setShown = (chosen: typeof show) =>
    void navigate({ to: '.', search: chosen === 'edit' ? keptSearch : { ...keptSearch, show: chosen }, replace: true })
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  return (
    <div className="mx-auto w-full max-w-6xl px-4 pb-12 sm:px-5">
      <ItemHead
        kind="policy"
        id={data.policyId}
        name={data.newest.name}
        version={data.newest.version}
        archivedAt={data.archivedAt}
        damaged={data.newest.damaged === true}
        archive={() => api.archivePolicy({ params: { workspaceId, policyId } })}
        restore={() => api.restorePolicy({ params: { workspaceId, policyId } })}
      >
        <ActionChip action={data.newest.action} />
        {data.newest.name !== data.policyId && <code className="font-mono text-sm text-soft">{data.policyId}</code>}
      </ItemHead>
      <PolicyLife place={place} policy={data} simulationId={simulation} onSimulate={() => setShown('edit')} />
      <Tabs
        label="Parts of the policy"
        value={show}
        options={[
          ['edit', 'Condition'],
          ['versions', 'Versions'],
          ['deployments', 'Deployments'],
        ]}
        onChange={setShown}
      />
      {show === 'edit' && (
        <>
          <PolicyEditor
            key={data.newest.version}
            policy={data}
            place={place}
            simulationId={simulation}
            onSimulate={(id) =>
              void navigate({ to: '.', search: { simulation: id }, replace: true, resetScroll: false })
            }
          />
          <Blocked environmentId={place.environment.id} policyId={policyId} />
          <AskedLately environmentId={place.environment.id} policyId={policyId} />
        </>
      )}
      {show === 'versions' && <Versions policy={data} />}
      {show === 'deployments' && (
        <>
          <InForceSection
            workspaceId={workspaceId}
            item={{ kind: 'policy', id: policyId }}
            name={data.newest.name}
            newestVersion={data.newest.version}
            canDeploy={place.may('admin')}
            simulation={simulation === undefined ? undefined : { id: simulation, environment: place.environment }}
          />
          <DeploymentHistory environment={place.environment} item={{ kind: 'policy', id: policyId }} />
        </>
      )}
    </div>
  )
}

function Versions({ policy: { workspaceId, policyId, newest } }: { policy: Policy }) {
  const search = route.useSearch()
  const navigate = useNavigate()
  const versions = usePolicyVersions(workspaceId, policyId)
  const { to = Number(newest.version), from = Math.max(1, to - 1) } = search
  return (
    <VersionHistory
      list={versions}
      from={String(from)}
      to={String(to)}
      onCompare={(change) => void navigate({ to: '.', search: { ...search, from, to, ...change }, replace: true })}
      queryKey={['policies', workspaceId, policyId]}
      readDiff={(query, signal) => api.diffPolicyVersions({ params: { workspaceId, policyId }, query }, { signal })}
    />
  )
}

/** Recent requests of the policy, with people's decisions. */
function AskedLately({ environmentId, policyId }: { environmentId: string; policyId: string }) {
  const params = route.useParams()
  const { data } = useAskedBy(environmentId, policyId)
  return (
    <Section title="What it asked lately">
      {data?.items.length === 0 && <Nothing>It has not asked a person in this environment.</Nothing>}
      <ul>
        {data?.items.map((approval) => (
          <li
            key={approval.id}
            className="relative flex items-center gap-3 border-b border-line py-1.5 text-sm last:border-0 hover:bg-hover"
          >
            <span className="w-24">
              <ApprovalStatusChip status={approval.status} />
            </span>
            <Link
              to="/w/$workspace/$environment/approvals/$approvalId"
              params={{ workspace: params.workspace, environment: params.environment, approvalId: approval.id }}
              className="min-w-0 flex-1 truncate font-mono after:absolute after:inset-0"
            >
              <bdi>{approval.toolName}</bdi>
            </Link>
            <span className="flex max-w-40 text-soft">
              <Requester of={approval} />
            </span>
            <span className="text-soft">
              <Time at={approval.createdAt} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
