import type { ListedIssue } from '@tacho/contract/issues/issue.ts'
import { ISSUE_STATES } from '@tacho/contract/engine/words.ts'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { More } from '../web/ui/button.tsx'
import { DataTable, ROW_LINK, type Column } from '../web/ui/data-table.tsx'
import { ISSUE_FILTERS } from '@tacho/contract/issues/issue-filters.ts'
import { changed, Choice } from '../web/ui/filters.tsx'
import { FilterBar } from '../web/ui/filter-bar.tsx'
import { compact } from '../web/text/format.ts'
import { useListKeys } from '../web/ui/keys.ts'
import { RangeChoice } from '../web/ui/range-choice.tsx'
import { NO_RANGE } from '../web/address.ts'
import { Empty, PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Tabs } from '../web/ui/tabs.tsx'
import { Time } from '../web/text/times.tsx'
import { useTitle } from '../web/ui/browser.ts'
import { RegressionChip, stateWord } from './issue-state.tsx'
import { useIssues, useTrends } from './queries.ts'
import type { IssueListAddress } from './address.ts'
import { Trend } from './trend.tsx'

const route = getRouteApi('/w/$workspace/$environment/issues')
const SEARCH_ID = 'search-issues'

const columns = (trends: ReadonlyMap<string, number[]> | undefined): Column<ListedIssue>[] => [
  { head: 'Issue', main: true, cell: (issue) => <Title issue={issue} /> },
  { head: 'Last 14 days', wide: true, cell: ({ id }) => <Trend days={trends?.get(id)} /> },
  { head: 'Times', right: true, cell: ({ occurrences }) => compact(occurrences) },
  { head: 'Runs', right: true, wide: true, cell: ({ affectedRuns }) => compact(affectedRuns) },
  { head: 'Agents', right: true, wide: true, cell: ({ affectedAgents }) => compact(affectedAgents) },
  { head: 'First seen', wide: true, cell: ({ firstSeenAt }) => <Time at={firstSeenAt} /> },
  { head: 'Last seen', cell: ({ lastSeenAt }) => <Time at={lastSeenAt} /> },
]

export function IssuesPage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { state = 'OPEN' } = search
  const issues = useIssues(place.environment.id, state, search)
  const trends = useTrends(place.environment.id, issues.items)
  useTitle('Issues')

  const setSearch = (change: IssueListAddress) => void navigate({ to: '.', search: change, replace: true })
  const set = (change: { [Name in keyof IssueListAddress]?: string | undefined }) => setSearch(changed(search, change))
  const current = useListKeys({
    items: issues.items,
    keyOf: ({ id }) => id,
    open: ({ id }) =>
      void navigate({ to: '/w/$workspace/$environment/issues/$issueId', params: { ...params, issueId: id } }),
    reset: search,
    more: { '/': () => document.getElementById(SEARCH_ID)?.focus() },
  })
  const { state: _, ...filters } = search
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Issues</h1>
      <Tabs
        label="State"
        value={state}
        options={ISSUE_STATES.map((one) => [one, stateWord(one)])}
        onChange={(chosen) => set({ state: chosen })}
      />
      <FilterBar
        id={SEARCH_ID}
        filters={ISSUE_FILTERS}
        widths={{ detectionType: 'w-full sm:w-64' }}
        search={search}
        onChange={setSearch}
        cleared={state === 'OPEN' ? {} : { state }}
        isFiltered={Object.keys(filters).length > 0}
      >
        <Choice
          label="Order"
          all="Last seen first"
          value={search.first}
          options={[['true', 'New first']]}
          onChange={(first) => set({ first })}
        />
        <RangeChoice
          label={search.first ? 'First seen' : 'Last seen'}
          range={search}
          byDefault={null}
          onChange={(range) => set({ ...NO_RANGE, ...range })}
        />
      </FilterBar>
      {isBlocking(issues.error, issues.data) ? (
        <Trouble error={issues.error} retry={() => void issues.refetch()} />
      ) : issues.isPending ? (
        <PagePending />
      ) : issues.items.length === 0 ? (
        Object.keys(filters).length > 0 ? (
          <Empty title="No issue matches">Each filter matches the whole text.</Empty>
        ) : (
          <Nothing state={state} />
        )
      ) : (
        <>
          <DataTable
            label="Issues"
            columns={columns(trends.data)}
            items={issues.items}
            keyOf={({ id }) => id}
            current={current}
          />
          <More list={issues} label="Show older issues" />
        </>
      )}
    </div>
  )
}

function Title({ issue }: { issue: ListedIssue }) {
  const params = route.useParams()
  return (
    <>
      <Link
        to="/w/$workspace/$environment/issues/$issueId"
        params={{ ...params, issueId: issue.id }}
        title={issue.title}
        className={ROW_LINK}
      >
        <bdi>{issue.title}</bdi>
      </Link>
      <span className="flex items-center gap-2 text-soft">
        <RegressionChip issue={issue} />
        {issue.agentIds.length > 0 && (
          <bdi className="min-w-0 truncate" title={issue.agentIds.join(', ')}>
            {issue.agentIds.join(', ')}
          </bdi>
        )}
        {issue.assignee !== null && (
          <bdi className="min-w-0 truncate" title={issue.assignee}>
            → {issue.assignee}
          </bdi>
        )}
      </span>
    </>
  )
}

function Nothing({ state }: { state: NonNullable<IssueListAddress['state']> }) {
  if (state === 'RESOLVED')
    return <Empty title="No issue is resolved">A resolved issue opens again when it is detected again.</Empty>
  if (state === 'IGNORED')
    return <Empty title="No issue is ignored">Detections of an ignored issue are still counted.</Empty>
  return (
    <Empty title="No open issues">
      Runs, tools and model calls that fail are grouped here, without any code: by the error, the tool or model, the
      place in your code and the message. The SDK reports blocked tools too; report more with{' '}
      <code className="font-mono">reportIssue</code>.
    </Empty>
  )
}
