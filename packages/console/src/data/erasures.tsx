import type { Erasure, ErasureStatus } from '@tacho/contract/data/erasure.ts'
import { useState } from 'react'
import type { Place } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Chip, type Tone } from '../web/ui/chip.tsx'
import { DataTable, type Column } from '../web/ui/data-table.tsx'
import { counted, number } from '../web/text/format.ts'
import { More } from '../web/ui/more.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { Skeleton, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Time } from '../web/text/time.tsx'
import { EraseDialog } from './erase-dialog.tsx'
import { KIND_WORDS } from './erasure-kinds.ts'
import { useErasures } from './queries.ts'

const LOOKS: Record<ErasureStatus, { tone: Tone; word: string; note: string }> = {
  SEARCHING: { tone: 'amber', word: 'Searching', note: 'Runs are still being found; those found are already invisible' },
  REMOVING: { tone: 'accent', word: 'Effective', note: 'Everything is invisible; its rows are being deleted' },
  DONE: { tone: 'green', word: 'Done', note: 'Everything is deleted' },
}

/** Receipts of erasures. They never name the erased data. */
export function Erasures({ place }: { place: Place }) {
  const list = useErasures(place.environment.id)
  const [isErasing, setErasing] = useState(false)
  return (
    <Section title="Erased on request" className="mt-8">
      {isBlocking(list.error, list.data) ? (
        <Trouble error={list.error} retry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton className="h-9" />
      ) : list.items.length === 0 ? (
        <Nothing>Nothing was erased. A run, session, agent, client or user can be erased forever.</Nothing>
      ) : (
        <DataTable label="Erasures" columns={COLUMNS} items={list.items} keyOf={({ id }) => id} />
      )}
      <More list={list} label="Show older erasures" />
      {place.may('admin') && (
        <Button className="mt-3" onClick={() => setErasing(true)}>
          Erase…
        </Button>
      )}
      {isErasing && <EraseDialog place={place} subject={null} onClose={() => setErasing(false)} />}
    </Section>
  )
}

const COLUMNS: Column<Erasure>[] = [
  { head: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    head: 'What',
    main: true,
    cell: ({ kind, subjectHash, reason }) => (
      <>
        <span className="block truncate">
          {KIND_WORDS[kind]}{' '}
          <code className="font-mono text-xs text-soft" title={`SHA-256 of the erasure id, the kind and the id: ${subjectHash}`}>
            {subjectHash.slice(0, 12)}
          </code>
        </span>
        {reason !== null && <bdi className="block truncate text-soft">{reason}</bdi>}
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
    cell: ({ status }) => (
      <span title={LOOKS[status].note}>
        <Chip tone={LOOKS[status].tone}>{LOOKS[status].word}</Chip>
      </span>
    ),
  },
]
