import type { ApprovalCard } from '@tacho/contract/operator/approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { UrgentAlerts } from '../alerts/urgent.tsx'
import { requesterOf } from '../approvals/requester.tsx'
import { GetStartedLink } from '../get-started/get-started-link.tsx'
import { RunStatusChip } from '../runs/run-status.tsx'
import { Countdown } from '../ui/countdown.tsx'
import { counted } from '../ui/format.ts'
import { Nothing, Section } from '../ui/section.tsx'
import { Empty, PagePending, isBlocking, Trouble } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { useTitle } from '../ui/title.ts'
import { AgentsOfDay } from './agents-of-day.tsx'
import { useNewestRuns, useOpenIssues, useWaitingApprovals, type Count } from './queries.ts'
import { RunsOfDay } from './runs-of-day.tsx'

const route = getRouteApi('/w/$workspace/$environment')

export function OverviewPage() {
  const { place } = route.useRouteContext()
  const newest = useNewestRuns(place.environment.id)
  useTitle('Overview')

  if (isBlocking(newest.error, newest.data)) return <Trouble error={newest.error} retry={() => void newest.refetch()} />
  if (!newest.data) return <PagePending />
  if (newest.data.items.length === 0) {
    return (
      <Empty title={`Nothing has been recorded in ${place.environment.name} yet`} action={<GetStartedLink />}>
        Record the first event of an agent, and this page shows what waits for you, what goes wrong, and what it costs.
      </Empty>
    )
  }
  return (
    <div className="mx-auto w-full max-w-6xl px-4 pb-12 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Overview</h1>
      <UrgentAlerts />
      <RunsOfDay />
      <div className="mt-6 grid grid-cols-1 gap-x-8 gap-y-6 lg:grid-cols-2">
        <WaitingApprovals />
        <OpenIssues />
        <AgentsOfDay />
        <NewestRuns />
      </div>
    </div>
  )
}

function WaitingApprovals() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useWaitingApprovals(place.environment.id)
  const note = data && (
    <Link to="/w/$workspace/$environment/approvals" params={params} className="link">
      {countText(data)} waiting
    </Link>
  )
  return (
    <Section title="Waiting for approval" note={note} error={error} className="">
      {data?.items.length === 0 && <Nothing>No agent waits for a decision.</Nothing>}
      {data?.items.map((approval) => (
        <Waiting key={approval.id} approval={approval} />
      ))}
    </Section>
  )
}

function Waiting({ approval }: { approval: ApprovalCard }) {
  const params = route.useParams()
  const requester = requesterOf(approval)
  return (
    <Row
      link={(props) => (
        <Link
          to="/w/$workspace/$environment/approvals/$approvalId"
          params={{ ...params, approvalId: approval.id }}
          {...props}
        />
      )}
      name={approval.toolName}
      note={[requester, approval.reason].filter((text) => text !== null).join(' · ')}
      aside={<Countdown until={approval.expiresAt} />}
    />
  )
}

function OpenIssues() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useOpenIssues(place.environment.id)
  const note = data && (
    <Link to="/w/$workspace/$environment/issues" params={params} className="link">
      {countText(data)} open
    </Link>
  )
  return (
    <Section title="Open issues" note={note} error={error} className="">
      {data?.items.length === 0 && (
        <Nothing>No issue is open. Clients report issues; a run that fails makes none by itself.</Nothing>
      )}
      {data?.items.map((issue) => (
        <Row
          key={issue.id}
          link={(props) => (
            <Link
              to="/w/$workspace/$environment/issues/$issueId"
              params={{ ...params, issueId: issue.id }}
              {...props}
            />
          )}
          name={issue.title}
          note={`${counted(issue.occurrences, 'time')} in ${counted(issue.affectedRuns, 'run')}`}
          aside={<Time at={issue.lastSeenAt} />}
        />
      ))}
    </Section>
  )
}

function NewestRuns() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useNewestRuns(place.environment.id)
  return (
    <Section title="Newest runs" error={error} className="lg:col-span-2">
      {data?.items.map((run) => (
        <Row
          key={run.id}
          link={(props) => (
            <Link to="/w/$workspace/$environment/runs/$runId" params={{ ...params, runId: run.runId }} {...props} />
          )}
          name={run.runId}
          note={run.agent.name}
          aside={
            <>
              <span className="w-26">
                <RunStatusChip run={run} />
              </span>
              <span className="w-18 text-right whitespace-nowrap">
                <Time at={run.startedAt} />
              </span>
            </>
          }
        />
      ))}
    </Section>
  )
}

const ROW =
  'relative flex min-h-10 items-center max-sm:py-1 gap-3 border-b border-line px-1 text-sm last:border-0 hover:bg-hover'

interface LinkProps {
  title: string
  className: string
  children: ReactNode
}

interface RowProps {
  /** Where the row leads. */
  link: (props: LinkProps) => ReactNode
  name: string
  note: string
  aside: ReactNode
}

function Row({ link, name, note, aside }: RowProps) {
  return (
    <div className={ROW}>
      <span className="flex min-w-0 flex-1 gap-x-2 max-sm:flex-col">
        {link({
          title: name,
          className: 'max-w-[65%] truncate max-sm:max-w-full after:absolute after:inset-0',
          children: <bdi>{name}</bdi>,
        })}
        <bdi className="min-w-0 flex-1 truncate text-soft max-sm:text-xs">{note}</bdi>
      </span>
      <span className="flex shrink-0 items-center gap-3 text-soft">{aside}</span>
    </div>
  )
}

function countText({ count, isMore }: Count): string {
  return isMore ? `${count}+` : String(count)
}
