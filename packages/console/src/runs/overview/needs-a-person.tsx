/** Items that need a person, the most urgent first: pending requests, regressed issues, stalled runs, lost events. */
import { getRouteApi, Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { UnansweredRequests } from '@tacho/contract/approvals/asking-policies.ts'
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import type { IssueSummary } from '@tacho/contract/issues/issue.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { saysInput, sentenceText } from '@tacho/contract/approvals/sentence-text.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { whyLook } from '@tacho/contract/issues/failure.ts'
import { allItems } from '@tacho/client/items.ts'
import type { ApiKey } from '@tacho/contract/tenants/api-key.ts'
import type { RunListAddress } from '../address.ts'
import { useUnanswered } from '../../approvals/queries.ts'
import { requesterOf } from '../../approvals/approval-summary.tsx'
import { State } from '../../web/ui/state.tsx'
import { type StateName } from '../../web/text/state-styles.ts'
import { Countdown, Time } from '../../web/text/times.tsx'
import { counted, number, runName } from '../../web/text/format.ts'
import type { Range } from '../../web/address.ts'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { countText, useOpenIssues, useRunsThat, useWaitingApprovals, type Count } from './queries.ts'
import { api } from '../../web/api.ts'

const route = getRouteApi('/w/$workspace/$environment')

export function NeedsAPerson({ range }: { range: Range }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const approvals = useWaitingApprovals(environmentId)
  const issues = useOpenIssues(environmentId)
  const stalled = useRunsThat(environmentId, range, { activity: 'STALLED' })
  const gaps = useRunsThat(environmentId, range, { completeness: 'GAPS' })
  const unanswered = useUnanswered(environmentId)
  const expired = unanswered.data?.items.reduce((sum, one) => sum + one.expired, 0) ?? 0
  const all = [approvals, issues, stalled, gaps]
  const error = all.find((query) => query.error !== null && query.data === undefined)?.error
  const isRead = all.every(({ data }) => data !== undefined)
  const returned = issues.data?.returned ?? []
  const runs = (count: Count | undefined, word: string, search: RunListAddress) =>
    count !== undefined &&
    count.count > 0 && (
      <Link to="/w/$workspace/$environment/runs" params={params} search={search} className="link">
        {countText(count)} {word}
      </Link>
    )
  const waiting = approvals.data !== undefined && approvals.data.count > 0 && (
    <Link to="/w/$workspace/$environment/approvals" params={params} className="link">
      {countText(approvals.data)} waiting
    </Link>
  )
  const counts = [
    waiting,
    expired > 0 && (
      <Link
        to="/w/$workspace/$environment/approvals"
        params={params}
        search={{ show: 'history', status: 'EXPIRED' }}
        className="link"
      >
        {number(expired)}
        {unanswered.data?.capped ? '+' : ''} unanswered in 7 days
      </Link>
    ),
    runs(stalled.data, 'stalled', { ...range, status: 'STALLED' }),
    runs(gaps.data, 'with missing events', { ...range, completeness: 'GAPS' }),
  ].filter((link) => link !== false)
  const note = counts.map((link, index) => (
    <span key={index}>
      {index > 0 && ' · '}
      {link}
    </span>
  ))
  const isQuiet = isRead && counts.length === 0 && returned.length === 0
  return (
    <Section title="Needs a person" note={note} error={error} className="mt-4">
      {isQuiet && <Nothing>Nothing waits for a person: no request, no issue that came back, no stalled run.</Nothing>}
      {approvals.data?.items.map((approval) => (
        <Waiting key={approval.id} approval={approval} />
      ))}
      {unanswered.data?.items.slice(0, SHOWN).map((one) => (
        <Unanswered key={one.policyId ?? ''} of={one} />
      ))}
      {returned.slice(0, SHOWN).map((issue) => (
        <CameBack key={issue.id} issue={issue} />
      ))}
      {stalled.data?.items.map((run) => (
        <RunRow key={run.id} run={run} is="STALLED" note={whyLook(run, Date.now()) ?? ''} />
      ))}
      {gaps.data?.items.map((run) => (
        <RunRow key={run.id} run={run} is="GAPS" note={missingText(run)} />
      ))}
    </Section>
  )
}

const SHOWN = 3

type UnansweredOfPolicy = UnansweredRequests['items'][number]

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
      chip={<State is="WAITING" />}
      name={printable(sentenceText(approval.sentence))}
      // Begin with the subject, because a phone cuts the end.
      note={printable(
        [approval.reason, saysInput(approval.sentence) ? null : approval.inputInShort, requester]
          .filter((text) => text !== null)
          .join(' · '),
      )}
      aside={<Countdown until={approval.expiresAt} />}
    />
  )
}

