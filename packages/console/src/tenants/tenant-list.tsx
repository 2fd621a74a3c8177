/** A list of workspaces or environments, which can be renamed, archived and restored. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { Chip } from '../web/ui/chip.tsx'
import { State } from '../web/ui/state.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { Refused, Empty } from '../web/ui/states.tsx'
import { RowMenu } from '../web/ui/overlay.tsx'
import { Time } from '../web/text/times.tsx'
import { Confirm, NameDialog } from '../web/ui/form-dialog.tsx'

interface Tenant {
  id: string
  name: string
  createdAt: string
  archivedAt: string | null
  /** When it will be deleted with all its data; null: not requested. Workspaces are not deleted. */
  deleteAt?: string | null
}

interface Props {
  kind: 'workspace' | 'environment'
  list: { data: readonly Tenant[] | undefined; error: unknown; refetch: () => Promise<unknown> }
  /** Id of the workspace or environment to which the page belongs. */
  currentId: string
  canChange: (tenant: Tenant) => boolean
  /** Renders a link to one that is not archived. */
  link: (tenant: Tenant) => ReactNode
  rename: (id: string, name: string) => Promise<unknown>
  archive: (id: string) => Promise<unknown>
  restore: (id: string) => Promise<unknown>
  /** Requests the deletion of an archived one; absent: the person has no right to. */
  remove?: (id: string) => Promise<unknown>
}

type Open = { is: 'rename' | 'archive' | 'remove'; tenant: Tenant }

export function Tenants(props: Props) {
  const { kind, list, currentId, canChange, link, rename, archive, restore, remove } = props
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const restoring = useMutation({ mutationFn: restore })
  const columns: Column<Tenant>[] = [
    {
      head: kind === 'workspace' ? 'Workspace' : 'Environment',
      main: true,
      cell: (tenant) => (
        <span className="flex items-center gap-2">
          {tenant.archivedAt === null ? link(tenant) : <bdi className="min-w-0 truncate text-soft">{tenant.name}</bdi>}
          {tenant.id === currentId && <Chip>this one</Chip>}
          {tenant.archivedAt !== null && <Archived tenant={tenant} />}
        </span>
      ),
    },
    { head: 'Id', wide: true, cell: ({ id }) => <code className="font-mono text-xs text-soft">{id}</code> },
    { head: 'Created', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  ]
  if (list.data?.some(canChange)) {
    columns.push({
      head: 'Actions',
      right: true,
      cell: (tenant) =>
        canChange(tenant) && (
          <RowMenu
            name={tenant.name}
            acts={[
              { word: 'Rename…', act: () => setOpen({ is: 'rename', tenant }) },
              tenant.archivedAt === null
                ? { word: 'Archive…', act: () => setOpen({ is: 'archive', tenant }) }
                : { word: 'Restore', act: () => restoring.mutate(tenant.id) },
              ...(remove && tenant.archivedAt !== null && tenant.deleteAt === null
                ? [{ word: 'Delete…', act: () => setOpen({ is: 'remove', tenant }) }]
                : []),
            ]}
          />
        ),
    })
  }
  return (
    <>
      <Refused error={restoring.error} />
      <ListedTable
        label={kind === 'workspace' ? 'Workspaces' : 'Environments'}
        list={list}
        columns={columns}
        empty={<Empty title={`No ${kind} yet`}>An admin can create one.</Empty>}
      />
      {open?.is === 'rename' && (
        <NameDialog
          title={`Rename this ${kind}`}
          act="Rename"
          hint="Links and commands that have the old name stop working. Keys and ids stay."
          name={open.tenant.name}
          save={(name) => rename(open.tenant.id, name)}
          onClose={close}
        />
      )}
      {open?.is === 'archive' && (
        <Confirm
          title={`Archive ${open.tenant.name}?`}
          act="Archive"
          run={() => archive(open.tenant.id)}
          onClose={close}
        >
          It leaves every list, and its API keys are refused within 5 seconds: agents stop recording. Nothing is
          deleted. It can be restored here.
        </Confirm>
      )}
      {open?.is === 'remove' && remove && (
        <Confirm
          title={`Delete ${open.tenant.name}?`}
          act={`Delete in ${LIMITS.environmentDeletionDays} days`}
          run={() => remove(open.tenant.id)}
          onClose={close}
        >
          In {LIMITS.environmentDeletionDays} days all its runs, approvals, issues and keys are deleted forever. Until
          then, restoring it cancels this.
        </Confirm>
      )}
    </>
  )
}

function Archived({ tenant: { deleteAt = null } }: { tenant: Tenant }) {
  if (deleteAt === null) return <State is="ARCHIVED" />
  return (
    <>
      <State is="TO_BE_DELETED" />
      <span className="text-soft">
        <Time at={deleteAt} />
      </span>
    </>
  )
}
