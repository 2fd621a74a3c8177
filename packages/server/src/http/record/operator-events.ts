import { REJECTIONS } from '@tacho/contract/web/errors.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { EventTrace } from '@tacho/contract/runs/operator-run.ts'
import { eventJson, toEventRow } from '../../domain/runs/run.ts'
import { isoTime } from '../../storage/engine/times.ts'
import { isStorableText } from '../../domain/web/text.ts'
import { payloadWarnings } from '../../domain/record/payload-facts.ts'
import { usageOf } from '../../domain/record/usage.ts'
import { estimatorOf } from '../../prices/price-table.ts'
import type { EventFilter, EventRowsPage, EventRowsRead, FoundEvent, StoredEvent } from '../../storage/record/events.ts'
import type { UncostedCalls } from '../../storage/runs/usage.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import { RawJson } from '../web/serve-route.ts'
import { refuseField } from '../web/field.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import { completenessSums, placeOf, toSum, type Sum } from '../../domain/record/completeness.ts'
import type { GapFilter, RunPlace } from '../../storage/runs/runs.ts'
import { waitForTurn } from '../web/turns.ts'
import { windowOf } from '../runs/usage.ts'
import { readPage } from '../web/paging.ts'
import { firstRows } from '../../storage/engine/page.ts'

type Position = NonNullable<EventRowsPage['after']>

const BEGINNING: Position = { time: 0, seq: 0 }
const NO_EVENT = refuse('not_found', 'The event does not exist')

export function operatorEventsRoutes(deps: OperatorDeps): void {
  const { serve, storage } = deps

  serve('listEventRows', async ({ query, environment, run, paging: { limit, ...paging } }) => {
    const { order = 'time', before, eventType, q } = query
    if (before !== undefined && order !== 'latest') throw refuseField('before', 'needs the order latest')
    const isFindable = before !== undefined && isStorableText(before)
    const named = isFindable ? await storage.findEvent(environment.id, run.runId, before) : null
    if (before !== undefined && named === null) return NO_EVENT
    const after = paging.after<Position>() ?? (named && positionOf(named.event))
    const filter = filterOf(eventType, q)
    const { rows, more, lookedTo }: EventRowsRead = isStorableText(`${eventType ?? ''}${q ?? ''}`)
      ? await storage.listEventRows(environment.id, run.id, { limit, order, filter, after })
      : { rows: [], more: false }
    // In order of arrival, the list has no end: the next read continues after the last position.
    const { time, seq } = lookedTo ?? rows.at(-1) ?? after ?? BEGINNING
    const nextCursor = more || order === 'arrival' ? paging.cursorAt({ time, seq }) : null
    return { items: rows.map((row) => toEventRow(run, row)), nextCursor }
  })

  serve('readEvent', async ({ params, environment }) => {
    const read = await storage.findEvent(environment.id, params.runId, params.eventId)
    const { run, event } = foundOr(read, NO_EVENT)
    const calls = uncostedOf(event)
    const estimator = await estimatorOf(deps, environment.workspaceId, calls)
    return new RawJson(eventJson(run, event, estimator.ofCalls(calls, event.time)))
  })

  serve('traceEvent', async ({ params, environment }) => {
    const stored = await storage.findEvent(environment.id, params.runId, params.eventId)
    return stored ? new RawJson(storedTraceJson(stored)) : traceOfMissing(environment.id, params.runId, params.eventId)
  })

  async function traceOfMissing(environmentId: string, runId: string, eventId: string): Promise<EventTrace> {
    // Rejections have the external run id, and the run need not exist.
    const run = await storage.findRun(environmentId, runId)
    const refused = await storage.findRejection(environmentId, run?.runId ?? runId, eventId)
    if (!refused) return { outcome: 'unknown' }
    const { code, message, rejectedAt } = refused
    return {
      outcome: 'rejected',
      rejection: { code, message: message ?? REJECTIONS[code], rejectedAt: isoTime(rejectedAt) },
    }
  }
}

const positionOf = ({ time, seq }: StoredEvent): Position => ({ time, seq })

function filterOf(eventType: string | undefined, label: string | undefined): EventFilter | undefined {
  if (eventType === undefined && label === undefined) return undefined
  return { eventType, label, rowsLookedAt: LIMITS.eventsLookedAt }
}

function storedTraceJson({ run, event, position, closedRun }: FoundEvent): string {
  const payload = JSON.parse(event.payload) as Record<string, unknown>
  const countedUsage = hasUsage(event.eventType, payload)
  const warnings = payloadWarnings(event.eventType, payload)
  const facts = JSON.stringify({ position, countedUsage, closedRun, warnings } satisfies Partial<EventTrace>)
  return `{"outcome":"stored","event":${eventJson(run, event)},${facts.slice(1)}`
}

function hasUsage(eventType: string, payload: Record<string, unknown>): boolean {
  const usage = usageOf(eventType, payload)
  return usage !== null && usage.promptTokens + usage.completionTokens + usage.totalTokens + usage.costNanos > 0
}

function uncostedOf({ eventType, payload }: StoredEvent): UncostedCalls[] {
  if (eventType !== 'LLM_CALL') return []
  const usage = usageOf(eventType, JSON.parse(payload) as Record<string, unknown>)
  return usage?.uncosted ? [{ model: usage.model, calls: 1, ...usage.uncosted }] : []
}

const RUNS_AT_ONCE = 100
const RECORDERS_IN_TURN = 250

export function completenessRoutes({ serve, storage }: OperatorDeps): void {
  serve('readCompleteness', async ({ query, environment: { id }, paging }) => {
    const window = windowOf(query)
    const { by, agentId } = query
    const sums = completenessSums(by)
    const { rows, nextCursor, addedTo } = await readPage(
      paging,
      async ({ limit, after }) => {
        const last = await eachRun(id, { agentId, ...window }, sums.add)
        return { ...firstRows(sums.after(after), limit, bytesOf), addedTo: last }
      },
      placeOf,
    )
    return { items: rows.map(toSum), nextCursor, lookedTo: isoTime(addedTo) }
  })

  /** Returns the start of the last run, if there may be more. */
  async function eachRun(
    environmentId: string,
    filter: GapFilter,
    add: ReturnType<typeof completenessSums>['add'],
  ): Promise<number | null> {
    let [recorders, inTurn] = [0, 0]
    let after: RunPlace | null = null
    for (;;) {
      const { rows, more } = await storage.listGaps(environmentId, filter, { limit: RUNS_AT_ONCE, after })
      for (const run of rows) {
        const added = add(run)
        recorders += added
        inTurn += added
        if (inTurn < RECORDERS_IN_TURN) continue
        inTurn = 0
        await waitForTurn()
      }
      const last = rows.at(-1)
      if (!more || last === undefined) return null
      if (recorders >= LIMITS.summedRecorders) return last.startedAt
      after = last
    }
  }
}

const bytesOf = (sum: Sum): number => Buffer.byteLength(JSON.stringify(toSum(sum)))
