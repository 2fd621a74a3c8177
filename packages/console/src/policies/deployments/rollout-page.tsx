import { DAMAGED_DEPLOYMENT } from './queries.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Deployment, ClientStanding, ConfigurationClient } from '@tacho/contract/policies/deployment.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/engine/words.ts'
import { Author } from '../../web/ui/chip.tsx'
import { DamagedChip, State } from '../../web/ui/state.tsx'
import { stateWord } from '../../web/text/state-styles.ts'
import { api } from '../../web/api.ts'
import { environmentsQuery, usePages } from '../../web/queries.ts'
import { Copy } from '../../web/ui/copy.tsx'
import { Refused, PagePending, Skeleton, isBlocking, Trouble } from '../../web/ui/states.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { Time } from '../../web/text/times.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { ToolLabelList } from './tool-labels.tsx'
import { ValueFlow } from './value-flow.tsx'
import { Stops } from './stop-notes.tsx'
import { DeploymentHistory } from './deployment-history.tsx'
import { EraseDialog } from '../../data/erase-dialog.tsx'
import { Button, More } from '../../web/ui/button.tsx'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { Choice } from '../../web/ui/filters.tsx'
import { number } from '../../web/text/format.ts'

const route = getRouteApi('/w/$workspace/$environment/rollout')
const REFRESH_MS = 5_000
const SHOWN = 200

/** Deployed versions in each environment of the workspace, and the deployments in the page's environment. */
export function RolloutPage() {
  const { place } = route.useRouteContext()
  const environments = useQuery(environmentsQuery(place.workspace.id))
  useTitle('Rollout')
  if (isBlocking(environments.error, environments.data))
    return <Trouble error={environments.error} retry={() => void environments.refetch()} />
  if (!environments.data) return <PagePending />
  return (
    <div className="mx-auto w-full max-w-6xl px-4 pb-12 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Rollout</h1>
      <Stops place={place} />
      <div className="grid grid-cols-1 gap-x-10 lg:grid-cols-2">
        {environments.data.map((environment) => (
          <InForce key={environment.id} environment={environment} />
        ))}
      </div>
      <ToolLabelList environment={place.environment} canEdit={place.may('admin')} />
      <ValueFlow environment={place.environment} canAsk={place.may('admin')} />
      <DeploymentHistory environment={place.environment} />
    </div>
  )
}

function InForce({ environment: { id, name } }: { environment: { id: string; name: string } }) {
  const { data, error } = useQuery({
    queryKey: ['deployments', id, 'page'],
    queryFn: ({ signal }) =>
      api.listDeployments({ params: { environmentId: id }, query: { limit: SHOWN } }, { signal }),
    refetchInterval: REFRESH_MS,
  })
  return (
    <Section
      title={name}
      note={
        data && (
          <span className="flex items-center gap-1">
            revision <code className="font-mono">{data.revision.slice(0, 12)}</code>
            <Copy text={data.revision} />
          </span>
        )
      }
    >
      <Refused error={error} />
      {data?.damaged && (
        <p className="text-sm text-red">
          ! The configuration in force is damaged: agents keep what they have. Deploy something again.
        </p>
      )}
      <Clients environmentId={id} name={name} />
      {!data && !error && <Skeleton className="h-16" />}
      {data?.items.length === 0 && <Nothing>No prompt or policy is deployed here.</Nothing>}
      <ul>
        {data?.items.map((deployment) => (
          <li
            key={`${deployment.kind} ${deployment.id}`}
            className="relative flex items-center gap-3 border-b border-line py-1.5 text-sm last:border-0 hover:bg-hover"
          >
            <span className="w-14 shrink-0 text-soft">{deployment.kind === 'policy' ? 'Policy' : 'Prompt'}</span>
            <ItemLink deployment={deployment} />
            {deployment.damaged && <DamagedChip note={DAMAGED_DEPLOYMENT} />}
            <span className="tabular whitespace-nowrap">version {deployment.version}</span>
            <span className="max-w-28 truncate text-soft">
              <Author name={deployment.deployedBy} importedAt={deployment.importedAt} />
            </span>
            <span className="text-right whitespace-nowrap text-soft">
              <Time at={deployment.deployedAt} />
            </span>
          </li>
        ))}
      </ul>
      {data?.nextCursor && <Nothing>More are deployed than this page shows.</Nothing>}
    </Section>
  )
}

