import { stepName } from './notes.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState, type ReactNode, useMemo } from 'react'
import type { Bar } from '@tacho/contract/runs/timeline.ts'
import type { OperatorEvent } from '@tacho/contract/runs/operator-run.ts'
import { isObject, textAt, messagesAt } from '@tacho/contract/record/payload-reader.ts'
import { Button } from '../../web/ui/button.tsx'
import { Copy } from '../../web/ui/copy.tsx'
import { bytes, duration, exact, number } from '../../web/text/format.ts'
import { JsonView } from '../../web/text/json-view.tsx'
import { LongText } from '../../web/text/long-text.tsx'
import { Skeleton, Trouble } from '../../web/ui/states.tsx'
import { Tabs } from '../../web/ui/tabs.tsx'
import { CallLives } from './call-life.tsx'
import { EventContent } from './event-content.tsx'
import { unseenFields } from './unseen-fields.ts'
import { EventType } from '../event-type.tsx'
import { eventQuery, type Step, type WholeEvent } from '../queries.ts'
import type { OfRun } from './notes.ts'

const route = getRouteApi('/w/$workspace/$environment')
const TABS = [
  ['content', 'Content'],
  ['json', 'Payload'],
  ['raw', 'Raw'],
] as const
type Tab = (typeof TABS)[number][0]

interface Props {
  environmentId: string
  runId: string
  step: Step
  /** Start and end of the step. */
  bar: Bar
  /** Start of the run. */
  start: number
  /** Whether a tool was started and never ended. */
  isNeverEnded: boolean
  /** The previous model call in the same span. */
  callBefore: Step | undefined
  onClose: () => void
}

/** Details of one step. On a phone, they cover the list. */
export function Inspector({ environmentId, runId, step, bar, start, isNeverEnded, callBefore, onClose }: Props) {
  const { data, error, refetch } = useQuery(eventQuery(environmentId, runId, step.eventId))
  const sentBefore = useSentBefore({ environmentId, runId }, data, callBefore)
  const [tab, setTab] = useState<Tab>('content')
  return (
    <aside
      aria-label="Step"
      className="flex w-full flex-col border-line bg-page max-lg:fixed max-lg:inset-0 max-lg:z-30 lg:w-[min(34rem,45%)] lg:shrink-0 lg:border-l"
    >
      <header className="px-4 pt-3">
        <div className="flex items-center gap-2">
          <EventType type={step.eventType} />
          <h2 className="min-w-0 flex-1 truncate font-semibold" title={step.label}>
            <bdi>{stepName(step)}</bdi>
          </h2>
          <Copy text={() => window.location.href} label="Copy link" />
          <Button look="quiet" aria-label="Close the step" className="w-8 px-0" onClick={onClose}>
            ✕
          </Button>
        </div>
        <p className="tabular mt-0.5 text-sm text-soft">
          Step {number(step.index + 1)} · +{duration(bar.from - start)}
          {bar.to > bar.from && <> · took {duration(bar.to - bar.from)}</>} ·{' '}
          <time dateTime={new Date(bar.from).toISOString()}>{exact(bar.from)}</time>
        </p>
        {isNeverEnded && (
          <p className="mt-1 text-sm text-red">
            Started, never ended: the run ended first, or its process died inside this tool.
          </p>
        )}
        <Tabs label="Parts of the step" value={tab} options={TABS} onChange={setTab} className="-mx-4 px-4" />
      </header>
      <div
        // With a new key for each step, scroll position and unfolded parts are reset.
        key={step.eventId}
        role="group"
        tabIndex={0}
        aria-label={TABS.find(([name]) => name === tab)?.[1]}
        className="min-h-0 flex-1 overflow-y-auto overscroll-contain px-4 py-3"
      >
        {error ? (
          <Trouble error={error} retry={() => void refetch()} />
        ) : data ? (
          <Part
            environmentId={environmentId}
            runId={runId}
            whole={data}
            tab={tab}
            sentBefore={sentBefore}
            onPayload={() => setTab('json')}
          />
        ) : (
          <Skeleton className="h-24" />
        )}
      </div>
    </aside>
  )
}

interface PartProps {
  environmentId: string
  runId: string
  whole: WholeEvent
  tab: Tab
  sentBefore: number
  onPayload: () => void
}

