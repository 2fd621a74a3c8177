import { allItems } from '@tacho/client/items.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { meQuery, renewStale } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { ROW_LINK } from '../web/ui/data-table.tsx'
import { useKeys } from '../web/ui/keys.ts'
import { Section, SectionPage } from '../web/ui/section.tsx'
import { NameDialog } from '../web/ui/form-dialog.tsx'
import { StalledRuleSection } from './stalled-rule.tsx'
import { Tenants } from './tenant-list.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/environments')
/** Includes archived ones, because this page restores them. */
const ALL = { limit: 200, archived: 'true' } as const

export function EnvironmentsPage() {
  const names = route.useParams()
  const { place } = route.useRouteContext()
  const workspaceId = place.workspace.id
  const navigate = useNavigate()
  const cache = useQueryClient()
  const [open, setOpen] = useState<'environment' | 'workspace' | null>(null)
  const close = () => setOpen(null)
  const { data: me } = useQuery(meQuery)
  const environments = useQuery({
    queryKey: ['environments', workspaceId, 'all'],
    queryFn: () => allItems(api.listEnvironments, { params: { workspaceId }, query: ALL }),
  })
  const workspaces = useQuery({
    queryKey: ['workspaces', 'all'],
    queryFn: () => allItems(api.listWorkspaces, { query: ALL }),
  })
  const canChange = place.may('admin')
  useKeys(canChange ? { n: () => setOpen('environment') } : {})
  const ownsWorkspace = (id: string) =>
    me?.everywhere === 'owner' || me?.workspaces.some((one) => one.id === id && one.role === 'owner') === true
  /** Wait for this before the address changes, because the new place is looked up in the cache. */
  const renew = () => renewStale(cache)
  /** After a rename, the page's address must contain the new name. */
  const goTo = (to: { workspace?: string; environment?: string }) =>
    navigate({ to: '/w/$workspace/$environment/settings/environments', params: { ...names, ...to }, replace: true })
  const leave = () => navigate({ to: '/', search: {} })
  return (
    <SectionPage
      title="Environments"
      note={`Each environment of ${place.workspace.name} has its own runs, keys, approvals and deployments. Prompts and policies belong to the workspace.`}
      act={
        canChange && (
          <Button look="accent" onClick={() => setOpen('environment')}>
            New environment
          </Button>
        )
      }
    >
      <Tenants
        kind="environment"
        list={environments}
        currentId={place.environment.id}
        canChange={() => canChange}
        link={({ name }) => (
          <Link
            to="/w/$workspace/$environment"
            params={{ ...names, environment: name }}
            className={`${ROW_LINK} min-w-0`}
          >
            <bdi>{name}</bdi>
          </Link>
        )}
        rename={async (environmentId, name) => {
          await api.renameEnvironment({ params: { environmentId }, body: { name } })
          await renew()
          if (environmentId === place.environment.id) await goTo({ environment: name })
        }}
        archive={async (environmentId) => {
          await api.archiveEnvironment({ params: { environmentId } })
          await renew()
          if (environmentId === place.environment.id) await leave()
        }}
        restore={(environmentId) => api.restoreEnvironment({ params: { environmentId } })}
        {...(place.may('owner') && {
          remove: (environmentId: string) => api.deleteEnvironment({ params: { environmentId } }),
        })}
      />
      <StalledRuleSection place={place} />
      <Section
        title="Workspaces"
        className="mt-8"
        note={me?.installation === true && <Button onClick={() => setOpen('workspace')}>New workspace</Button>}
      >
        <Tenants
          kind="workspace"
          list={workspaces}
          currentId={workspaceId}
          canChange={({ id }) => ownsWorkspace(id)}
          link={({ name }) => <bdi className="min-w-0 truncate font-medium">{name}</bdi>}
          rename={async (id, name) => {
            await api.renameWorkspace({ params: { workspaceId: id }, body: { name } })
            await renew()
            if (id === workspaceId) await goTo({ workspace: name })
          }}
          archive={async (id) => {
            await api.archiveWorkspace({ params: { workspaceId: id } })
            await renew()
            if (id === workspaceId) await leave()
          }}
          restore={(id) => api.restoreWorkspace({ params: { workspaceId: id } })}
        />
      </Section>
      {open === 'environment' && (
        <NameDialog
          title="New environment"
          hint="Such as production. The header marks production by colour."
          save={(name) => api.createEnvironment({ params: { workspaceId }, body: { name } })}
          onClose={close}
        />
      )}
      {open === 'workspace' && (
        <NameDialog
          title="New workspace"
          hint="A customer, team or product. It starts with the environment “development”."
          save={async (name) => {
            const { id } = await api.createWorkspace({ body: { name } })
            await renew()
            await api.createEnvironment({ params: { workspaceId: id }, body: { name: 'development' } })
            await navigate({
              to: '/w/$workspace/$environment',
              params: { workspace: name, environment: 'development' },
            })
          }}
          onClose={close}
        />
      )}
    </SectionPage>
  )
}
