import type { ClientStanding, ConfigurationClient } from '@tacho/contract/policies/configuration-client.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/engine/words.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { EraseDialog } from '../../data/erase-dialog.tsx'
import { Button } from '../../web/ui/button.tsx'
import { Chip, type Tone } from '../../web/ui/chip.tsx'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { Choice } from '../../web/ui/filters.tsx'
import { number } from '../../web/text/format.ts'
import { More } from '../../web/ui/more.tsx'
import { usePages } from '../../web/pages.ts'
import { Refused } from '../../web/ui/refused.tsx'
import { Nothing } from '../../web/ui/section.tsx'
import { Time } from '../../web/text/time.tsx'

const placeRoute = getRouteApi('/w/$workspace/$environment')
const CLIENTS_REFRESH_MS = 10_000
const PAGE = 50

const STANDINGS: Record<ClientStanding, { word: string; tone: Tone }> = {
  CURRENT: { word: 'Has it', tone: 'green' },
  UPDATING: { word: 'Updating', tone: 'plain' },
  BEHIND: { word: 'Behind', tone: 'red' },
  SILENT: { word: 'Silent', tone: 'amber' },
}

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
    cell: ({ standing }) => <Chip tone={STANDINGS[standing].tone}>{STANDINGS[standing].word}</Chip>,
  },
  {
    head: 'Revision',
    wide: true,
    cell: ({ revision }) => <code className="font-mono text-xs">{revision.slice(0, 12)}</code>,
  },
  { head: 'Last seen', right: true, cell: ({ lastSeenAt }) => <Time at={lastSeenAt} /> },
]

/** How many clients of an environment have its revision; on request, which. */
export function Clients({ environmentId, name }: { environmentId: string; name: string }) {
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
        {behind > 0 && <Chip tone="red">{number(behind)} behind</Chip>}
        {silent > 0 && <Chip tone="amber">{number(silent)} silent</Chip>}
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
  // A key sends events under ids of its own choice.
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
        options={CLIENT_STANDINGS.map((one) => [one, STANDINGS[one].word])}
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