function ItemLink({ deployment: { kind, id, name } }: { deployment: Deployment }) {
  const params = route.useParams()
  const className = 'min-w-0 flex-1 truncate font-medium after:absolute after:inset-0'
  const search = { show: 'deployments' } as const
  return kind === 'policy' ? (
    <Link
      to="/w/$workspace/$environment/policies/$policyId"
      params={{ ...params, policyId: id }}
      search={search}
      className={className}
    >
      <bdi>{name}</bdi>
    </Link>
  ) : (
    <Link
      to="/w/$workspace/$environment/prompts/$promptId"
      params={{ ...params, promptId: id }}
      search={search}
      className={className}
    >
      <bdi>{name}</bdi>
    </Link>
  )
}

const placeRoute = getRouteApi('/w/$workspace/$environment')
const CLIENTS_REFRESH_MS = 10_000
const PAGE = 50

const COLUMNS: readonly Column<ConfigurationClient>[] = [
  {
    head: 'Client',
    main: true,
    cell: ({ clientId, identifiedBy }) => (
      <span className="block truncate" title={clientId}>
        {identifiedBy === 'key' && <span className="text-soft">key </span>}
        <bdi>{clientId}</bdi>
      </span>
    ),
  },
  {
    head: 'Standing',
    cell: ({ standing }) => <State is={standing} />,
  },
  {
    head: 'Revision',
    wide: true,
    cell: ({ revision }) => <code className="font-mono text-xs">{revision.slice(0, 12)}</code>,
  },
  { head: 'Last seen', right: true, cell: ({ lastSeenAt }) => <Time at={lastSeenAt} /> },
]

/** Counts an environment's clients by whether they have its current revision. Lists them when opened. */
function Clients({ environmentId, name }: { environmentId: string; name: string }) {
  const [isOpen, setOpen] = useState(false)
  const { data, error } = useQuery({
    queryKey: ['configuration clients', environmentId, 'counts'],
    queryFn: ({ signal }) =>
      api.listConfigurationClients({ params: { environmentId }, query: { limit: 1 } }, { signal }),
    refetchInterval: CLIENTS_REFRESH_MS,
  })
  if (error) return <Refused error={error} />
  if (!data) return null
  const { current, updating, behind, silent } = data.counts
  const asking = current + updating + behind
  if (asking === 0) return <Nothing>No client has asked for this configuration yet.</Nothing>
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 border-b border-line pb-1.5 text-sm">
        <span>
          {number(current)} of {number(asking)} {asking === 1 ? 'client has it' : 'clients have it'}
        </span>
        {behind > 0 && <State is="BEHIND">{number(behind)} behind</State>}
        {silent > 0 && <State is="SILENT">{number(silent)} silent</State>}
        <Button look="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide clients' : 'Show clients'}
        </Button>
      </div>
      {isOpen && <ClientList environmentId={environmentId} name={name} />}
    </>
  )
}

function ClientList({ environmentId, name }: { environmentId: string; name: string }) {
  const { place } = placeRoute.useRouteContext()
  const [erased, setErased] = useState<string | null>(null)
  const [standing, setStanding] = useState<ClientStanding>()
  const list = usePages<ConfigurationClient>({
    queryKey: ['configuration clients', environmentId, 'list', standing],
    read: (cursor, signal) =>
      api.listConfigurationClients({ params: { environmentId }, query: { standing, limit: PAGE, cursor } }, { signal }),
    refreshMs: CLIENTS_REFRESH_MS,
  })
  // Only for a row with a client's own id: a key's row does not tell under which client ids the key sent events.
  const erase: Column<ConfigurationClient> = {
    head: 'Actions',
    right: true,
    wide: true,
    cell: ({ clientId, identifiedBy }) =>
      identifiedBy === 'client' && (
        <Button look="quiet" aria-label={`Erase ${clientId}`} onClick={() => setErased(clientId)}>
          Erase…
        </Button>
      ),
  }
  return (
    <div className="py-2">
      {erased !== null && (
        <EraseDialog place={place} subject={{ kind: 'client', id: erased }} onClose={() => setErased(null)} />
      )}
      <Choice
        label={`Standing in ${name}`}
        all="Any standing"
        value={standing}
        options={CLIENT_STANDINGS.map((one) => [one, stateWord(one)])}
        onChange={(chosen) => setStanding(CLIENT_STANDINGS.find((one) => one === chosen))}
      />
      <Refused error={list.error} />
      {list.data && list.items.length === 0 && <Nothing>None of these.</Nothing>}
      {list.items.length > 0 && (
        <DataTable
          label={`Clients of ${name}`}
          columns={place.may('admin') && place.environment.id === environmentId ? [...COLUMNS, erase] : COLUMNS}
          items={list.items}
          keyOf={({ identifiedBy, clientId }) => `${identifiedBy} ${clientId}`}
        />
      )}
      <More list={list} label="Show more clients" />
    </div>
  )
}
