import { DAMAGED_VERSION } from '../deployments/version-history.tsx'
import type { Prompt } from '@tacho/contract/policies/prompt.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Author, Chip } from '../../web/ui/chip.tsx'
import { InForceChips, ItemList } from '../deployments/item-list.tsx'
import { useDeployments } from '../deployments/queries.ts'
import { ROW_LINK, type Column } from '../../web/ui/data-table.tsx'
import { bytes } from '../../web/text/format.ts'
import { Time } from '../../web/text/times.tsx'
import { promptsQuery } from '../queries.ts'

const route = getRouteApi('/w/$workspace/$environment/prompts')

export function PromptsPage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [hasArchived, setArchived] = useState(false)
  const list = useQuery(promptsQuery(place.workspace.id, hasArchived))
  const deployed = useDeployments(place.workspace.id)
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
            {newest.damaged ? DAMAGED_VERSION : (newest.note ?? '')}
          </span>
        </>
      ),
    },
    {
      head: 'In force',
      cell: ({ promptId, newest, archivedAt }) =>
        archivedAt === null ? (
          <InForceChips deployed={deployed} item={{ kind: 'prompt', id: promptId }} newestVersion={newest.version} />
        ) : (
          <Chip tone="amber">Archived</Chip>
        ),
    },
    { head: 'Newest', right: true, wide: true, cell: ({ newest }) => `version ${newest.version}` },
    { head: 'Size', right: true, wide: true, cell: ({ newest }) => bytes(newest.contentBytes) },
    {
      head: 'Author',
      wide: true,
      cell: ({ newest }) => <Author name={newest.author} importedAt={newest.importedAt} />,
    },
    { head: 'Written', wide: true, cell: ({ newest }) => <Time at={newest.createdAt} /> },
  ]
  return (
    <ItemList
      title="Prompts"
      list={list}
      columns={columns}
      keyOf={({ promptId }) => promptId}
      open={({ promptId }) =>
        void navigate({ to: '/w/$workspace/$environment/prompts/$promptId', params: { ...params, promptId } })
      }
      empty="A prompt kept here can change without a release of the agent: agents read the version that is in force in their environment."
      hasArchived={hasArchived}
      onArchived={setArchived}
    />
  )
}
