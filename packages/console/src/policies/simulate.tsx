import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { Simulation, CallState, SimulationResult as Result } from '@tacho/contract/policies/simulation.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { callInShort } from '@tacho/contract/runs/call-text.ts'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Choice } from '../web/ui/filters.tsx'
import { number, counted, minuteOfDay } from '../web/text/format.ts'
import { Refused } from '../web/ui/states.tsx'
import { Section } from '../web/ui/section.tsx'
import type { Draft } from './draft.ts'
import { useSimulation } from './queries.ts'
import { eventQuery } from '../runs/queries.ts'
import { ShownText } from '../web/text/shown-text.tsx'
import { Time } from '../web/text/times.tsx'

/** Id of the simulate button, which the page of a new policy links to. */
export const SIMULATE_ID = 'simulate'
const DAYS = [1, 7, LIMITS.simulationDaysMax] as const

interface Props {
  environment: { id: string; name: string }
  draft: Draft
  canSimulate: boolean
  /** Id of the simulation to show. */
  simulationId: string | undefined
  onStart: (simulationId: string) => void
}

/** Simulates the draft on recorded calls. */
export function Simulate({ environment, draft, canSimulate, simulationId, onStart }: Props) {
  const [days, setDays] = useState<number>(7)
  const environmentId = environment.id
  const { data } = useSimulation(environmentId, simulationId ?? null)
  const start = useMutation({
    mutationFn: () => {
      const { condition, severity, action, onError } = draft
      const body = { condition, severity, action, onError, days }
      return api.createSimulation({ params: { environmentId }, body })
    },
    onSuccess: ({ id }) => onStart(id),
  })
  const cancel = useMutation({
    mutationFn: (id: string) => api.cancelSimulation({ params: { environmentId, simulationId: id } }),
  })
  const isRunning = data?.status === 'QUEUED' || data?.status === 'RUNNING'
  return (
    <Section title="Simulation" note={`on the tool calls of ${environment.name}`}>
      {canSimulate ? (
        <div className="flex flex-wrap items-center gap-2">
          <Choice
            label="Period"
            value={String(days)}
            options={DAYS.map((count) => [String(count), count === 1 ? 'The last day' : `The last ${count} days`])}
            onChange={(chosen) => setDays(Number(chosen))}
          />
          <Button
            id={SIMULATE_ID}
            busy={start.isPending || isRunning}
            disabled={draft.condition.trim() === ''}
            onClick={() => start.mutate()}
          >
            Simulate
          </Button>
          {isRunning && (
            <Button look="quiet" onClick={() => cancel.mutate(data.id)}>
              Cancel
            </Button>
          )}
          <Refused error={start.error ?? cancel.error} className="w-full" />
        </div>
      ) : (
        <p className="text-sm text-soft">An admin of this workspace can simulate a policy.</p>
      )}
      <div role="status" className="mt-3 text-sm">
        {data && isRunning && <Progress simulation={data} />}
        {data?.status === 'FAILED' && <p className="text-red">The simulation failed: {data.error}</p>}
        {data?.status === 'CANCELLED' && <p className="text-soft">The simulation was cancelled.</p>}
      </div>
      {data?.result && (
        <>
          {(data.condition !== draft.condition || data.action !== draft.action || data.onError !== draft.onError) && (
            <p className="mb-2 text-sm text-amber">! The draft has changed since this simulation.</p>
          )}
          <SimulationResult result={data.result} />
        </>
      )}
    </Section>
  )
}

function Progress({ simulation: { scanned, total } }: { simulation: Simulation }) {
  return (
    <>
      <progress
        aria-label="Calls examined"
        value={scanned}
        max={total ?? undefined}
        className="h-2 w-full accent-accent-fill"
      />
      <p className="tabular text-soft">
        {number(scanned)}
        {total === null ? '' : ` of ${number(total)}`} calls examined
      </p>
    </>
  )
}

