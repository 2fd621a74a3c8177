import { DAMAGED_VERSION } from './version-history.tsx'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { Confirm, NameDialog } from '../../web/ui/form-dialog.tsx'
import { Button } from '../../web/ui/button.tsx'
import { Chip } from '../../web/ui/chip.tsx'
import { DamagedChip, State } from '../../web/ui/state.tsx'
import { MenuItem, Popover } from '../../web/ui/overlay.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { useInForce } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment')

interface Props {
  kind: 'prompt' | 'policy'
  id: string
  name: string
  /** The newest version. After a rollback, another one is in force. */
  version: string
  archivedAt: string | null
  damaged: boolean
  /** Content beside the name. */
  children: ReactNode
  /** Renames the item. Absent if each version has its own name. */
  rename?: (name: string) => Promise<unknown>
  archive: () => Promise<unknown>
  restore: () => Promise<unknown>
}

/** The head of a prompt's or policy's page, with acts on the item as a whole. */
export function ItemHead({ kind, id, name, version, archivedAt, damaged, children, rename, archive, restore }: Props) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const places = useInForce(place.workspace.id, { kind, id })
  const inForce = places.find(({ environment }) => environment.id === place.environment.id)?.deployment?.version ?? null
  const [open, setOpen] = useState<'rename' | 'archive' | null>(null)
  const close = () => setOpen(null)
  const list = kind === 'prompt' ? 'prompts' : 'policies'
  const restoring = useMutation({ mutationFn: restore })
  return (
    <header className="pt-5">
      <Link to={`/w/$workspace/$environment/${list}`} params={params} className="link text-sm">
        {kind === 'prompt' ? '‹ Prompts' : '‹ Policies'}
      </Link>
      <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1">
        <h1 className="min-w-0 text-xl font-semibold">
          <bdi>{name}</bdi>
        </h1>
        {archivedAt !== null && <State is="ARCHIVED" />}
        {inForce !== null && inForce !== version && (
          <>
            <Chip>version {inForce} in force here</Chip>
            <span className="text-sm text-soft">newest:</span>
          </>
        )}
        <Chip>version {version}</Chip>
        {damaged && <DamagedChip note={DAMAGED_VERSION} />}
        {children}
        {place.may('admin') &&
          (archivedAt === null ? (
            <Popover label="More" className="ml-auto" panelClassName="w-56 p-1">
              {rename && <MenuItem onClick={() => setOpen('rename')}>Rename…</MenuItem>}
              <MenuItem onClick={() => setOpen('archive')}>Archive…</MenuItem>
            </Popover>
          ) : (
            <Button className="ml-auto" busy={restoring.isPending} onClick={() => restoring.mutate()}>
              Restore
            </Button>
          ))}
        <Refused error={restoring.error} className="w-full" />
      </div>
      {open === 'rename' && rename && (
        <NameDialog
          title={`Rename this ${kind}`}
          act="Rename"
          hint="Agents load it by its name, so one that is in force keeps its name."
          name={name}
          save={rename}
          onClose={close}
        />
      )}
      {open === 'archive' && (
        <Confirm title={`Archive ${name}?`} act="Archive" run={archive} onClose={close}>
          It leaves the list and cannot be deployed. Its versions stay, and it can be restored. One that is in force
          somewhere is refused.
        </Confirm>
      )}
    </header>
  )
}
