/**
 * The states of a call in its run. Each state links to its step, so a model call leads to the calls it asked for, and
 * back.
 */
import type { StateName } from '../../web/text/state-styles.ts'
import { StateText } from '../../web/ui/state.tsx'
import { askedCalls, CALL_EVENTS, callLife, outcomeText, type CallState } from '@tacho/contract/runs/call-life.ts'
import type { OperatorEvent } from '@tacho/contract/runs/operator-run.ts'
import { isObject, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { queryOptions, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../../web/api.ts'
import { Copy } from '../../web/ui/copy.tsx'
import { duration } from '../../web/text/format.ts'
import { Section } from '../../web/ui/section.tsx'
import { ShownText } from '../../web/text/shown-text.tsx'
import { Skeleton } from '../../web/ui/states.tsx'
import { Decided } from './event-details.tsx'
import type { OfRun } from './notes.ts'
import { eventQuery } from '../queries.ts'
import type { RunAddress } from '../address.ts'

/** Maximum number of calls of one answer to show. */
const LIVES_SHOWN = 10
const PAGES_READ = 3
const PAGE_HITS = 100
/** Maximum number of events to read, nearest to the step: a short id occurs in many payloads. */
const EVENTS_READ = 40
const FOLLOW_MS = 3_000
const FRESH_MS = 10 * 60_000

interface Props extends OfRun {
  event: OperatorEvent
}

/** Renders nothing for an event without a call. */
export function CallLives({ event, ...ofRun }: Props) {
  const payload: Json = isObject(event.payload) ? event.payload : {}
  const toolCallId = textAt(payload, 'toolCallId')
  if (event.eventType !== 'LLM_CALL') {
    if (toolCallId === null || !CALL_EVENTS.has(event.eventType)) return null
    return (
      <Section title="The life of this call" note={<CallId id={toolCallId} />}>
        <Life {...ofRun} event={event} toolCallId={toolCallId} />
      </Section>
    )
  }
  const asked = askedCalls(payload)
  if (asked.length === 0) return null
  return (
    <Section title="Calls it asked for" note={asked.length}>
      {asked.slice(0, LIVES_SHOWN).map(({ id, name }, at) => (
        <div key={at} className="border-b border-line py-2 last:border-0">
          <p className="flex flex-wrap items-center justify-between gap-2 text-sm">
            <bdi className="font-mono font-medium">
              <ShownText text={name} />
            </bdi>
            {id !== null && <CallId id={id} />}
          </p>
          {id !== null && <Life {...ofRun} event={event} toolCallId={id} />}
        </div>
      ))}
      {asked.length > LIVES_SHOWN && <p className="text-sm text-soft">And {asked.length - LIVES_SHOWN} more.</p>}
    </Section>
  )
}

function CallId({ id }: { id: string }) {
  return (
    <span className="flex min-w-0 items-center gap-1 text-soft" title="The model's id of the call">
      <code className="max-w-56 truncate font-mono text-xs">
        <ShownText text={id} />
      </code>
      <Copy text={id} />
    </span>
  )
}

const STATE_OF: Partial<Record<CallState, StateName>> = {
  blocked: 'BLOCKED',
  failed: 'FAILED',
  never_ran: 'NEVER_RAN',
  held: 'WAITING',
  withdrawn: 'WITHDRAWN',
  did_not_report: 'DID_NOT_REPORT',
}

function Life({ environmentId, runId, event, toolCallId }: Props & { toolCallId: string }) {
  const cache = useQueryClient()
  const { data: life, error } = useQuery(lifeQuery(cache, { environmentId, runId }, toolCallId, event))
  if (error) return <p className="py-1 text-sm text-soft">The other steps of the call could not be read.</p>
  if (!life) return <Skeleton className="h-8" />
  const start = life[0] ? Date.parse(life[0].event.timestamp) : 0
  return (
    <ol className="text-sm">
      {life.map(({ event: { eventId, label, timestamp, payload }, state }) => (
        <li key={eventId} className="grid grid-cols-[4rem_minmax(0,1fr)] items-baseline gap-x-3 py-0.5">
          <span className="tabular text-right text-xs text-soft">
            +{duration(Math.max(0, Date.parse(timestamp) - start))}
          </span>
          <span className="flex min-w-0 flex-wrap items-center gap-x-3">
            <StateOrWord is={STATE_OF[state]}>{wordOf(state, payload)}</StateOrWord>
            {eventId === event.eventId ? (
              <span className="text-soft">this step</span>
            ) : (
              <Link
                to="."
                search={(before: RunAddress) => ({ ...before, step: eventId })}
                replace
                className="link min-w-0 truncate"
              >
                <bdi>
                  <ShownText text={label} />
                </bdi>
              </Link>
            )}
            {state === 'held' && <Held payload={payload} />}
          </span>
        </li>
      ))}
    </ol>
  )
}

function StateOrWord({ is, children }: { is: StateName | undefined; children: string }) {
  return is === undefined ? <span>{children}</span> : <StateText is={is}>{children}</StateText>
}

function Held({ payload }: { payload: Json }) {
  const approvalId = textAt(payload, 'approvalId')
  return approvalId === null ? null : <Decided approvalId={approvalId} />
}

function wordOf(state: CallState, payload: Json): string {
  if (state === 'never_ran' || state === 'did_not_report') return outcomeText(payload)
  return WORDS[state] ?? state
}

const WORDS: Partial<Record<CallState, string>> = {
  asked: 'asked for',
  judged: 'judged: may run',
  held: 'held for an approval',
  withdrawn: 'nobody waits for the approval any more',
  handed_off: 'handed off',
  running: 'started',
}

function lifeQuery(cache: QueryClient, ofRun: OfRun, toolCallId: string, { eventId, timestamp }: OperatorEvent) {
  const { environmentId, runId } = ofRun
  return queryOptions({
    queryKey: ['call life', environmentId, runId, toolCallId, eventId],
    queryFn: async ({ signal }) => {
      const rows = (await rowsWith(ofRun, toolCallId, signal)).filter(({ eventType }) => CALL_EVENTS.has(eventType))
      const at = Math.max(
        0,
        rows.findIndex((row) => row.eventId === eventId),
      )
      const near = rows.slice(Math.max(0, at - EVENTS_READ / 2), at + EVENTS_READ / 2)
      const events = await Promise.all(
        near.map(async (row) => {
          const { event } = await cache.fetchQuery(eventQuery(environmentId, runId, row.eventId))
          return { ...row, payload: isObject(event.payload) ? event.payload : {} }
        }),
      )
      return callLife(events, toolCallId, eventId)
    },
    // Poll, because the end of the call may still arrive.
    refetchInterval: ({ state: { data } }) =>
      Date.now() - Date.parse(timestamp) < FRESH_MS && data?.at(-1)?.event.eventType !== 'TOOL_CALL'
        ? FOLLOW_MS
        : false,
  })
}

/** The steps whose payload contains the id, sorted by time. */
async function rowsWith({ environmentId, runId }: OfRun, q: string, signal: AbortSignal) {
  const rows = []
  let cursor: string | undefined
  for (let page = 0; page < PAGES_READ; page++) {
    const query = { q, limit: PAGE_HITS, cursor }
    const { items, nextCursor } = await api.searchRun({ params: { environmentId, runId }, query }, { signal })
    rows.push(...items.map(({ event }) => event))
    if (nextCursor === null) break
    cursor = nextCursor
  }
  return rows
}
