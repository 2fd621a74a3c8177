/** The page for storage, search, export and erasure of an environment's data. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useLocation, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Erasure, ErasureStatus } from '@tacho/contract/data/erasure.ts'
import { SearchSwitch } from '../runs/search/search-switch.tsx'
import { searchSettingsQuery } from '../runs/search/queries.ts'
import { SectionPage, Section, Nothing } from '../web/ui/section.tsx'
import { number, counted } from '../web/text/format.ts'
import { Skeleton, Trouble, isBlocking } from '../web/ui/states.tsx'
import { ExportMenu } from './export-menu.tsx'
import { Retention } from './retention.tsx'
import type { Place } from '../web/queries.ts'
import { Button, More } from '../web/ui/button.tsx'
import { State } from '../web/ui/state.tsx'
import { DataTable, type Column } from '../web/ui/data-table.tsx'
import { Time } from '../web/text/times.tsx'
import { EraseDialog, KIND_WORDS } from './erase-dialog.tsx'
import { stillRunning } from '@tacho/contract/runs/run-text.ts'
import { useErasures } from './queries.ts'
import { ReceiptDialog } from './receipt-dialog.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/data')

export function DataPage() {
  const { place } = route.useRouteContext()
  const isAdmin = place.may('admin')
  return (
    <SectionPage title="Data" note={`What ${place.environment.name} keeps and for how long.`}>
      <Retention place={place} />
      <SearchIndex environmentId={place.environment.id} isAdmin={isAdmin} />
      <Erasures place={place} />
      <Section title="Export" className="mt-8">
        <p className="mb-3 max-w-2xl text-sm text-soft">
          All runs with their events as they were sent, approvals, issues and configuration, as JSON Lines; or runs and
          events as Parquet, for analysis. The list of runs exports what its filters show. Large environments:{' '}
          <code className="font-mono">tacho export</code> compresses and can resume;{' '}
          <code className="font-mono">tacho restore-export</code> writes one back.
        </p>
        {isAdmin ? (
          <ExportMenu environmentId={place.environment.id} filter={{}} />
        ) : (
          <p className="text-sm">An admin of this workspace can export.</p>
        )}
      </Section>
    </SectionPage>
  )
}

function SearchIndex({ environmentId, isAdmin }: { environmentId: string; isAdmin: boolean }) {
  const { data, error, refetch } = useQuery(searchSettingsQuery(environmentId))
  return (
    <Section title="Search" className="mt-8">
      {isBlocking(error, data) ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : data ? (
        <>
          <p className="mb-3 max-w-2xl text-sm text-soft">
            {data.state === 'OFF' || data.state === 'REMOVING'
              ? 'Payloads are not indexed, so they cannot be searched.'
              : `Payloads can be searched. ${number(data.indexedEvents)} events are in the index${data.state === 'INDEXING' ? ', and older ones are being added' : ''}.`}
          </p>
          {data.state === 'FAILED' && <p className="mb-3 text-sm text-red">The index stopped: {data.error}</p>}
          {isAdmin && <SearchSwitch environmentId={environmentId} settings={data} />}
        </>
      ) : (
        <Skeleton className="h-9" />
      )}
    </Section>
  )
}

/** The button covers the whole row, which opens the receipt. */
const ROW_BUTTON = 'font-medium after:absolute after:inset-0'

const NOTES: Record<ErasureStatus, string> = {
  SEARCHING: 'Runs are still being found; those found are already invisible',
  REMOVING: 'Everything is invisible; its rows are being deleted',
  DONE: 'Everything is deleted',
}

/** Receipts of erasures. They never name the erased data. */
function Erasures({ place }: { place: Place }) {
  const list = useErasures(place.environment.id)
  const [isErasing, setErasing] = useState(false)
  const navigate = useNavigate()
  // The hash in the address names a receipt.
  const { hash } = useLocation()
  const open = (id: string) => void navigate({ to: '.', hash: id, replace: true, resetScroll: false })
  return (
    <Section title="Erased on request" className="mt-8">
      {isBlocking(list.error, list.data) ? (
        <Trouble error={list.error} retry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton className="h-9" />
      ) : list.items.length === 0 ? (
        <Nothing>Nothing was erased. A run, session, agent, client or user can be erased forever.</Nothing>
      ) : (
        <DataTable label="Erasures" columns={columns(open)} items={list.items} keyOf={({ id }) => id} />
      )}
      <More list={list} label="Show older erasures" />
      {place.may('admin') && (
        <Button className="mt-3" onClick={() => setErasing(true)}>
          Erase…
        </Button>
      )}
      {isErasing && <EraseDialog place={place} subject={null} onClose={() => setErasing(false)} />}
      {UUID.test(hash) && (
        <ReceiptDialog environmentId={place.environment.id} erasureId={hash} onClose={() => open('')} />
      )}
    </Section>
  )
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const columns = (open: (erasureId: string) => void): Column<Erasure>[] => [
  { head: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    head: 'What',
    main: true,
    cell: ({ id, kind, subjectHash, reason, runningRuns }) => (
      <>
        <span className="block truncate">
          <button
            type="button"
            aria-label={`Receipt: ${KIND_WORDS[kind]}`}
            onClick={() => open(id)}
            className={ROW_BUTTON}
          >
            {KIND_WORDS[kind]}
          </button>{' '}
          <code
            className="font-mono text-xs text-soft"
            title={`SHA-256 of the erasure id, the kind and the id: ${subjectHash}`}
          >
            {subjectHash.slice(0, 12)}
          </code>
        </span>
        {reason !== null && <bdi className="block truncate text-soft">{reason}</bdi>}
        {runningRuns > 0 && (
          <span className="block whitespace-normal text-amber">! {stillRunning(runningRuns, kind, true)}</span>
        )}
      </>
    ),
  },
  { head: 'By', wide: true, cell: ({ requestedBy: { name } }) => <bdi>{name}</bdi> },
  {
    head: 'Erased',
    right: true,
    wide: true,
    cell: ({ runs, events, status, searched, toSearch }) =>
      status === 'SEARCHING'
        ? `${number(searched)} of ${counted(toSearch, 'run')} searched`
        : `${counted(runs, 'run')}, ${counted(events, 'event')}`,
  },
  {
    head: 'State',
    cell: ({ status, runs, events }) =>
      status === 'DONE' && runs === 0 && events === 0 ? (
        // No green sign: with a wrong id or field path, the search finds nothing although the data exist.
        <State is="WARN" note="No run has this id, or has it in this field: check both, and search for the id">
          No run found
        </State>
      ) : (
        <State is={status} note={NOTES[status]} />
      ),
  },
]
