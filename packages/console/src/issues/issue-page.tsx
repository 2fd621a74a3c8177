import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Issue, Facts as IssueFacts } from '@tacho/contract/issues/issue.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { MarkRow, useMarks } from '../policies/deployments/marks.tsx'
import { tapeOfComment } from '@tacho/contract/issues/failure.ts'
import { Code, Copy } from '../web/ui/copy.tsx'
import { Fact, Facts, Nothing, Section } from '../web/ui/section.tsx'
import { counted, number, duration } from '../web/text/format.ts'
import { PagePending, Trouble, isBlocking, Skeleton } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { useTitle } from '../web/ui/browser.ts'
import { Activity, COMMENT_ID } from './activity.tsx'
import { IssueActs } from './issue-acts.tsx'
import { SplitDialog } from './issue-dialogs.tsx'
import { State } from '../web/ui/state.tsx'
import { stateWord } from '../web/text/state-styles.ts'
import { Occurrence } from './occurrence.tsx'
import { Occurrences } from './occurrences.tsx'
import { issueQuery, useActivity, useTrends, useAffectedAgents, useAffectedRuns, useChangesBefore } from './queries.ts'
import { RegressionChip, Trend } from './trend.tsx'
import { Status } from '../runs/run-status.tsx'
import { Button, More } from '../web/ui/button.tsx'
import { useKeys } from '../web/ui/keys.ts'

const DAY_MS = 86_400_000
/** Rightmost position of a mark, from 0 to 1, so that the mark of a recent deployment stays inside the page. */
const LAST_PLACE = 0.96
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
        <Acts environmentId={environmentId} workspaceId={place.workspace.id} issue={data} />
      )}
      <div className="grid grid-cols-1 gap-x-10 lg:grid-cols-[minmax(0,1fr)_20rem]">
        <div className="min-w-0">
          <Occurrence key={data.id} environmentId={environmentId} issue={data} />
          <Activity environmentId={environmentId} issueId={data.id} canComment={place.may('approver')} />
          <Occurrences environmentId={environmentId} issueId={data.id} />
          <WhyGrouped issue={data} />
        </div>
        <aside aria-label="Around the issue" className="min-w-0">
          <Numbers issue={data} environmentId={environmentId} />
          <ChangesBefore environmentId={environmentId} firstSeenAt={data.firstSeenAt} />
          <Affected environmentId={environmentId} issueId={data.id} />
          <TestOfIssue environmentId={environmentId} issueId={data.id} />
        </aside>
      </div>
    </div>
  )
}

