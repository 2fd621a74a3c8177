import type { Issue } from '@tacho/contract/issues/issue.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Copy } from '../web/ui/copy.tsx'
import { Fact, Facts } from '../web/ui/facts.tsx'
import { counted, number } from '../web/text/format.ts'
import { PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Time } from '../web/text/time.tsx'
import { useTitle } from '../web/ui/title.ts'
import { Activity } from './activity.tsx'
import { Affected } from './affected.tsx'
import { ChangesBefore } from './changes-before.tsx'
import { IssueActs } from './issue-acts.tsx'
import { IssueStateChip, RegressionChip, stateWord } from './issue-state.tsx'
import { Occurrence } from './occurrence.tsx'
import { Occurrences } from './occurrences.tsx'
import { issueQuery, useTrends } from './queries.ts'
import { Trend } from './trend.tsx'
import { WhyGrouped } from './why-grouped.tsx'

const route = getRouteApi('/w/$workspace/$environment/issues/$issueId')

export function IssuePage() {
  const { issueId } = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const { data, error, refetch } = useQuery(issueQuery(environmentId, issueId))
  useTitle(data?.title ?? 'Issue')
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  return (
    <div className="mx-auto w-full max-w-6xl px-4 pb-12 sm:px-5">
      <Header issue={data} />
      {data.mergedInto === null && place.may('approver') && (
        <IssueActs environmentId={environmentId} workspaceId={place.workspace.id} issue={data} />
      )}
      <div className="grid grid-cols-1 gap-x-10 lg:grid-cols-[minmax(0,1fr)_20rem]">
        <div className="min-w-0">
          <Occurrence key={data.id} environmentId={environmentId} issue={data} />
          <Occurrences environmentId={environmentId} issueId={data.id} />
          <WhyGrouped issue={data} />
          <Activity environmentId={environmentId} issueId={data.id} canComment={place.may('approver')} />
        </div>
        <aside aria-label="Around the issue" className="min-w-0">
          <Numbers issue={data} environmentId={environmentId} />
          <ChangesBefore environmentId={environmentId} firstSeenAt={data.firstSeenAt} />
          <Affected environmentId={environmentId} issueId={data.id} />
        </aside>
      </div>
    </div>
  )
}

function Header({ issue }: { issue: Issue }) {
  const params = route.useParams()
  return (
    <header className="pt-5">
      <Link to="/w/$workspace/$environment/issues" params={params} className="link text-sm">
        ‹ Issues
      </Link>
      <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1">
        <h1 className="min-w-0 text-xl font-semibold">
          <bdi>{issue.title}</bdi>
        </h1>
        <IssueStateChip state={issue.state} />
        <RegressionChip issue={issue} />
        <Copy text={() => window.location.href} label="Copy link" />
      </div>
      {issue.state !== 'OPEN' && (
        <p className="mt-0.5 text-sm text-soft">
          {stateWord(issue.state)} <Time at={issue.stateChangedAt} />
          {issue.stateChangedBy && ` by ${issue.stateChangedBy.name}`}
        </p>
      )}
      {issue.mergedInto !== null && (
        <p className="mt-3 rounded-lg bg-amber-wash px-3 py-2 text-sm text-amber">
          This issue was merged.{' '}
          <Link
            to="/w/$workspace/$environment/issues/$issueId"
            params={{ ...params, issueId: issue.mergedInto }}
            className="font-medium underline"
          >
            Open the issue that has its records
          </Link>
        </p>
      )}
    </header>
  )
}

function Numbers({ issue, environmentId }: { issue: Issue; environmentId: string }) {
  const { data } = useTrends(environmentId, [issue])
  return (
    <section aria-label="Numbers" className="mt-6">
      <Trend days={data?.get(issue.id)} className="h-14 w-full" />
      <p className="mt-0.5 flex justify-between text-xs text-soft">
        <span>14 days ago</span>
        <span>now</span>
      </p>
      <Facts className="mt-3">
        <Fact name="Detected">{counted(issue.occurrences, 'time')}</Fact>
        <Fact name="First seen">
          <Time at={issue.firstSeenAt} />
        </Fact>
        <Fact name="Last seen">
          <Time at={issue.lastSeenAt} />
        </Fact>
        {issue.lastRelease !== null && (
          <Fact name="Release">
            <bdi>
              {issue.firstRelease === null || issue.firstRelease === issue.lastRelease
                ? issue.lastRelease
                : `${issue.firstRelease} to ${issue.lastRelease}`}
            </bdi>
          </Fact>
        )}
        <Fact name="Runs">{number(issue.affectedRuns)}</Fact>
        <Fact name="Agents">{number(issue.affectedAgents)}</Fact>
        <Fact name="Recoveries">{number(issue.recoveries)}</Fact>
        {issue.lastRegressionAt !== null && (
          <Fact name="Came back">
            <Time at={issue.lastRegressionAt} />
          </Fact>
        )}
        <Fact name="Assignee">{issue.assignee === null ? 'not assigned' : <bdi>{issue.assignee}</bdi>}</Fact>
      </Facts>
    </section>
  )
}
