import type { AuditEntry } from '@tacho/contract/people/audit.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { filterQuery } from '../web/address.ts'
import { api } from '../web/api.ts'
import { meQuery, usePages } from '../web/queries.ts'
import { Button, More } from '../web/ui/button.tsx'
import { type Column, ListedTable } from '../web/ui/data-table.tsx'
import { csv, download } from '../web/ui/browser.ts'
import { AUDIT_FILTERS } from '@tacho/contract/people/audit-filters.ts'
import { changed, Choice } from '../web/ui/filters.tsx'
import { FilterBar } from '../web/ui/filter-bar.tsx'
import { useKeys } from '../web/ui/keys.ts'
import { Empty, Forbidden } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { ScopeTabs } from './role-choice.tsx'
import { AUDIT_DAYS, type AuditAddress, type AuditSince } from './address.ts'
import { SectionPage } from '../web/ui/section.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/audit')
const SEARCH_ID = 'search-audit'
const DAY_MS = 86_400_000
const SINCE_WORDS: Record<AuditSince, string> = {
  '1d': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '365d': 'Last year',
}

const COLUMNS: Column<AuditEntry>[] = [
  {
    head: 'Action',
    main: true,
    cell: (entry) => (
      <>
        <code
          className={`block truncate font-mono text-xs leading-5 ${entry.action.endsWith('.refused') ? 'text-red' : ''}`}
        >
          {entry.action}
        </code>
        <What entry={entry} />
      </>
    ),
  },
  { head: 'Who', cell: (entry) => <Actor entry={entry} /> },
  { head: 'When', cell: ({ at }) => <Time at={at} /> },
]

export function AuditPage() {
  const { place } = route.useRouteContext()
  const search = route.useSearch()
  const { scope = 'workspace' } = search
  const navigate = useNavigate()
  const { data: me } = useQuery(meQuery)
  const list = useAudit(scope === 'everywhere' ? null : place.workspace.id, search)
  useKeys({ '/': () => document.getElementById(SEARCH_ID)?.focus() })
  if (scope === 'everywhere' && me && !me.installation)
    return <Forbidden>Only an owner of the installation reads its audit log.</Forbidden>

  const setSearch = (next: AuditAddress) => void navigate({ to: '.', search: next, replace: true })
  const isFiltered = Object.keys(search).some((name) => name !== 'scope')
  const file = `audit-${scope === 'everywhere' ? 'installation' : place.workspace.name}`
  return (
    <SectionPage
      title="Audit log"
      note="Every change, sign-in and important refused attempt: who, when, what. Entries never change, and hold no secrets and no payloads."
      act={
        list.items.length > 0 && (
          <div className="flex gap-2">
            <Button onClick={() => download(`${file}.csv`, 'text/csv', csvOfAudit(list.items))}>CSV</Button>
            <Button
              onClick={() => download(`${file}.json`, 'application/json', `${JSON.stringify(list.items, null, 2)}\n`)}
            >
              JSON
            </Button>
          </div>
        )
      }
    >
      <ScopeTabs
        workspace={place.workspace.name}
        scope={scope}
        onChange={(next) =>
          setSearch(next === 'everywhere' ? { ...search, scope: next } : changed(search, { scope: '' }))
        }
      />
      <FilterBar
        id={SEARCH_ID}
        filters={AUDIT_FILTERS}
        widths={{ action: 'w-full sm:w-60', '': 'w-40' }}
        search={search}
        onChange={setSearch}
        cleared={search.scope ? { scope: search.scope } : {}}
        isFiltered={isFiltered}
      >
        <Choice
          label="When"
          all="Any time"
          value={search.since}
          options={Object.keys(AUDIT_DAYS).map((since) => [since, SINCE_WORDS[since as AuditSince]])}
          onChange={(since) => setSearch(changed(search, { since }))}
        />
      </FilterBar>
      <ListedTable
        label="Audit log"
        columns={COLUMNS}
        list={{ ...list, data: list.data && list.items }}
        empty={
          isFiltered ? (
            <Empty title="No entry matches">Each filter matches the whole text.</Empty>
          ) : (
            <Empty title="Nothing was changed yet">What people and tokens change appears here.</Empty>
          )
        }
      />
      <More list={list} label="Show older entries" />
    </SectionPage>
  )
}

function useAudit(workspaceId: string | null, { scope: _, since, ...search }: AuditAddress) {
  return usePages<AuditEntry>({
    queryKey: ['audit', workspaceId, search, since],
    read: (cursor, signal) => {
      const from = since && new Date(minute(Date.now()) - AUDIT_DAYS[since] * DAY_MS).toISOString()
      const query = { ...filterQuery(AUDIT_FILTERS, search), from, limit: 100, cursor }
      return workspaceId === null
        ? api.listInstallationAudit({ query }, { signal })
        : api.listAudit({ params: { workspaceId }, query }, { signal })
    },
  })
}

/** Rounds to a minute: a cursor is valid only for its filter, so the filter must not change more often. */
const minute = (time: number): number => Math.floor(time / 60_000) * 60_000

function Actor({ entry: { actor, address } }: { entry: AuditEntry }) {
  const title = `${actor.name} (${actor.kind} ${actor.id})${address === null ? '' : ` from ${address}`}`
  return (
    <span className="block max-w-28 sm:max-w-44" title={title}>
      <bdi className="block truncate">{actor.name}</bdi>
      {address !== null && <span className="block truncate text-soft">{address}</span>}
    </span>
  )
}

function What({ entry: { target, detail } }: { entry: AuditEntry }) {
  const facts = Object.entries(detail).map(([name, value]) => `${name} ${textOf(value)}`)
  const text = [target.kind, target.id, ...facts].join(' · ')
  return (
    <bdi className="block truncate text-soft" title={text}>
      {text}
    </bdi>
  )
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function csvOfAudit(entries: readonly AuditEntry[]): string {
  const heads = [
    'at',
    'actor',
    'actorKind',
    'actorId',
    'action',
    'targetKind',
    'targetId',
    'detail',
    'address',
    'requestId',
  ]
  const rows = entries.map(({ at, actor, action, target, detail, address, requestId }) =>
    [at, actor.name, actor.kind, actor.id, action].concat(
      target.kind,
      target.id,
      JSON.stringify(detail),
      address ?? '',
      requestId,
    ),
  )
  return csv([heads, ...rows])
}
