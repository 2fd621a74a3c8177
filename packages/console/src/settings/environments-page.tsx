import type { Environment } from '@tacho/contract/operator/environment.ts'
import type { Workspace } from '@tacho/contract/operator/workspace.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../api.ts'
import { environmentsQuery, meQuery, workspacesQuery } from '../queries.ts'
import { Button } from '../ui/button.tsx'
import { Chip } from '../ui/chip.tsx'
import { DataTable, ROW_LINK, type Column } from '../ui/data-table.tsx'
import { useKeys } from '../ui/keys.ts'
import { Section } from '../ui/section.tsx'
import { Empty } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { Listed } from './listed.tsx'
import { NameDialog } from './name-dialog.tsx'
import { SectionPage } from './section-page.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/environments')

export function EnvironmentsPage() {
  const names = route.useParams()
  const { place } = route.useRouteContext()
  const workspaceId = place.workspace.id
  const navigate = useNavigate()
  const cache = useQueryClient()
  const [open, setOpen] = useState<'environment' | 'workspace' | null>(null)
  const close = () => setOpen(null)
  const { data: me } = useQuery(meQuery)
  const environments = useQuery(environmentsQuery(workspaceId))
  const workspaces = useQuery(workspacesQuery)
  const canChange = place.may('admin')
  useKeys(canChange ? { n: () => setOpen('environment') } : {})

  const columns: Column<Environment>[] = [
    {
      head: 'Environment',
      main: true,
      cell: ({ name }) => (
        <span className="flex items-center gap-2">
          <Link
            to="/w/$workspace/$environment"
            params={{ ...names, environment: name }}
            className={`${ROW_LINK} min-w-0`}
          >
            <bdi>{name}</bdi>
          </Link>
          {name === place.environment.name && <Chip>this one</Chip>}
        </span>
      ),
    },
    { head: 'Id', wide: true, cell: ({ id }) => <code className="font-mono text-xs text-soft">{id}</code> },
    { head: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ]
  const workspaceColumns: Column<Workspace>[] = [
    {
      head: 'Workspace',
      main: true,
      cell: ({ name }) => (
        <span className="flex items-center gap-2">
          <bdi className="min-w-0 truncate font-medium">{name}</bdi>
          {name === place.workspace.name && <Chip>this one</Chip>}
        </span>
      ),
    },
    { head: 'Id', wide: true, cell: ({ id }) => <code className="font-mono text-xs text-soft">{id}</code> },
    { head: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ]
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
      <Listed list={environments} empty={<Empty title="No environment yet">An admin can create one.</Empty>}>
        {(items) => <DataTable label="Environments" columns={columns} items={items} keyOf={({ id }) => id} />}
      </Listed>
      <Section
        title="Workspaces"
        className="mt-8"
        note={me?.installation === true && <Button onClick={() => setOpen('workspace')}>New workspace</Button>}
      >
        <Listed list={workspaces} empty={<Empty title="No workspace" />}>
          {(items) => <DataTable label="Workspaces" columns={workspaceColumns} items={items} keyOf={({ id }) => id} />}
        </Listed>
      </Section>
      {open === 'environment' && (
        <NameDialog
          title="New environment"
          hint="Such as production. The header marks production by colour."
          create={async (name) => {
            await api.createEnvironment({ params: { workspaceId }, body: { name } })
            await cache.invalidateQueries({ queryKey: ['environments', workspaceId] })
          }}
          onClose={close}
        />
      )}
      {open === 'workspace' && (
        <NameDialog
          title="New workspace"
          hint="A customer, team or product. It starts with the environment “development”."
          create={async (name) => {
            const { id } = await api.createWorkspace({ body: { name } })
            await cache.invalidateQueries({ queryKey: workspacesQuery.queryKey })
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