function Acts({ environmentId, workspaceId, issue }: { environmentId: string; workspaceId: string; issue: Issue }) {
  const navigate = useNavigate()
  const [isSplitting, setSplitting] = useState(false)
  const goTo = (issueId: string) =>
    navigate({ to: '../$issueId', from: '/w/$workspace/$environment/issues/$issueId', params: { issueId } })
  useKeys({ c: { name: 'Comment on this issue', act: () => document.getElementById(COMMENT_ID)?.focus() } })
  return (
    <IssueActs
      environmentId={environmentId}
      workspaceId={workspaceId}
      targets={[issue]}
      onDone={(act) => act.is === 'merge' && goTo(act.into)}
      className="mt-3"
    >
      {issue.groups.length > 1 && (
        <Button look="quiet" onClick={() => setSplitting(true)}>
          Split…
        </Button>
      )}
      {isSplitting && (
        <SplitDialog
          params={{ environmentId, issueId: issue.id }}
          groups={issue.groups}
          onClose={() => setSplitting(false)}
          onDone={async (issueId) => {
            setSplitting(false)
            await goTo(issueId)
          }}
        />
      )}
    </IssueActs>
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
        <State is={issue.state} />
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
  const [window] = useState(() => ({ from: Date.now() - LIMITS.issueTrendDays * DAY_MS, to: Date.now() }))
  const marks = useMarks(environmentId, window)
  return (
    <section aria-label="Numbers" className="mt-6">
      <p className="mb-1 text-xs text-soft">Detections per day</p>
      <MarkRow
        marks={marks}
        placeOf={(time) => Math.min(LAST_PLACE, (time - window.from) / (window.to - window.from))}
      />
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
        <Fact name="End users">{usersText(issue)}</Fact>
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

/** The number of affected users. In an issue with many runs, only those of the newest runs are counted. */
function usersText({ affectedUsers, affectedRuns }: Issue): string {
  if (affectedUsers === undefined) return '–'
  const isPart = affectedRuns > LIMITS.issueUserRuns
  return `${number(affectedUsers)}${isPart ? ` in the newest ${LIMITS.issueUserRuns} runs` : ''}`
}

const ROW = 'relative flex h-8 items-center gap-3 border-b border-line text-sm last:border-0 hover:bg-hover'

/** The agents and runs with this issue. */
function Affected({ environmentId, issueId }: { environmentId: string; issueId: string }) {
  const params = route.useParams()
  const agents = useAffectedAgents(environmentId, issueId)
  const runs = useAffectedRuns(environmentId, issueId)
  return (
    <>
      <Section title="Agents">
        <ul>
          {agents.items.map(({ agentId, name, occurrences }) => (
            <li key={agentId} className={ROW}>
              <Link
                to="/w/$workspace/$environment/agents/$agent"
                params={{ workspace: params.workspace, environment: params.environment, agent: agentId }}
                className="link min-w-0 flex-1 truncate after:absolute after:inset-0"
              >
                <bdi>{name ?? agentId}</bdi>
              </Link>
              <span className="tabular text-soft">{occurrences}×</span>
            </li>
          ))}
        </ul>
        <More list={agents} />
      </Section>
      <Section title="Runs">
        {!runs.isPending && runs.items.length === 0 && <Nothing>No detection names a run.</Nothing>}
        <ul>
          {runs.items.map(({ runId, internalRunId, status, occurrences }) => (
            <li key={runId} className={ROW}>
              {internalRunId === null ? (
                <bdi className="min-w-0 flex-1 truncate text-soft">{runId}</bdi>
              ) : (
                <Link
                  to="/w/$workspace/$environment/runs/$runId"
                  params={{ ...params, runId }}
                  className="link min-w-0 flex-1 truncate after:absolute after:inset-0"
                >
                  <bdi>{runId}</bdi>
                </Link>
              )}
              {status && <Status status={status} />}
              <span className="tabular text-soft">{occurrences}×</span>
            </li>
          ))}
        </ul>
        <More list={runs} />
      </Section>
    </>
  )
}

/** Commands that turn the issue's newest run into a test, and tapes that were made this way. */
function TestOfIssue({ environmentId, issueId }: { environmentId: string; issueId: string }) {
  const { items } = useActivity(environmentId, issueId)
  const tapes = items.flatMap(({ id, at, text }) => {
    const tape = text === null ? null : tapeOfComment(text)
    return tape ? [{ id, at, ...tape }] : []
  })
  return (
    <Section title="Make a test of it">
      <Code
        label="Commands that make a test of the issue"
        text={`tacho tape --from-issue ${issueId} -o tapes\ntacho test tapes -- node agent.js`}
      />
      {tapes.length > 0 && (
        <ul aria-label="Tapes of the issue" className="mt-2">
          {tapes.map(({ id, at, run, checksum }) => (
            <li key={id} className="border-b border-line py-1.5 text-sm last:border-0">
              <p className="truncate">
                Tape <code className="font-mono">{checksum.slice(0, 12)}</code> of <bdi>{run}</bdi>
              </p>
              <p className="text-soft">
                <Time at={at} />
              </p>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

/** Deployments shortly before the first detection, because one of them is often the cause. */
function ChangesBefore({ environmentId, firstSeenAt }: { environmentId: string; firstSeenAt: string }) {
  const { data } = useChangesBefore(environmentId, firstSeenAt)
  const seen = Date.parse(firstSeenAt)
  return (
    <Section title="What changed before">
      {!data ? (
        <Skeleton className="h-12" />
      ) : data.changes.length === 0 ? (
        <Nothing>
          {data.isPartial
            ? 'Too many deployments since to look back that far.'
            : 'No prompt or policy was deployed in the week before the first detection.'}
        </Nothing>
      ) : (
        <ul>
          {data.changes.map(({ publication, kind, id, name, from, to, at, by, note }) => (
            <li key={`${publication} ${kind} ${id}`} className="border-b border-line py-1.5 text-sm last:border-0">
              <p>
                {kind === 'policy' ? 'Policy' : 'Prompt'} <bdi className="font-medium">{name}</bdi>{' '}
                <span className="text-soft">{changeText(from, to)}</span>
              </p>
              <p className="text-soft">
                {duration(seen - Date.parse(at))} before, by <bdi>{by}</bdi>
              </p>
              {note !== null && (
                <p dir="auto" className="text-soft">
                  {note}
                </p>
              )}
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

/** Shows a change of version. Null means that no version was deployed. */
function changeText(from: string | null, to: string | null): string {
  if (from === null) return `deployed, version ${to ?? ''}`
  return to === null ? `removed, was version ${from}` : `version ${from} → ${to}`
}

const NAMES: Record<keyof IssueFacts, string> = {
  detectionType: 'Type',
  errorType: 'Error',
  message: 'Message',
  cause: 'Cause',
  frame: 'In the code',
  agent: 'Agent',
  toolName: 'Tool',
  tools: 'Tools',
  policyId: 'Policy',
  reasonCode: 'Reason code',
  model: 'Model',
}

/** The facts from which the issue's hash is made: detections with equal facts belong to the same issue. */
function WhyGrouped({ issue: { groups } }: { issue: Issue }) {
  return (
    <Section
      title="Why these are grouped"
      note={groups.length > 1 ? `${groups.length} sets of facts, merged by people` : undefined}
    >
      <p className="mb-2 text-sm text-soft">
        {groups.length > 1
          ? 'A detection belongs here when its facts are one of these sets.'
          : 'A detection belongs here when it has exactly these facts.'}
        {groups.some(({ facts }) => facts.message !== undefined) && ' … stands for the parts of a message that vary.'}
      </p>
      <ul className="flex flex-col gap-2">
        {groups.map(({ fingerprint, facts, occurrences }) => (
          <li key={fingerprint} className="rounded-lg border border-line px-3 py-2">
            <Facts>
              {(Object.keys(NAMES) as (keyof IssueFacts)[]).map((name) => {
                const value = facts[name]
                if (value === undefined) return null
                return (
                  <Fact key={name} name={NAMES[name]}>
                    <bdi className="font-mono text-[0.8125rem]">
                      {typeof value === 'string' ? value : value.join(', ')}
                    </bdi>
                  </Fact>
                )
              })}
            </Facts>
            <p className="mt-1.5 flex items-center gap-2 text-xs text-soft">
              <span className="whitespace-nowrap">{counted(occurrences, 'time')}</span>
              <code className="min-w-0 truncate font-mono">{fingerprint}</code>
              <Copy text={fingerprint} />
            </p>
          </li>
        ))}
      </ul>
    </Section>
  )
}