/** A policy with unanswered requests, which stops agents without protecting anything. */
function Unanswered({ of: { policyId, expired, withdrawn, lastExpiredAt } }: { of: UnansweredOfPolicy }) {
  const params = route.useParams()
  return (
    <Row
      link={(props) => (
        <Link
          to="/w/$workspace/$environment/approvals"
          params={params}
          search={{ show: 'history', status: 'EXPIRED', ...(policyId !== null && { policy: policyId }) }}
          {...props}
        />
      )}
      chip={<State is="UNANSWERED" />}
      name={printable(policyId ?? 'Requests without a policy')}
      note={`nobody answered ${counted(expired, 'request')}${withdrawn > 0 ? `, ${number(withdrawn)} of them withdrawn` : ''}`}
      aside={<Time at={lastExpiredAt} />}
    />
  )
}

function CameBack({ issue }: { issue: IssueSummary }) {
  const params = route.useParams()
  return (
    <Row
      link={(props) => (
        <Link to="/w/$workspace/$environment/issues/$issueId" params={{ ...params, issueId: issue.id }} {...props} />
      )}
      chip={<State is="CAME_BACK" />}
      name={issue.title}
      note={`${number(issue.occurrences)}×`}
      aside={<Time at={issue.lastRegressionAt ?? issue.lastSeenAt} />}
    />
  )
}

function RunRow({ run, is, note }: { run: OperatorRun; is: StateName; note: string }) {
  const params = route.useParams()
  return (
    <Row
      link={(props) => (
        <Link to="/w/$workspace/$environment/runs/$runId" params={{ ...params, runId: run.runId }} {...props} />
      )}
      chip={<State is={is} />}
      name={runName(run)}
      note={`${run.agent.name} · ${note}`}
      aside={<Time at={run.startedAt} />}
    />
  )
}

const missingText = ({ completeness: { recorded, arrived } }: OperatorRun): string =>
  `${number(recorded - arrived)} of ${counted(recorded, 'event')} missing`

/** OpenTelemetry requests that were permanently rejected. Exporters drop them, and the runs look complete. */

const SHOWN_MS = 7 * 86_400_000
const REFRESH_MS = 60_000

export function LostRequests() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const { data } = useQuery({
    queryKey: ['api keys', environmentId],
    queryFn: () => allItems(api.listApiKeys, { params: { environmentId }, query: { limit: 200 } }),
    refetchInterval: REFRESH_MS,
  })
  const lost = (data ?? []).filter(({ lastLostAt }) => isRecent(lastLostAt))
  if (lost.length === 0) return null
  return (
    <Section title="Lost OpenTelemetry requests" className="mt-4">
      {lost.map((key) => (
        <Row
          key={key.id}
          link={(props) => <Link to="/w/$workspace/$environment/settings/api-keys" params={params} {...props} />}
          chip={<State is="LOST">{counted(key.lostRequests, 'request')}</State>}
          name={key.name}
          note={printable(key.lastLostReason ?? '')}
          aside={key.lastLostAt && <Time at={key.lastLostAt} />}
        />
      ))}
    </Section>
  )
}

function isRecent(at: ApiKey['lastLostAt']): boolean {
  return at !== null && Date.now() - Date.parse(at) < SHOWN_MS
}

const ROW =
  'relative flex min-h-10 items-center max-sm:py-1 gap-3 border-b border-line px-1 text-sm last:border-0 hover:bg-hover'

interface LinkProps {
  title: string
  className: string
  children: ReactNode
}

interface RowProps {
  /** Link of the row. */
  link: (props: LinkProps) => ReactNode
  chip?: ReactNode
  name: string
  note: string
  aside: ReactNode
}

/** A row of the overview, with a link. */
export function Row({ link, chip, name, note, aside }: RowProps) {
  return (
    <div className={ROW}>
      {chip && <span className="w-32 shrink-0 max-sm:w-auto">{chip}</span>}
      <span className="flex min-w-0 flex-1 gap-x-2 max-sm:flex-col">
        {link({
          title: name,
          className:
            'max-w-[65%] truncate max-sm:line-clamp-2 max-sm:max-w-full max-sm:whitespace-normal after:absolute after:inset-0',
          children: <bdi>{name}</bdi>,
        })}
        <bdi className="min-w-0 flex-1 truncate text-soft max-sm:text-xs">{note}</bdi>
      </span>
      <span className="flex shrink-0 items-center gap-3 text-soft">{aside}</span>
    </div>
  )
}