function Part({ environmentId, runId, whole: { event, payloadText }, tab, sentBefore, onPayload }: PartProps) {
  if (tab !== 'content' && event.payloadRemoved) {
    return <p className="text-sm text-soft">The payload was removed by retention.</p>
  }
  if (event.payloadDamaged) {
    return <p className="text-sm text-soft">The stored payload is damaged. A backup may still have it.</p>
  }
  if (tab === 'json') return <JsonView value={event.payload} />
  if (tab === 'raw') {
    return (
      <>
        <div className="mb-2 flex items-center gap-2 text-sm text-soft">
          The payload as it was sent, {bytes(new TextEncoder().encode(payloadText).length)}
          <Copy text={payloadText} />
        </div>
        <LongText text={payloadText} mono />
      </>
    )
  }
  return (
    <>
      <EventContent event={event} sentBefore={sentBefore} />
      <CallLives environmentId={environmentId} runId={runId} event={event} />
      <AlsoInPayload event={event} onOpen={onPayload} />
      <NewPolicyLink runId={runId} event={event} />
      <dl className="mt-5 grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 border-t border-line pt-3 text-sm">
        <Fact name="Event id">{event.eventId}</Fact>
        <Fact name="Type">{event.eventType}</Fact>
        <Fact name="Client">{event.clientId}</Fact>
        <Fact name="Agent">{event.agentId ?? event.agentName}</Fact>
        {event.sessionId !== null && <Fact name="Session">{event.sessionId}</Fact>}
        {event.spanId !== null && <Fact name="Span">{event.spanId}</Fact>}
        {event.parentSpanId !== null && <Fact name="Parent span">{event.parentSpanId}</Fact>}
        {event.schemaVersion !== null && <Fact name="Schema">{event.schemaVersion}</Fact>}
        <Fact name="Recorded">{event.timestamp}</Fact>
        <Fact name="Received">{event.receivedAt}</Fact>
      </dl>
    </>
  )
}

/** A link from a recorded call to a new policy for such calls. */
function NewPolicyLink({ runId, event: { eventId, payload } }: { runId: string; event: OperatorEvent }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  if (!place.may('admin') || !isObject(payload) || textAt(payload, 'toolName') === null) return null
  return (
    <p className="mt-3 text-sm">
      <Link
        to="/w/$workspace/$environment/new-policy"
        params={params}
        search={{ run: runId, step: eventId }}
        className="link"
      >
        New policy for calls like this
      </Link>
    </p>
  )
}

const NAMED = 12

/** Names the fields that are not shown, so that a reader knows that the payload has more. */
function AlsoInPayload({ event, onOpen }: { event: OperatorEvent; onOpen: () => void }) {
  const names = unseenFields(event.eventType, event.payload)
  if (names.length === 0) return null
  const more = names.length - NAMED
  return (
    <p className="mt-3 text-sm text-soft">
      Also in the{' '}
      <button type="button" onClick={onOpen} className="link">
        payload
      </button>
      : <bdi className="font-mono text-xs [overflow-wrap:anywhere]">{names.slice(0, NAMED).join(', ')}</bdi>
      {more > 0 && ` and ${number(more)} more`}
    </p>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd className="min-w-0 font-mono text-[0.8125rem]">
        <bdi>{children}</bdi>
      </dd>
    </>
  )
}

/** Finds the messages that the previous model call also sent: a long conversation repeats all of them. */

/** The number of first messages of `whole` that are also in `before`. */
function useSentBefore(
  { environmentId, runId }: OfRun,
  whole: WholeEvent | undefined,
  before: Step | undefined,
): number {
  const { data } = useQuery({
    ...eventQuery(environmentId, runId, before?.eventId ?? ''),
    enabled: before !== undefined,
  })
  return useMemo(() => (whole && data ? sameAtStart(data.event.payload, whole.event.payload) : 0), [whole, data])
}

function sameAtStart(before: unknown, now: unknown): number {
  const [earlier, later] = [before, now].map((payload) => (isObject(payload) ? messagesAt(payload, 'messages') : []))
  const texts = (earlier ?? []).map((message) => JSON.stringify(message))
  const at = texts.findIndex((text, index) => text !== JSON.stringify(later?.[index]))
  return at === -1 ? texts.length : at
}
