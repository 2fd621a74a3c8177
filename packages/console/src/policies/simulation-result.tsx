import type { CallState, SimulationResult as Result } from '@tacho/contract/policies/simulation.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { callInShort } from '@tacho/contract/runs/call-text.ts'
import { useQuery } from '@tanstack/react-query'
import { eventQuery } from '../runs/queries.ts'
import { counted, number } from '../web/text/format.ts'
import { ShownText } from '../web/text/shown-text.tsx'
import { Time } from '../web/text/time.tsx'

const route = getRouteApi('/w/$workspace/$environment')
/** In the order of the table. The contract's list is in a larger file. */
const CALL_STATES: readonly CallState[] = ['ran', 'held', 'blocked', 'neverRan']
const RUNS_SHOWN = 10
const INPUT_CHARS = 300

export function SimulationResult({ result }: { result: Result }) {
  const params = route.useParams()
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
      {result.tools.length > 0 && (
        <table aria-label="Tools" className="w-full">
          <thead>
            <tr className="border-b border-line text-left text-xs text-soft">
              <th className="py-1 font-normal">Tool</th>
              <th className="py-1 pl-4 text-right font-normal">Calls</th>
              <th className="py-1 pl-4 text-right font-normal">Hits</th>
            </tr>
          </thead>
          <tbody>
            {result.tools.map(({ toolName, calls, hits }) => (
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
      {result.hitRuns.length > 0 && (
        <div>
          <p className="text-xs text-soft">Runs with a hit</p>
          <ul>
            {result.hitRuns.slice(0, RUNS_SHOWN).map(({ id, runId, eventId, toolName, at }) => (
              <li
                key={id}
                className="relative flex flex-wrap gap-x-3 border-b border-line py-1 last:border-0 hover:bg-hover"
              >
                <Link
                  to="/w/$workspace/$environment/runs/$runId"
                  params={{ ...params, runId }}
                  search={{ step: eventId }}
                  className="min-w-0 flex-1 truncate after:absolute after:inset-0"
                >
                  <bdi>{runId}</bdi>
                </Link>
                <bdi className="max-w-40 truncate font-mono text-soft">{toolName}</bdi>
                <span className="text-soft">
                  <Time at={at} />
                </span>
                <HitInput runId={runId} eventId={eventId} />
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

/** Calls that did not run are calls too. */
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

/** The input that the condition would have matched, in one line. */
function HitInput({ runId, eventId }: { runId: string; eventId: string }) {
  const { place } = route.useRouteContext()
  const { data } = useQuery(eventQuery(place.environment.id, runId, eventId))
  const payload = data?.event.payload
  const input = isObject(payload) ? callInShort(payload, INPUT_CHARS) : ''
  return (
    <bdi className="block h-5 w-full truncate font-mono text-xs text-soft" title={input}>
      {input}
    </bdi>
  )
}

/** Whether people decided as the policy would. */
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
