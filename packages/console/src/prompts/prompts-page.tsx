import type { Prompt } from '@tacho/contract/operator/prompt.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { InForceChips } from '../deployments/in-force-chips.tsx'
import { useDeployments } from '../deployments/queries.ts'
import { LinkButton } from '../ui/button.tsx'
import { DataTable, ROW_LINK, type Column } from '../ui/data-table.tsx'
import { bytes } from '../ui/format.ts'
import { useListKeys } from '../ui/list-keys.ts'
import { Empty, PagePending, Trouble } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { useTitle } from '../ui/title.ts'
import { promptsQuery } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/prompts')

export function PromptsPage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { data, error, refetch } = useQuery(promptsQuery(place.workspace.id))
  const deployed = useDeployments(place.workspace.id)
  const canWrite = place.may('admin')
  useTitle('Prompts')
  const current = useListKeys({
    items: data ?? [],
    open: ({ promptId }) =>
      void navigate({ to: '/w/$workspace/$environment/prompts/$promptId', params: { ...params, promptId } }),
    reset: null,
    ...(canWrite && {
      more: { n: () => void navigate({ to: '/w/$workspace/$environment/new-prompt', params }) },
    }),
  })
  const columns: Column<Prompt>[] = [
    {
      head: 'Prompt',
      main: true,
      cell: ({ promptId, name, newest }) => (
        <>
          <Link to="/w/$workspace/$environment/prompts/$promptId" params={{ ...params, promptId }} className={ROW_LINK}>
            <bdi>{name}</bdi>
          </Link>
          <span dir="auto" className="block truncate text-xs text-soft">
            {newest.note ?? ''}
          </span>
        </>
      ),
    },
    {
      head: 'In force',
      cell: ({ promptId, newest }) => (
        <InForceChips deployed={deployed} item={{ kind: 'prompt', id: promptId }} newestVersion={newest.version} />
      ),
    },
    { head: 'Newest', right: true, wide: true, cell: ({ newest }) => `version ${newest.version}` },
    { head: 'Size', right: true, wide: true, cell: ({ newest }) => bytes(newest.contentBytes) },
    { head: 'Author', wide: true, cell: ({ newest }) => <bdi>{newest.author}</bdi> },
    { head: 'Written', wide: true, cell: ({ newest }) => <Time at={newest.createdAt} /> },
  ]
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex items-center justify-between gap-3 pt-5 pb-3">
        <h1 className="text-xl font-semibold">Prompts</h1>
        {canWrite && (
          <LinkButton to="/w/$workspace/$environment/new-prompt" params={params}>
            New prompt
          </LinkButton>
        )}
      </div>
      {error ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : !data ? (
        <PagePending />
      ) : data.length === 0 ? (
        <Empty title="No prompts yet">
          A prompt kept here can change without a release of the agent: agents read the version that is in force in
          their environment. {!canWrite && 'An admin of this workspace can write one.'}
        </Empty>
      ) : (
        <DataTable
          label="Prompts"
          columns={columns}
          items={data}
          keyOf={({ promptId }) => promptId}
          current={current}
        />
      )}
    </div>
  )
}
