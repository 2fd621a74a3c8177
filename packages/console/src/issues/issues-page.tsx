import type { ListedIssue } from '@tacho/contract/issues/issue.ts'
import { ISSUE_STATES } from '@tacho/contract/engine/words.ts'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useState, type ReactNode } from 'react'
import { alikeIssues } from '../runs/overview/verdicts.ts'
import { Button, More } from '../web/ui/button.tsx'
import { DataTable, ROW_LINK, type Column } from '../web/ui/data-table.tsx'
import { ISSUE_FILTERS } from '@tacho/contract/issues/issue-filters.ts'
import { changed, Choice } from '../web/ui/filters.tsx'
import { FilterBar } from '../web/ui/filter-bar.tsx'
import { compact } from '../web/text/format.ts'
import { useKeys, useListKeys } from '../web/ui/keys.ts'
import { NewsButton } from '../web/ui/news-button.tsx'
import { useSteadyRows, useTouched } from '../web/ui/steady-rows.ts'
import { RangeChoice } from '../web/ui/range-choice.tsx'
import { NO_RANGE } from '../web/address.ts'
import { Empty, PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Tabs } from '../web/ui/tabs.tsx'
import { Time } from '../web/text/times.tsx'
import { useTitle } from '../web/ui/browser.ts'
import { IssueActs } from './issue-acts.tsx'
import { stateWord } from '../web/text/state-styles.ts'
import { useAgentNames, useIssues, useTrends } from './queries.ts'
import type { IssueListAddress } from './address.ts'
import { RegressionChip, Trend } from './trend.tsx'

const route = getRouteApi('/w/$workspace/$environment/issues')
const SEARCH_ID = 'search-issues'
const NONE: ReadonlySet<string> = new Set()
const FIRST = ['q'] as const

/** Filters behind the button "More filters". */
const BEHIND = ['detectionType', 'agentId', 'assignee', 'assigned', 'user'] as const

const columns = (
  trends: ReadonlyMap<string, number[]> | undefined,
  names: ReadonlyMap<string, string>,
  alikeOf: (issue: ListedIssue) => ReactNode,
): Column<ListedIssue>[] => [
  {
    head: 'Issue',
    main: true,
    cell: (issue) => (
      <Title issue={issue} names={names}>
        {alikeOf(issue)}
      </Title>
    ),
  },
  { head: 'Last 14 days', wide: true, cell: ({ id }) => <Trend days={trends?.get(id)} /> },
  // On a phone, it stands below the title, which has two lines because titles begin alike.
  { head: 'Times', right: true, wide: true, cell: ({ occurrences }) => compact(occurrences) },
  { head: 'Runs', right: true, wide: true, cell: ({ affectedRuns }) => compact(affectedRuns) },
  { head: 'Agents', right: true, wide: true, cell: ({ affectedAgents }) => compact(affectedAgents) },
  { head: 'First seen', wide: true, cell: ({ firstSeenAt }) => <Time at={firstSeenAt} /> },
  { head: 'Last seen', wide: true, cell: ({ lastSeenAt }) => <Time at={lastSeenAt} /> },
]

