import type { Deployment } from '@tacho/contract/policies/deployment.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Author } from '../../web/ui/author.tsx'
import { api } from '../../web/api.ts'
import { environmentsQuery } from '../../web/queries.ts'
import { Copy } from '../../web/ui/copy.tsx'
import { Refused } from '../../web/ui/refused.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { PagePending, Skeleton, isBlocking, Trouble } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/time.tsx'
import { useTitle } from '../../web/ui/title.ts'
import { Clients } from './clients.tsx'
import { DeploymentHistory } from './deployment-history.tsx'

const route = getRouteApi('/w/$workspace/$environment/rollout')
const REFRESH_MS = 5_000
const SHOWN = 200

/** What is in force in each environment of the workspace, and what changed here. */
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
      <div className="grid grid-cols-1 gap-x-10 lg:grid-cols-2">
        {environments.data.map((environment) => (
          <InForce key={environment.id} environment={environment} />
        ))}
      </div>
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