const route = getRouteApi('/w/$workspace/$environment')
/** In the order of the table. Importing the contract's list would make the page larger. */
const CALL_STATES: readonly CallState[] = ['ran', 'held', 'blocked', 'neverRan']
const RUNS_SHOWN = 10
/** Maximum number of tools without a hit to name. */
const TOOLS_NAMED = 5
const INPUT_CHARS = 300

function SimulationResult({ result }: { result: Result }) {
  const params = route.useParams()
  const hitTools = result.tools.filter(({ hits }) => hits > 0)
  const others = result.tools.filter(({ hits }) => hits === 0)
  return (
    <div className="flex flex-col gap-4 text-sm">
      <p>
        <b className="text-base">
          {result.hits === 0
            ? `It would not have acted on any of ${counted(result.calls, 'call')}.`
            : `It would have acted on ${number(result.hits)} of ${counted(result.calls, 'call')}, in ${counted(result.runs, 'run')}.`}
        </b>
        {result.failures > 0 && (
          <span className="block text-amber">
            ! The condition could not be evaluated for {counted(result.failures, 'call')}:{' '}
            {result.failureReasons.map(({ message, count }) => `${message} (${number(count)})`).join('; ')}
          </span>
        )}
      </p>
      {result.warnings.length > 0 && (
        <ul className="rounded-lg bg-amber-wash px-3 py-2 text-amber">
          {result.warnings.map(({ code, field, message }) => (
            <li key={`${code} ${field}`}>! {message}</li>
          ))}
        </ul>
      )}
      {result.askedPerDay !== undefined && result.hits > 0 && (
        <p>
          It would ask {counted(result.askedPerDay, 'time')} a day, on average since{' '}
          {result.askedSince === undefined ? 'the first of these calls' : minuteOfDay(Date.parse(result.askedSince))}.
        </p>
      )}
      {result.past && <Past past={result.past} />}
      {result.states && <States states={result.states} />}
      {result.largest !== undefined && result.largest.length > 0 && (
        <div>
          <p className="text-xs text-soft">The largest it hits</p>
          <ul>
            {result.largest.map(({ runId, eventId, message }) => (
              <li key={`${runId} ${eventId}`}>
                <Link
                  to="/w/$workspace/$environment/runs/$runId"
                  params={{ ...params, runId }}
                  search={{ step: eventId }}
                  className="link"
                >
                  <ShownText text={message} />
                </Link>
              </li>
            ))}
          </ul>
        </div>
      )}
      <Agreement approvals={result.approvals} />
      {hitTools.length > 0 && (
        <table aria-label="Tools" className="w-full">
          <thead>
            <tr className="border-b border-line text-left text-xs text-soft">
              <th className="py-1 font-normal">Tool</th>
              <th className="py-1 pl-4 text-right font-normal">Calls</th>
              <th className="py-1 pl-4 text-right font-normal">Hits</th>
            </tr>
          </thead>
          <tbody>
            {hitTools.map(({ toolName, calls, hits }) => (
              <tr key={toolName} className="border-b border-line">
                <td className="max-w-0 w-full truncate py-1 font-mono">
                  <bdi>{toolName}</bdi>
                </td>
                <td className="py-1 pl-4 text-right">{number(calls)}</td>
                <td className="py-1 pl-4 text-right font-medium">{number(hits)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {others.length > 0 && (
        <p className="text-soft">
          No hit among the calls of{' '}
          {others.slice(0, TOOLS_NAMED).map(({ toolName, calls }, index) => (
            <span key={toolName}>
              {index > 0 && ', '}
              <bdi className="font-mono text-xs">{toolName || 'tools without a name'}</bdi> ({number(calls)})
            </span>
          ))}
          {others.length > TOOLS_NAMED && `, and ${number(others.length - TOOLS_NAMED)} more`}.
        </p>
      )}
      {result.hitRuns.length > 0 && (
        <div>
          <p className="text-xs text-soft">Runs with a hit</p>
          <ul>
            {result.hitRuns.slice(0, RUNS_SHOWN).map(({ id, runId, eventId, toolName, at }) => (
              <li
                key={id}
                className="relative flex flex-wrap items-baseline gap-x-2 border-b border-line py-1 last:border-0 hover:bg-hover"
              >
                <bdi className="max-w-40 truncate font-mono">{toolName}</bdi>
                <HitInput runId={runId} eventId={eventId} />
                <span className="text-soft">
                  <Time at={at} />
                </span>
                <Link
                  to="/w/$workspace/$environment/runs/$runId"
                  params={{ ...params, runId }}
                  search={{ step: eventId }}
                  className="w-full truncate text-xs text-soft after:absolute after:inset-0 max-sm:order-2"
                >
                  in <bdi>{runId}</bdi>
                </Link>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  )
}

const STATE_WORDS: Record<CallState, string> = {
  ran: 'Ran',
  held: 'Held for a person, and did not run',
  blocked: 'Blocked by a policy',
  neverRan: 'Never started by the agent',
}

/** The data behind an answer about the past of runs. */
function Past({ past: { unknown, tools, labelledTools, unlabelled } }: { past: NonNullable<Result['past']> }) {
  return (
    <p className="text-soft">
      {unknown > 0 && (
        <span className="block text-amber">
          ! {counted(unknown, 'call')} unknown: what they depend on is masked, shortened or not recorded.
        </span>
      )}
      Labels cover {number(labelledTools)} of {counted(tools, 'tool')}.
      {unlabelled.length > 0 && (
        <>
          {' '}
          Without labels: <bdi className="font-mono text-xs">{unlabelled.slice(0, 5).join(', ')}</bdi>
          {unlabelled.length > 5 && ', …'}
        </>
      )}
    </p>
  )
}

/** Counts the simulated calls by outcome. */
function States({ states }: { states: NonNullable<Result['states']> }) {
  return (
    <table aria-label="What became of the calls" className="w-full">
      <thead>
        <tr className="border-b border-line text-left text-xs text-soft">
          <th className="py-1 font-normal">What became of the calls</th>
          <th className="py-1 pl-4 text-right font-normal">Calls</th>
          <th className="py-1 pl-4 text-right font-normal">Hits</th>
        </tr>
      </thead>
      <tbody>
        {CALL_STATES.map((state) => (
          <tr key={state} className="border-b border-line">
            <td className="py-1">{STATE_WORDS[state]}</td>
            <td className="py-1 pl-4 text-right">{number(states[state].calls)}</td>
            <td className="py-1 pl-4 text-right font-medium">{number(states[state].hits)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** The input of a call that the condition matches, on one line. */
function HitInput({ runId, eventId }: { runId: string; eventId: string }) {
  const { place } = route.useRouteContext()
  const { data } = useQuery(eventQuery(place.environment.id, runId, eventId))
  const payload = data?.event.payload
  const input = isObject(payload) ? callInShort(payload, INPUT_CHARS) : ''
  return (
    <bdi className="h-5 min-w-0 flex-1 truncate font-mono text-xs max-sm:order-1 max-sm:basis-full" title={input}>
      {input}
    </bdi>
  )
}

/** Compares the policy's decisions with those of people. */
function Agreement({ approvals: { hits, others } }: Pick<Result, 'approvals'>) {
  const asked = hits.approved + hits.rejected + hits.expired
  if (asked + others.rejected === 0) return null
  return (
    <div>
      <p className="text-xs text-soft">What people decided on the same calls</p>
      {asked > 0 && (
        <p>
          Of the calls it hits, people approved {number(hits.approved)} and rejected {number(hits.rejected)};{' '}
          {number(hits.expired)} expired.
        </p>
      )}
      {others.rejected > 0 && (
        <p className="text-amber">! It does not hit {counted(others.rejected, 'call')} that people rejected.</p>
      )}
    </div>
  )
}
