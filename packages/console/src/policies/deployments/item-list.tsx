import type { ReactNode } from 'react'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Button, LinkButton } from '../../web/ui/button.tsx'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { useListKeys } from '../../web/ui/keys.ts'
import { Empty, PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { Chip } from '../../web/ui/chip.tsx'
import { State } from '../../web/ui/state.tsx'
import { type StateName } from '../../web/text/state-styles.ts'
import { inForce, type Deployed, type Item } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment')

interface ItemListProps<Item> {
  title: 'Prompts' | 'Policies'
  list: { data: readonly Item[] | undefined; error: unknown; refetch: () => Promise<unknown> }
  columns: readonly Column<Item>[]
  keyOf: (item: Item) => string
  open: (item: Item) => void
  /** A sentence about the purpose of a prompt or policy. */
  empty: string
  hasArchived: boolean
  onArchived: (shown: boolean) => void
  /** A link to a related list, shown beside the title. */
  beside?: ReactNode
}

/** The page that lists prompts or policies. */
export function ItemList<Item>(props: ItemListProps<Item>) {
  const { title, list, columns, keyOf, open, empty, hasArchived, onArchived, beside } = props
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { data, error, refetch } = list
  const canWrite = place.may('admin')
  const [noun, to] =
    title === 'Prompts'
      ? (['prompt', '/w/$workspace/$environment/new-prompt'] as const)
      : (['policy', '/w/$workspace/$environment/new-policy'] as const)
  useTitle(title)
  const current = useListKeys({
    items: data ?? [],
    keyOf,
    open,
    reset: null,
    ...(canWrite && { more: { n: () => void navigate({ to, params }) } }),
  })
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex flex-wrap items-center justify-between gap-3 pt-5 pb-3">
        <h1 className="text-xl font-semibold">{title}</h1>
        <div className="flex flex-wrap items-center gap-2">
          {beside}
          <Button look="quiet" aria-pressed={hasArchived} onClick={() => onArchived(!hasArchived)}>
            {hasArchived ? 'Hide archived' : 'Show archived'}
          </Button>
          {canWrite && (
            <LinkButton to={to} params={params}>
              New {noun}
            </LinkButton>
          )}
        </div>
      </div>
      {isBlocking(error, data) ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : !data ? (
        <PagePending />
      ) : data.length === 0 ? (
        <Empty title={`No ${title.toLowerCase()} yet`}>
          {empty} {!canWrite && 'An admin of this workspace can write one.'}
        </Empty>
      ) : (
        <DataTable label={title} columns={columns} items={data} keyOf={keyOf} current={current} />
      )}
    </div>
  )
}

interface InForceChipsProps {
  deployed: readonly Deployed[]
  item: Item
  newestVersion: string
}

/** The environments in which an item is in force, with its version. An older version is highlighted. */
export function InForceChips({ deployed, item, newestVersion }: InForceChipsProps) {
  const places = inForce(deployed, item).filter(({ deployment }) => deployment !== null)
  return (
    <span className="flex flex-wrap gap-1">
      {places.map(({ environment, deployment }) => (
        <VersionChip
          key={environment.id}
          state={deployment?.damaged ? 'DAMAGED' : deployment?.version === newestVersion ? null : 'OLDER'}
        >
          {environment.name}: {deployment?.damaged ? 'damaged' : deployment?.version}
          {deployment?.share && `, ${deployment.share.percent} %: ${deployment.share.version}`}
        </VersionChip>
      ))}
      {places.length === 0 && <span className="text-soft">nowhere</span>}
    </span>
  )
}

function VersionChip({ state, children }: { state: StateName | null; children: ReactNode }) {
  return state === null ? <Chip>{children}</Chip> : <State is={state}>{children}</State>
}
