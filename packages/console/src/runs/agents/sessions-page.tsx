/** Runs that share a session, for example those of one conversation, summed over a period. */
import type { UsagePoint } from '@tacho/contract/runs/usage.ts'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { RunsTabs } from '../../web/ui/tabs.tsx'
import { nameOf } from '../usage/series.ts'
import { COST_COLUMN, SUM_COLUMNS, SumsChoices, useSums } from './usage-sums.tsx'
import { DataTable, ROW_LINK, type Column } from '../../web/ui/data-table.tsx'
import { number } from '../../web/text/format.ts'
import { useListKeys } from '../../web/ui/keys.ts'
import { Empty, PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { useTitle } from '../../web/ui/browser.ts'

const route = getRouteApi('/w/$workspace/$environment/sessions')
const SEARCH_ID = 'search-sessions'
/** Maximum number of rows on the page. */
const ROWS = 200

export function SessionsPage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { order = 'cost', q } = search
  const { data, error, refetch } = useSums(place.environment.id, 'session', search, order)
  useTitle('Sessions')
  const wanted = (q ?? '').toLowerCase()
  const matching = (data?.sums ?? []).filter((sum) => nameOf(sum).toLowerCase().includes(wanted))
  const shown = matching.slice(0, ROWS)
  const pageOf = (sum: UsagePoint) =>
    ({
      to: '/w/$workspace/$environment/sessions/$sessionId',
      params: { ...params, sessionId: nameOf(sum) },
    }) as const
  const current = useListKeys({
    items: shown,
    keyOf: ({ key }) => key,
    open: (sum) => void navigate(pageOf(sum)),
    reset: search,
    more: { '/': () => document.getElementById(SEARCH_ID)?.focus() },
  })
  const columns: Column<UsagePoint>[] = [
    {
      head: 'Session',
      main: true,
      cell: (sum) => (
        <Link {...pageOf(sum)} title={nameOf(sum)} className={ROW_LINK}>
          <bdi>{nameOf(sum)}</bdi>
        </Link>
      ),
    },
    ...SUM_COLUMNS,
    COST_COLUMN,
  ]
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Sessions</h1>
      <RunsTabs />
      {isBlocking(error, data) ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : !data ? (
        <PagePending />
      ) : (
        <>
          <SumsChoices
            id={SEARCH_ID}
            label="Session"
            search={search}
            onChange={(to) => void navigate({ to: '.', search: to, replace: true })}
          />
          {data.sums.length === 0 ? (
            <Empty title="No session in this time">
              Runs that share a <code className="font-mono">sessionId</code>, such as those of one conversation, are
              summed up here.
            </Empty>
          ) : (
            <>
              <DataTable label="Sessions" columns={columns} items={shown} keyOf={({ key }) => key} current={current} />
              {shown.length === 0 && <p className="py-3 text-sm text-soft">No session of this time matches.</p>}
              {(matching.length > ROWS || !data.isAll) && (
                <p className="mt-2 text-sm text-soft">
                  {number(shown.length)} of {data.isAll ? '' : 'the first '}
                  {number(data.sums.length)} sessions in this order are shown.
                </p>
              )}
            </>
          )}
        </>
      )}
    </div>
  )
}
