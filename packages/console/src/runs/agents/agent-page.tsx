import { whyMissing } from '@tacho/contract/record/completeness-text.ts'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { tokenWords } from '@tacho/contract/runs/run-text.ts'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode } from 'react'
import { ApprovalStatusChip } from '../../approvals/approval-summary.tsx'
import { groupRuns, usedBy } from './run-groups.ts'
import { RunStatusChip } from '../run-status.tsx'
import type { RunListAddress } from '../address.ts'
import { Copy } from '../../web/ui/copy.tsx'
import { Cost } from '../../web/text/figures.tsx'
import { costNote, costsOf, costText } from '../../web/text/costs.ts'
import { compact, counted, duration, exact, number, runName } from '../../web/text/format.ts'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Empty, PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/times.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { RangeChoice, rangeText } from '../../web/ui/range-choice.tsx'
import { isEmpty, readRange, type Range } from '../../web/address.ts'
import {
  AGENT_SINCE,
  useAgentApprovals,
  useAgentGaps,
  useAgentIssues,
  useAgentRuns,
  useVersionNames,
} from './queries.ts'
import { StopsOf } from '../../policies/deployments/stop-notes.tsx'
import { AgentMenu } from './agent-menu.tsx'
import { UsageOfTime, type UsageOfTimeProps } from './usage-of-time.tsx'

const route = getRouteApi('/w/$workspace/$environment/agents/$agent')
const RUNS_LISTED = 10
const NAMES_LISTED = 8

