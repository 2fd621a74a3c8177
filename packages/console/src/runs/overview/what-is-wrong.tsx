/**
 * The first part of the overview: what got worse, in sentences with links to the runs; or what was checked and is well.
 */
import { endedRuns, isDifferent, type Outcomes } from '@tacho/contract/runs/statistics.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Range } from '../../web/address.ts'
import { counted, minuteOfDay, money, number, percent } from '../../web/text/format.ts'
import { failedShare } from '../../web/text/figures.tsx'
import { beforeText } from '../../web/ui/range-choice.tsx'
import type { Outcomes as Counts } from '../../web/ui/chart-series.ts'
import { Section } from '../../web/ui/section.tsx'
import { Skeleton } from '../../web/ui/states.tsx'
import { OVERVIEW_SINCE, useAskedFor, useDearer, useFailedRuns, useTime } from './queries.ts'
import { mostCause, roseWords } from './verdicts.ts'

const route = getRouteApi('/w/$workspace/$environment')

export const outcomes = ({ COMPLETED, FAILED, CANCELLED }: Counts): Outcomes => ({
  completed: COMPLETED,
  failed: FAILED,
  cancelled: CANCELLED,
})

/** Runs in the previous period. With fewer, a period without runs is not reported. */
const SILENT_AFTER = 20

const started = (counts: Counts): number => Object.values(counts).reduce((sum, one) => sum + one, 0)

/** Whether runs fail significantly more often than before; null: there is nothing to compare. */
export function failsMore(now: Outcomes, before: Outcomes): boolean | null {
  const [share, earlier] = [now, before].map((of) => ({ part: of.failed, whole: endedRuns(of) })) as [
    { part: number; whole: number },
    { part: number; whole: number },
  ]
  if (share.whole === 0 || earlier.whole === 0) return null
  return isDifferent(share, earlier) && share.part / share.whole > earlier.part / earlier.whole
}

