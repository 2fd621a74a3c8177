import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { api } from '../api.ts'
import { Button } from '../ui/button.tsx'
import { useKeys } from '../ui/keys.ts'
import { useTitle } from '../ui/title.ts'
import { Empty, PagePending, Trouble } from '../ui/states.tsx'
import { GetStartedLink } from '../get-started/get-started-link.tsx'
import { RunFilters, SEARCH_ID } from './run-filters.tsx'
import { RunList } from './run-list.tsx'
import { RunsTabs } from './runs-tabs.tsx'
import { SINCE, type RunsSearch } from './search.ts'

const route = getRouteApi('/w/$workspace/$environment/runs')
const REFRESH_MS = 3_000
const PAGE_RUNS = 100

export function RunsPage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const [cursorRow, setCursorRow] = useState(-1)
  useTitle('Runs')

  const runs = useRuns(place.environment.id, search)
  const items = runs.data?.pages.flatMap((page) => page.items) ?? []
  useEffect(() => setCursorRow(-1), [search])

  const move = (by: number) => setCursorRow(Math.max(0, Math.min(items.length - 1, cursorRow + by)))
  const current = items[cursorRow]
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    '/': () => document.getElementById(SEARCH_ID)?.focus(),
    ...(current && {
      Enter: () =>
        void navigate({ to: '/w/$workspace/$environment/runs/$runId', params: { ...params, runId: current.runId } }),
    }),
  })

  const isFiltered = Object.keys(search).length > 0
  const setSearch = (change: RunsSearch) => void navigate({ to: '.', search: change, replace: true })
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Runs</h1>
      <RunsTabs />
      <RunFilters search={search} onChange={setSearch} />
      {runs.error ? (
        <Trouble error={runs.error} retry={() => void runs.refetch()} />
      ) : runs.isPending ? (
        <PagePending />
      ) : items.length === 0 ? (
        isFiltered ? (
          <Empty title="No run matches" action={<Button onClick={() => setSearch({})}>Show all runs</Button>}>
            Search finds a run by the beginning of its id, or by a whole session id, agent id or agent name. Letters
            match exactly.
          </Empty>
        ) : (
          <Empty title="No runs yet" action={<GetStartedLink />}>
            Every execution of an agent appears here with its outcome, length, tokens and cost as soon as its first
            event arrives.
          </Empty>
        )
      ) : (
        <>
          <RunList items={items} current={cursorRow} />
          {runs.hasNextPage && (
            <div className="flex justify-center py-4">
              <Button busy={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
                Show older runs
              </Button>
            </div>
          )}
        </>
      )}
    </div>
  )
}

function useRuns(environmentId: string, search: RunsSearch) {
  const { since, from, ...filter } = search
  return useInfiniteQuery({
    queryKey: ['runs', environmentId, search],
    queryFn: ({ pageParam, signal }) => {
      const start = from ?? (since && new Date(hourAgo(SINCE[since])).toISOString())
      return api.listOperatorRuns(
        { params: { environmentId }, query: { ...filter, from: start, limit: PAGE_RUNS, cursor: pageParam } },
        { signal },
      )
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    // New runs come by themselves while the list stands at its top.
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS),
    placeholderData: keepPreviousData,
  })
}

/** To the minute: a cursor holds for the filter it was made with. */
function hourAgo(hours: number): number {
  return Math.floor(Date.now() / 60_000) * 60_000 - hours * 3_600_000
}
