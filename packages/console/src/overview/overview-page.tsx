import type { ApprovalCard } from '@tacho/contract/operator/approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { UrgentAlerts } from '../alerts/urgent.tsx'
import { useRequester } from '../approvals/requester.tsx'
import { GetStartedLink } from '../get-started/get-started-link.tsx'
import { RunStatusChip, statusWord } from '../runs/run-status.tsx'
import { Countdown } from '../ui/countdown.tsx'
import { addCosts, Cost, costText, NO_COSTS } from '../ui/cost.tsx'
import { compact, counted } from '../ui/format.ts'
import { Empty, PagePending, Skeleton, Trouble } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { useTitle } from '../ui/title.ts'
import {
  useNewestRuns,
  useOpenIssues,
  useRunsOfDay,
  useUsageOfDay,
  useWaitingApprovals,
  type Count,
} from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment')
const AGENTS_SHOWN = 8

export function OverviewPage() {
  const { place } = route.useRouteContext()
  const newest = useNewestRuns(place.environment.id)
  useTitle('Overview')

  if (newest.error) return <Trouble error={newest.error} retry={() => void newest.refetch()} />
  if (newest.isPending) return <PagePending />
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
        <Usage />
        <NewestRuns />
      </div>
    </div>
  )
}

function RunsOfDay() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  return (
    <section aria-label="Runs of the last 24 hours" className="mt-4 overflow-hidden rounded-xl border border-line">
      <div className="grid grid-cols-2 gap-px bg-line sm:grid-cols-4">
        {useRunsOfDay(place.environment.id).map(({ status, count }) => (
          <Link
            key={status}
            to="/w/$workspace/$environment/runs"
            params={params}
            search={{ status, since: '24h' }}
            className="bg-page px-4 py-3 hover:bg-hover"
          >
            <span className="text-sm text-soft">{statusWord(status)}, 24 h</span>
            <span className="tabular mt-0.5 block text-xl font-semibold">
              {count ? countText(count) : <Skeleton className="h-7 w-12" />}
            </span>
          </Link>
        ))}
      </div>
    </section>
  )
}

function WaitingApprovals() {
  const { place } = route.useRouteContext()
  const { data, error } = useWaitingApprovals(place.environment.id)
  return (
    <Card title="Waiting for approval" note={data && countText(data)} error={error}>
      {data?.items.length === 0 && <Nothing>No agent waits for a decision.</Nothing>}
      {data?.items.map((approval) => (
        <Waiting key={approval.id} approval={approval} />
      ))}
    </Card>
  )
}

function Waiting({ approval }: { approval: ApprovalCard }) {
  const params = route.useParams()
  const requester = useRequester(approval)
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
  return (
    <Card title="Open issues" note={data && countText(data)} error={error}>
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
    </Card>
  )
}

function Usage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useUsageOfDay(place.environment.id)
  const tokensOfAll = (data ?? []).reduce((sum, { tokens }) => sum + tokens, 0)
  const costOfAll = (data ?? []).reduce((sum, { cost }) => addCosts(sum, cost), NO_COSTS)
  return (
    <Card title="Tokens and cost, 24 h" note={data && `${compact(tokensOfAll)} · ${costText(costOfAll)}`} error={error}>
      {data?.length === 0 && <Nothing>No model was called in the last 24 hours.</Nothing>}
      {data?.slice(0, AGENTS_SHOWN).map(({ id, name, tokens, cost }) => (
        <div key={id} className={ROW}>
          <Link
            to="/w/$workspace/$environment/runs"
            params={params}
            search={{ agent: name, since: '24h' }}
            className="min-w-0 flex-1 truncate after:absolute after:inset-0"
          >
            <bdi>{name}</bdi>
          </Link>
          <span className="tabular w-20 text-right text-soft">{compact(tokens)}</span>
          <span className="tabular w-20 text-right">
            <Cost of={cost} />
          </span>
        </div>
      ))}
    </Card>
  )
}

function NewestRuns() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { data, error } = useNewestRuns(place.environment.id)
  return (
    <Card title="Newest runs" error={error}>
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
    </Card>
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

interface CardProps {
  title: string
  note?: string | undefined
  error: unknown
  children: ReactNode
}

function Card({ title, note, error, children }: CardProps) {
  return (
    <section aria-label={title}>
      <div className="flex items-baseline justify-between gap-3 border-b border-edge px-1 pb-1.5">
        <h2 className="font-semibold whitespace-nowrap">{title}</h2>
        <span className="tabular truncate text-sm text-soft">{note}</span>
      </div>
      {error ? <Nothing>This could not be read. It is tried again by itself.</Nothing> : children}
    </section>
  )
}

function Nothing({ children }: { children: ReactNode }) {
  return <p className="px-1 py-3 text-sm text-soft">{children}</p>
}

function countText({ count, isMore }: Count): string {
  return isMore ? `${count}+` : String(count)
}