export function WhatIsWrong({ range }: { range: Range }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const { data, error } = useTime(environmentId, range)
  const failed = useFailedRuns(environmentId, data?.runs)
  const asked = useAskedFor(environmentId, data?.runs)
  const dearer = useDearer(environmentId, data)
  const earlier = beforeText(range, OVERVIEW_SINCE)
  if (error && !data) {
    return (
      <Section title="What is wrong" error={error} className="mt-4">
        {null}
      </Section>
    )
  }
  if (!data) return <Skeleton className="mt-4 h-16" />
  const [now, before] = [outcomes(data.outcomes), outcomes(data.before)]
  const isWorse = failsMore(now, before) === true
  const ended = endedRuns(now)
  const cause = failed.data && mostCause(failed.data.items)
  const causeText = cause && { title: cause.whole, className: 'link underline', children: <bdi>{cause.text}</bdi> }
  const runs = { to: '/w/$workspace/$environment/runs', params } as const
  const ofTime = { ...data.runs, status: 'FAILED' } as const
  const failures = now.failed > 0 && (
    <Sentence key="failed" tone={isWorse ? 'red' : 'plain'}>
      <Link {...runs} search={ofTime} className="link font-medium underline">
        {failedShare(now)} of ended runs failed
      </Link>{' '}
      ({endedRuns(before) === 0 ? `none ended in ${earlier}` : `${failedShare(before)} in ${earlier}`}).
      {failed.data && cause && (
        <>
          {' Most: '}
          {cause.tool === null && cause.runId !== null ? (
            // The list has no filter for this cause, so link to its newest run.
            <Link
              to="/w/$workspace/$environment/runs/$runId"
              params={{ ...params, runId: cause.runId }}
              {...causeText}
            />
          ) : (
            <Link {...runs} search={cause.tool === null ? ofTime : { ...ofTime, tool: cause.tool }} {...causeText} />
          )}
          , {counted(cause.runs, 'run')}
          {failed.data.nextCursor !== null && ` of the newest ${number(failed.data.items.length)}`}.
        </>
      )}
    </Sentence>
  )
  const expired = asked.data !== undefined && asked.data.expired > 0 && (
    <Sentence key="expired" tone="amber">
      <Link
        to="/w/$workspace/$environment/approvals"
        params={params}
        search={{ show: 'history', status: 'EXPIRED', ...data.runs }}
        className="link font-medium underline"
      >
        {number(asked.data.expired)} of {asked.data.isMore && 'the newest '}
        {counted(asked.data.ended, 'request')} expired undecided
      </Link>
      : nobody approved or rejected {asked.data.expired === 1 ? 'it' : 'them'} in time.
    </Sentence>
  )
  const costs = (dearer.data ?? []).map(({ agent, now: cost, before: costBefore, at, deployed }) => (
    <Sentence key={agent.key} tone="amber">
      <Link
        {...runs}
        search={{ ...data.runs, agent: agent.name ?? '', order: 'cost' }}
        className="link font-medium underline"
      >
        Cost per run of <bdi>{agent.name}</bdi> {roseWords(cost / costBefore)}
      </Link>
      {at !== null && ` since ${minuteOfDay(deployed === null ? at : Date.parse(deployed.at))}`}
      {deployed && (
        <>
          , with{' '}
          <Link
            to={
              deployed.kind === 'prompt'
                ? '/w/$workspace/$environment/prompts/$promptId'
                : '/w/$workspace/$environment/policies/$policyId'
            }
            params={{ ...params, promptId: deployed.id, policyId: deployed.id }}
            className="link underline"
          >
            {deployed.kind} <bdi>{deployed.name}</bdi> v{deployed.to}
          </Link>
        </>
      )}
      : {money(cost)} a run ({money(costBefore)} in {earlier}).
    </Sentence>
  ))
  const startedBefore = started(data.before)
  // Agents that stopped running appear in no count of failures.
  const silent = started(data.outcomes) === 0 && startedBefore >= SILENT_AFTER && (
    <Sentence key="silent" tone="amber">
      <Link {...runs} search={{}} className="link font-medium underline">
        No run started
      </Link>{' '}
      in this time; {number(startedBefore)} did in {earlier}.
    </Sentence>
  )
  const wrong = [silent, isWorse && failures, expired, ...costs].filter((sentence) => sentence !== false)
  if (wrong.length > 0) {
    return (
      <Section title="What is wrong" className="mt-4">
        <ul>
          {wrong}
          {!isWorse && failures}
        </ul>
      </Section>
    )
  }
  const areRead = failed.data !== undefined && asked.data !== undefined && dearer.data !== undefined
  if (!areRead) return <Skeleton className="mt-4 h-16" />
  const [agents, requests] = [data.agents.length, asked.data?.ended ?? 0]
  return (
    <Section
      title={ended === 0 || endedRuns(before) === 0 ? 'Nothing to compare with yet' : 'Nothing got worse'}
      className="mt-4"
    >
      <ul>{failures}</ul>
      <p className="py-1 text-sm text-soft">
        Looked at: {counted(ended, 'ended run')}
        {ended > 0 && now.failed === 0 && ', none of which failed'}; {counted(requests, 'request')} for approval
        {requests > 0 && `, ${percent(0, requests)} expired undecided`}; the cost per run of {counted(agents, 'agent')}.
        Compared with {earlier}.
      </p>
    </Section>
  )
}

const SIGNS = { red: ['▲', 'text-red'], amber: ['!', 'text-amber'], plain: ['•', 'text-soft'] } as const

function Sentence({ tone, children }: { tone: keyof typeof SIGNS; children: ReactNode }) {
  const [sign, look] = SIGNS[tone]
  return (
    <li className="flex gap-2 py-1">
      <span aria-hidden className={`w-4 shrink-0 text-center font-semibold ${look}`}>
        {sign}
      </span>
      <p className="min-w-0">{children}</p>
    </li>
  )
}
