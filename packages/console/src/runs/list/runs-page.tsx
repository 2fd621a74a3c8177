import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { Button, GetStartedLink } from '../../web/ui/button.tsx'
import { changed } from '../../web/ui/filters.tsx'
import { useKeys } from '../../web/ui/keys.ts'
import { NewsButton } from '../../web/ui/news-button.tsx'
import { timesOfRange } from '../../web/address.ts'
import { useTitle } from '../../web/ui/browser.ts'
import { Empty, PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { ExportMenu } from '../../data/export-menu.tsx'
import { ColumnMenu, ViewMenu } from './view-menu.tsx'
import { columnsOf, rememberColumns } from './columns.ts'
import { RunFilters, SEARCH_ID } from './run-filters.tsx'
import { RunList } from './run-list.tsx'
import { RunsTabs } from '../../web/ui/tabs.tsx'
import { useRuns } from './queries.ts'
import type { RunListAddress } from '../address.ts'
import { filterOf, LIST_VIEWS, toSearch, toView } from './views.ts'
import { counted } from '../../web/text/format.ts'

const route = getRouteApi('/w/$workspace/$environment/runs')

export function RunsPage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [current, setCurrent] = useState<string | null>(null)
  useTitle('Runs')

  const runs = useRuns(place.environment.id, search)
  const { items, news, gone, showNews } = runs
  useEffect(() => setCurrent(null), [search])

  const at = items.findIndex(({ id }) => id === current)
  const chosen = items[at]
  const move = (by: number) => setCurrent(items[Math.max(0, Math.min(items.length - 1, at + by))]?.id ?? null)
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    '/': () => document.getElementById(SEARCH_ID)?.focus(),
    n: { name: 'Show new runs', act: showNews },
    ...(chosen && {
      Enter: () =>
        void navigate({ to: '/w/$workspace/$environment/runs/$runId', params: { ...params, runId: chosen.runId } }),
    }),
  })

  const { columns: chosenColumns, ...filter } = search
  const columns = columnsOf(chosenColumns)
  const isFiltered = Object.keys(filter).length > 0
  const setSearch = (change: RunListAddress) => void navigate({ to: '.', search: change, replace: true })
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <h1 className="text-xl font-semibold">Runs</h1>
        <ViewMenu
          place={place}
          kind={LIST_VIEWS}
          view={toView(search)}
          onOpen={(view) => setSearch(toSearch(view, Date.now()))}
        />
        {place.may('admin') && items.length > 0 && (
          <ExportMenu
            environmentId={place.environment.id}
            filter={{ ...filterOf(search), ...timesOfRange(search, Date.now()) }}
          />
        )}
        <ColumnMenu columns={columns} onChange={(to) => setSearch({ ...search, columns: rememberColumns(to) })} />
      </div>
      <RunsTabs />
      <RunFilters search={search} items={items} onChange={setSearch} />
      {isBlocking(runs.error, runs.data) ? (
        <Trouble error={runs.error} retry={() => void runs.refetch()} />
      ) : runs.isPending ? (
        <PagePending />
      ) : items.length === 0 ? (
        isFiltered ? (
          <NoMatch
            older={
              runs.hasNextPage ? { isBusy: runs.isFetchingNextPage, search: () => void runs.fetchNextPage() } : null
            }
            showAll={() => setSearch({})}
            text={search.q}
            isSorted={search.order !== undefined}
          />
        ) : (
          <Empty title="No runs yet" action={<GetStartedLink />}>
            Every execution of an agent appears here with its outcome, length, tokens and cost as soon as its first
            event arrives.
          </Empty>
        )
      ) : (
        <>
          <NewsButton text={newsText(news, gone)} onShow={showNews} />
          <RunList
            items={items}
            columns={columns}
            current={current}
            order={search.order}
            onOrder={(order) => setSearch(changed(search, { order, scoreOrder: undefined }))}
            onFilter={(more) => setSearch({ ...search, ...more })}
          />
          {runs.hasNextPage && (
            <div className="flex flex-col items-center gap-2 py-4">
              {runs.data?.pages.at(-1)?.isCut && (
                <p className="text-sm text-soft">{search.order ? 'Further' : 'Older'} runs were not examined yet.</p>
              )}
              <Button busy={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
                Show {search.order ? 'more' : 'older'} runs
              </Button>
            </div>
          )}
        </>
      )}
    </div>
  )
}

interface NoMatchProps {
  /** Null: all runs were examined. */
  older: { isBusy: boolean; search: () => void } | null
  showAll: () => void
  text: string | undefined
  isSorted: boolean
}

function NoMatch({ older, showAll, text, isSorted }: NoMatchProps) {
  const params = route.useParams()
  if (older !== null) {
    return (
      <Empty
        title="No run matches so far"
        action={
          <Button busy={older.isBusy} onClick={older.search}>
            Examine {isSorted ? 'more' : 'older'} runs
          </Button>
        }
      >
        Cost, length, errors, scores, tools, models and policies are looked up run by run, in the order of the list.
        Limit the time to examine fewer.
      </Empty>
    )
  }
  return (
    <Empty title="No run matches" action={<Button onClick={showAll}>Show all runs</Button>}>
      {isSorted && 'In this order, the list has runs that ended and have some of what it is sorted by. '}
      This finds a run by the beginning of its id, or by a whole session id, agent id or agent name. Letters match
      exactly.
      {text !== undefined && (
        <>
          {' '}
          <Link to="/w/$workspace/$environment/search" params={params} search={{ q: text }} className="link underline">
            Search the payloads for this
          </Link>
        </>
      )}
    </Empty>
  )
}

/** Describes changes since the list was read: new runs, and listed runs that no longer match. */
function newsText(news: number, gone: number): string {
  const parts = [news > 0 && counted(news, 'new run'), gone > 0 && `${counted(gone, 'run')} no longer matching`]
  return parts.filter((noticePart) => noticePart !== false).join(', ')
}