/** The page of an agent: outcomes of its newest runs, its usage, and open issues and requests. */
export function AgentPage() {
  const { agent } = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const range = readRange(route.useSearch())
  const isAnyTime = isEmpty(range)
  const navigate = useNavigate()
  const { data, error, refetch } = useAgentRuns(environmentId, agent, range)
  const versionNames = useVersionNames(environmentId, range)
  useTitle(agent)
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  const [newest] = data.items
  const period = (
    <RangeChoice
      label="Period"
      range={range}
      byDefault={AGENT_SINCE}
      onChange={(chosen) => void navigate({ to: '.', search: chosen, replace: true })}
    />
  )
  if (!newest) {
    return (
      <Empty title={isAnyTime ? 'No run of this agent' : 'No run of this agent in this time'} action={period}>
        No recorded run {isAnyTime ? '' : 'of this time '}is of an agent with this id or name.
      </Empty>
    )
  }
  const id = newest.agentId ?? newest.agent.name
  return (
    <div className="mx-auto w-full max-w-7xl px-3 pb-10 sm:px-5">
      <div className="flex flex-wrap items-center gap-x-2 pt-5">
        <h1 className="min-w-0 truncate text-xl font-semibold">
          <bdi>{newest.agent.name}</bdi>
        </h1>
        {newest.agentId !== null && newest.agentId !== newest.agent.name && (
          <bdi className="min-w-0 truncate font-mono text-sm text-soft">{newest.agentId}</bdi>
        )}
        <Copy text={id} label="Copy id" />
        <span className="ml-auto">{period}</span>
        <AgentMenu place={place} id={id} agent={newest.agent} className="" />
      </div>
      <StopsOf place={place} scope="agent" names={[id, newest.agent.name]} />
      <Numbers runs={data.items} isAll={data.nextCursor === null} range={range} agent={id} />
      <UsageOfTime environmentId={environmentId} agentId={newest.agent.id} agent={id} range={range} />
      <div className="grid grid-cols-1 gap-x-10 lg:grid-cols-2">
        <Section
          title="Newest runs"
          note={
            <RunsLink search={{ ...range, agent: id }} className="link">
              All runs
            </RunsLink>
          }
        >
          {data.items.slice(0, RUNS_LISTED).map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </Section>
        <div>
          <Issues environmentId={environmentId} agentId={id} />
          <Approvals environmentId={environmentId} agentId={id} />
          <MissingEvents environmentId={environmentId} agentId={newest.agent.id} agent={id} range={range} />
        </div>
        <Used
          title="Tools"
          range={range}
          agent={id}
          runs={data.items}
          of={({ tools }) => tools}
          searchOf={(tool) => ({ tool })}
        />
        <Used
          title="Models"
          range={range}
          agent={id}
          runs={data.items}
          of={({ models }) => models}
          searchOf={(model) => ({ model })}
        />
        <Used
          title="Policies that matched"
          range={range}
          agent={id}
          runs={data.items}
          of={({ policyIds }) => policyIds}
          searchOf={(policyId) => ({ policyId })}
        />
        <Used
          title="Prompt versions"
          range={range}
          agent={id}
          runs={data.items}
          of={({ promptVersionIds }) => promptVersionIds}
          searchOf={(promptVersionId) => ({ promptVersionId })}
          names={versionNames}
        />
      </div>
    </div>
  )
}

interface RunsLinkProps {
  search: RunListAddress
  className: string
  children: ReactNode
}

function RunsLink({ search, className, children }: RunsLinkProps) {
  const { workspace, environment } = route.useParams()
  return (
    <Link
      to="/w/$workspace/$environment/runs"
      params={{ workspace, environment }}
      search={search}
      className={className}
    >
      {children}
    </Link>
  )
}

interface NumbersProps {
  runs: readonly OperatorRun[]
  isAll: boolean
  range: Range
  agent: string
}

function Numbers({ runs, isAll, range, agent }: NumbersProps) {
  const [group] = groupRuns(runs, 'agent')
  if (!group) return null
  const withErrors = runs.filter(({ errorCount }) => errorCount > 0).length
  const numbers: [word: string, value: string, search: RunListAddress, note?: string][] = [
    ['Runs', number(group.runs), { agent }],
    ['Completed', number(group.completed), { agent, status: 'COMPLETED' }],
    ['Failed', number(group.failed), { agent, status: 'FAILED' }],
    ['Cancelled', number(group.cancelled), { agent, status: 'CANCELLED' }],
    ['Running', number(group.running), { agent, status: 'RUNNING' }],
    ['With errors', number(withErrors), { agent, hasErrors: true }],
    ['p95 length', group.p95 === null ? '–' : duration(group.p95), { agent }],
    ['Tokens', tokenWords(group.cost.tokens, compact), { agent }],
    ['Cost', costText(group.cost), { agent }, costNote(group.cost)],
  ]
  return (
    <>
      <p className="pt-1 text-sm text-soft">
        {isAll ? 'All' : 'The newest'} {counted(runs.length, 'run')}
        {!isEmpty(range) && `, ${rangeText(range).toLowerCase()}`}.
      </p>
      <div className="mt-3 grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-3 xl:grid-cols-9">
        {numbers.map(([word, value, search, note]) => (
          <RunsLink key={word} search={{ ...range, ...search }} className="bg-page px-4 py-3 hover:bg-hover">
            <span className="text-sm text-soft">{word}</span>
            <span title={note} className="tabular mt-0.5 block text-lg font-semibold">
              {value}
            </span>
          </RunsLink>
        ))}
      </div>
    </>
  )
}

const ROW = 'relative flex h-9 items-center gap-3 border-b border-line text-sm last:border-0 hover:bg-hover'
const MAIN = 'min-w-0 flex-1 truncate after:absolute after:inset-0'

function RunRow({ run }: { run: OperatorRun }) {
  const { workspace, environment } = route.useParams()
  return (
    <div className={ROW}>
      <span className="w-24 shrink-0">
        <RunStatusChip run={run} />
      </span>
      <Link
        to="/w/$workspace/$environment/runs/$runId"
        params={{ workspace, environment, runId: run.runId }}
        title={run.runId}
        className={MAIN}
      >
        <bdi>
          <ShownText text={runName(run)} />
        </bdi>
      </Link>
      <span className="tabular text-soft">
        <Cost of={costsOf(run)} />
      </span>
      <span className="w-16 text-right text-soft">
        <Time at={run.startedAt} />
      </span>
    </div>
  )
}

function Issues({ environmentId, agentId }: { environmentId: string; agentId: string }) {
  const { workspace, environment } = route.useParams()
  const { data } = useAgentIssues(environmentId, agentId)
  return (
    <Section title="Open issues">
      {data?.length === 0 && <Nothing>No open issue affects this agent.</Nothing>}
      {data?.map((issue) => (
        <div key={issue.id} className={ROW}>
          <Link
            to="/w/$workspace/$environment/issues/$issueId"
            params={{ workspace, environment, issueId: issue.id }}
            title={issue.title}
            className={MAIN}
          >
            <bdi>{issue.title}</bdi>
          </Link>
          <span
            className="tabular text-soft"
            title={`${counted(issue.occurrences, 'time')} in runs of ${counted(issue.affectedAgents, 'agent')}`}
          >
            {issue.ofAgent === null ? '–' : `${number(issue.ofAgent.occurrences)}×`}
          </span>
          <span className="w-16 text-right text-soft">
            <Time at={issue.ofAgent?.lastSeenAt ?? issue.lastSeenAt} />
          </span>
        </div>
      ))}
    </Section>
  )
}

function Approvals({ environmentId, agentId }: { environmentId: string; agentId: string }) {
  const { workspace, environment } = route.useParams()
  const { data } = useAgentApprovals(environmentId, agentId)
  return (
    <Section title="Approvals">
      {data?.items.length === 0 && <Nothing>This agent asked for no approval.</Nothing>}
      {data?.items.map((approval) => (
        <div key={approval.id} className={ROW}>
          <span className="w-24 shrink-0">
            <ApprovalStatusChip status={approval.status} />
          </span>
          <Link
            to="/w/$workspace/$environment/approvals/$approvalId"
            params={{ workspace, environment, approvalId: approval.id }}
            search={approval.status === 'PENDING' ? {} : { show: 'history' }}
            className={`font-mono ${MAIN}`}
          >
            <bdi>{approval.toolName}</bdi>
          </Link>
          <span className="w-16 text-right text-soft">
            <Time at={approval.createdAt} />
          </span>
        </div>
      ))}
    </Section>
  )
}

/** Clients that lose events, with numbers and reasons. */
function MissingEvents({ environmentId, agentId, agent, range }: UsageOfTimeProps) {
  const { data, error } = useAgentGaps(environmentId, agentId, range)
  const search: RunListAddress = { ...range, agent, completeness: 'GAPS' }
  return (
    <Section
      title="Missing events"
      error={error}
      note={
        data && data.items.length > 0 ? (
          <RunsLink search={search} className="link">
            Runs with missing events
          </RunsLink>
        ) : undefined
      }
    >
      {data?.items.length === 0 && <Nothing>No event of this time is known to be missing.</Nothing>}
      {data?.items.map((sum) => (
        <div key={sum.key} className="border-b border-line py-1.5 text-sm last:border-0">
          <p className="flex gap-3">
            <bdi className="min-w-0 flex-1 truncate font-mono">{sum.name}</bdi>
            <span className="tabular text-amber">
              {number(sum.recorded - sum.arrived)} of {counted(sum.recorded, 'event')}, {counted(sum.runs, 'run')}
            </span>
          </p>
          <p className="text-soft">{whyMissing(sum, (iso) => exact(Date.parse(iso)))}</p>
        </div>
      ))}
      {data && data.lookedTo !== null && (
        <Nothing>
          Only runs since <Time at={data.lookedTo} /> are counted.
        </Nothing>
      )}
    </Section>
  )
}

interface UsedProps {
  title: string
  range: Range
  agent: string
  runs: readonly OperatorRun[]
  of: (run: OperatorRun) => readonly string[]
  searchOf: (name: string) => RunListAddress
  /** Display names where they differ from the recorded names. */
  names?: ReadonlyMap<string, string>
}

/** Names that the runs used. Each links to the runs with that name. */
function Used({ title, range, agent, runs, of, searchOf, names }: UsedProps) {
  const used = usedBy(runs, of)
  if (used.length === 0) return null
  return (
    <Section title={title} note={used.length > NAMES_LISTED ? `${NAMES_LISTED} of ${used.length}` : undefined}>
      {used.slice(0, NAMES_LISTED).map(([name, count]) => (
        <div key={name} className={ROW}>
          <RunsLink
            search={{ ...range, agent, ...searchOf(name) }}
            className={`${names?.has(name) ? '' : 'font-mono'} ${MAIN}`}
          >
            <bdi>{names?.get(name) ?? name}</bdi>
          </RunsLink>
          <span className="tabular text-soft">{counted(count, 'run')}</span>
        </div>
      ))}
    </Section>
  )
}