export function IssuesPage() {
  const params = route.useParams()
  const search = route.useSearch()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const { state = 'OPEN' } = search
  const issues = useIssues(place.environment.id, state, search)
  const trends = useTrends(place.environment.id, issues.items)
  const names = useAgentNames(place.environment.id)
  useTitle('Issues')

  const setSearch = (change: IssueListAddress) => void navigate({ to: '.', search: change, replace: true })
  const set = (change: { [Name in keyof IssueListAddress]?: string | undefined }) => setSearch(changed(search, change))
  const mayAct = place.may('approver')
  const [chosenIds, setChosenIds] = useState<ReadonlySet<string>>(NONE)
  useEffect(() => setChosenIds(NONE), [search])
  const toggle = (id: string) => setChosenIds((before) => before.symmetricDifference(new Set([id])))
  const [alike, setAlike] = useState<readonly ListedIssue[] | null>(null)
  const [isByKeys, setByKeys] = useState(false)
  useEffect(() => setByKeys(false), [search])
  const touched = useTouched()
  const {
    items,
    changed: changes,
    show,
    remove,
  } = useSteadyRows(issues.items, {
    isSteady: !issues.isPlaceholderData && (chosenIds.size > 0 || isByKeys || touched.isTouched),
    list: JSON.stringify([place.environment.id, search]),
  })
  const kinds = alikeIssues(items)
  const current = useListKeys({
    items,
    keyOf: ({ id }) => id,
    open: ({ id }) =>
      void navigate({ to: '/w/$workspace/$environment/issues/$issueId', params: { ...params, issueId: id } }),
    reset: search,
    more: {
      '/': () => document.getElementById(SEARCH_ID)?.focus(),
      n: { name: 'Show what changed', act: show },
      ...(chosenIds.size > 0 && { Escape: () => setChosenIds(NONE) }),
    },
  })
  // After the selected row is resolved, the selection by keys moves to the next row.
  if (current && !isByKeys) setByKeys(true)
  const chosen = items.filter(({ id }) => chosenIds.has(id))
  useKeys(mayAct && current ? { x: { name: 'Choose this issue', act: () => toggle(current.id) } } : {})
  const alikeOf = (issue: ListedIssue) => {
    const others = kinds.find((kind) => kind.issue === issue)?.others ?? []
    if (others.length === 0) return null
    const text = `${others.length + 1} look alike`
    if (!mayAct) return <span className="shrink-0">{text}</span>
    return (
      <Button
        look="quiet"
        className="relative z-10 -ml-1.5 h-6 shrink-0 px-1.5 text-accent!"
        title={[issue, ...others].map(({ title }) => title).join(', ')}
        onClick={() => setAlike([issue, ...others])}
      >
        {text}: merge
      </Button>
    )
  }
  const choosing: Column<ListedIssue>[] = [
    {
      head: 'Choose',
      isHeadHidden: true,
      cell: ({ id, title }) => (
        <label className="relative z-10 grid size-6 place-items-center">
          <input
            type="checkbox"
            aria-label={`Choose ${title}`}
            checked={chosenIds.has(id)}
            onChange={() => toggle(id)}
            className="size-4 accent-accent-fill"
          />
        </label>
      ),
    },
  ]
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
        names={FIRST}
        behind={BEHIND}
        widths={{ q: 'w-full sm:w-72', detectionType: 'w-full sm:w-64' }}
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
      ) : items.length === 0 ? (
        Object.keys(filters).length > 0 ? (
          <Empty title="No issue matches">
            The search takes words from anywhere in a title, and names of tools and agents. Every other filter matches
            the whole text.
          </Empty>
        ) : (
          <Nothing state={state} />
        )
      ) : (
        <>
          <NewsButton text={changes === 0 ? '' : `${changes} changed – show`} onShow={show} />
          <div {...touched.handlers}>
            <DataTable
              label="Issues"
              columns={[...(mayAct ? choosing : []), ...columns(trends.data, names, alikeOf)]}
              items={items}
              keyOf={({ id }) => id}
              current={current}
            />
          </div>
          <More list={issues} label="Show older issues" />
        </>
      )}
      {mayAct && (
        <IssueActs
          environmentId={place.environment.id}
          workspaceId={place.workspace.id}
          targets={chosen.length > 0 ? chosen : current ? [current] : []}
          alike={alike}
          onAlikeClose={() => setAlike(null)}
          onAct={(acted) => remove(acted.map(({ id }) => id))}
          onDone={() => setChosenIds(NONE)}
          first={chosen.length > 0 && <span className="text-sm font-medium">{chosen.length} chosen</span>}
          className="sticky bottom-0 z-20 border-t border-line bg-page py-2"
        >
          {chosen.length > 0 && (
            <Button look="quiet" onClick={() => setChosenIds(NONE)}>
              Clear
            </Button>
          )}
        </IssueActs>
      )}
    </div>
  )
}

interface TitleProps {
  issue: ListedIssue
  /** Names of agents, by their ids. */
  names: ReadonlyMap<string, string>
  children: ReactNode
}

function Title({ issue, names, children }: TitleProps) {
  const params = route.useParams()
  const agents = issue.agentIds.map((id) => names.get(id) ?? id).join(', ')
  return (
    <>
      <Link
        to="/w/$workspace/$environment/issues/$issueId"
        params={{ ...params, issueId: issue.id }}
        title={issue.title}
        className={`${ROW_LINK} max-sm:line-clamp-2 max-sm:whitespace-normal max-sm:wrap-anywhere`}
      >
        <bdi>{issue.title}</bdi>
      </Link>
      <span className="flex items-center gap-2 text-soft max-sm:flex-wrap max-sm:gap-y-0">
        <RegressionChip issue={issue} />
        {children}
        <span className="shrink-0 sm:hidden">
          {compact(issue.occurrences)}× · <Time at={issue.lastSeenAt} />
        </span>
        {agents !== '' && (
          <bdi className="min-w-0 truncate" title={issue.agentIds.join(', ')}>
            {agents}
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
