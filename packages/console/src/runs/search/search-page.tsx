/** Finds steps by the text of their payloads, and links to them. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { SearchSettings } from '@tacho/contract/runs/search.ts'
import { refusalOf } from '../../web/api.ts'
import { RunsTabs } from '../../web/ui/tabs.tsx'
import { SEARCH_FILTERS } from '@tacho/contract/runs/search-filters.ts'
import { FilterBar } from '../../web/ui/filter-bar.tsx'
import { changed } from '../../web/ui/filters.tsx'
import { exact } from '../../web/text/format.ts'
import { useListKeys } from '../../web/ui/keys.ts'
import { More } from '../../web/ui/button.tsx'
import { RangeChoice } from '../../web/ui/range-choice.tsx'
import { NO_RANGE } from '../../web/address.ts'
import { Refused, Empty, PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { searchSettingsQuery, useHits } from './queries.ts'
import { SearchSwitch } from './search-switch.tsx'
import { SEARCH_SINCE_DEFAULT } from '../address.ts'
import { groupHits, splitQuery } from './hit-groups.ts'
import { HitList } from './hit-list.tsx'

const route = getRouteApi('/w/$workspace/$environment/search')
const QUERY_ID = 'search-payloads'

export function SearchPage() {
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const settings = useQuery(searchSettingsQuery(environmentId))
  useTitle('Search')
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Search</h1>
      <RunsTabs />
      {isBlocking(settings.error, settings.data) ? (
        <Trouble error={settings.error} retry={() => void settings.refetch()} />
      ) : !settings.data ? (
        <PagePending />
      ) : settings.data.state === 'OFF' || settings.data.state === 'REMOVING' ? (
        <Off settings={settings.data} />
      ) : (
        <Search settings={settings.data} />
      )}
    </div>
  )
}

/** Shown while search is off. The first query switches search on, and then runs. */
function Off({ settings }: { settings: SearchSettings }) {
  const { q = '' } = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { environment } = place
  const isAdmin = place.may('admin')
  const action = isAdmin ? (
    <SearchSwitch
      environmentId={environment.id}
      settings={settings}
      query={q}
      onQuery={(text) => void navigate({ to: '.', search: text === '' ? {} : { q: text }, replace: true })}
    />
  ) : (
    <p className="text-sm">An admin of this workspace can switch it on.</p>
  )
  return (
    <Empty title={`Search is off in ${environment.name}`} action={action}>
      It finds every step whose payload or label has your words: what a user wrote, what a tool returned, an order
      number. It needs an index, which takes disk space and some processor time.
      {isAdmin && ' Your first query switches it on, and is answered while the index is built, newest runs first.'}
    </Empty>
  )
}

function Search({ settings }: { settings: SearchSettings }) {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { q = '' } = search
  // Show users' texts first, even if other hits are newer.
  const split = splitQuery(q)
  const users = useHits(place.environment.id, { ...search, q: split?.users ?? '' }, settings.state)
  const hits = useHits(place.environment.id, { ...search, q: split?.others ?? q }, settings.state)
  const userGroups = split ? groupHits(users.items) : []
  const groups = groupHits(hits.items)
  const current = useListKeys({
    items: q === '' ? [] : [...userGroups, ...groups],
    keyOf: ({ hit: { event } }) => event.id,
    open: ({ hit: { run, event } }) =>
      void navigate({
        to: '/w/$workspace/$environment/runs/$runId',
        params: { ...params, runId: run.runId },
        search: { step: event.eventId },
      }),
    reset: search,
    more: { '/': () => document.getElementById(QUERY_ID)?.focus() },
  })
  // The server names the invalid character of the query.
  const isQueryWrong = refusalOf(hits.error)?.status === 400
  return (
    <>
      <FilterBar
        id={QUERY_ID}
        filters={SEARCH_FILTERS}
        names={['q']}
        widths={{ q: 'w-full sm:w-112' }}
        search={search}
        onChange={(next) => void navigate({ to: '.', search: next, replace: true })}
      >
        <RangeChoice
          label="Time"
          range={search}
          byDefault={SEARCH_SINCE_DEFAULT}
          onChange={(range) =>
            void navigate({ to: '.', search: changed(search, { ...NO_RANGE, ...range }), replace: true })
          }
        />
      </FilterBar>
      <IndexState settings={settings} />
      {isQueryWrong ? (
        <Refused error={hits.error} className="py-2" />
      ) : isBlocking(hits.error, hits.data) ? (
        <Trouble error={hits.error} retry={() => void hits.refetch()} />
      ) : q === '' ? (
        <HowTo />
      ) : hits.isPending || (split !== null && users.isPending) ? (
        <PagePending />
      ) : (
        <>
          {userGroups.length > 0 && (
            <section>
              <h2 className="border-b border-line pt-3 pb-2 text-sm font-semibold">Written by users</h2>
              <HitList label="Written by users" groups={userGroups} current={current} />
              <More list={users} label="Show older words of users" />
              {(groups.length > 0 || hits.hasNextPage) && (
                <h2 className="border-b border-line pt-6 pb-2 text-sm font-semibold">Other steps</h2>
              )}
            </section>
          )}
          {groups.length > 0 ? (
            <HitList label="Steps found" groups={groups} current={current} />
          ) : userGroups.length === 0 ? (
            <Empty
              title={
                hits.hasNextPage
                  ? 'Nothing found so far'
                  : settings.state === 'INDEXING'
                    ? 'Nothing found yet'
                    : 'Nothing found'
              }
            >
              Words are found whole: refund does not find refunds. Case and accents do not matter.
            </Empty>
          ) : null}
          <More list={hits} label={groups.length > 0 ? 'Show older steps' : 'Search older steps'} />
        </>
      )}
    </>
  )
}

/** Describes runs that the index does not contain yet. */
function IndexState({ settings: { state, error, olderRunsBefore, waitingRuns } }: { settings: SearchSettings }) {
  const text =
    state === 'FAILED'
      ? `The index stopped: ${error ?? 'see the server’s log'}. Newer steps are not found.`
      : state === 'INDEXING'
        ? `The index is being built. ${olderRunsBefore === null ? 'Older runs' : `Runs before ${exact(Date.parse(olderRunsBefore))}`} are not found yet.`
        : waitingRuns > 100
          ? 'The index is behind: the newest steps are not found yet.'
          : null
  return text === null ? null : (
    <p role="status" className="pb-2 text-sm text-amber">
      {text}
    </p>
  )
}

const EXAMPLES = [
  ['refund order', 'steps with both words'],
  ['"order 4711"', 'these words side by side'],
  ['refund -timeout', 'without a word'],
  ['tool:refund type:error', 'by tool, type, agent, model or label'],
] as const

function HowTo() {
  const params = route.useParams()
  return (
    <Empty title="Find a step by what it says">
      <p>
        Everything in a payload is searched: messages, input and output of tools, errors. What users wrote comes first,
        then all else, each the newest first.
      </p>
      <ul className="mt-3 flex flex-col gap-1.5 text-sm">
        {EXAMPLES.map(([q, note]) => (
          <li key={q}>
            <Link to="/w/$workspace/$environment/search" params={params} search={{ q }} className="link font-mono">
              {q}
            </Link>{' '}
            {note}
          </li>
        ))}
      </ul>
    </Empty>
  )
}
