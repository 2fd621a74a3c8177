/**
 * The root span of a trace ends its run. A trace may never send it, for example if the caller is in another system.
 * After a quiet time, the topmost span that was sent ends the run instead.
 *
 *   queued, by a span whose parent is not there --quiet--> the last topmost span to end is the outcome
 *                    ^----- other events ------|  `--an outcome, or the parent, arrived--> done
 */
import { validateItems } from '../../domain/record/event.ts'
import type { TraceSpan, RunPlace } from '../../storage/runs/runs.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'
import type { WorkItem } from '../../storage/engine/work.ts'

type Acts = 'readUnendedTrace' | 'findEvent' | 'appendEvents'

export function endTraces({ storage, now }: HandlerOptions<Acts>): ItemHandler {
  return {
    kind: 'end_trace',
    batch: 10,
    async perform({ environmentId, subjectId }) {
      const trace = await storage.readUnendedTrace(environmentId, subjectId)
      const top = topOf(trace?.spans ?? [])
      if (trace === null || top === undefined) return 'done'
      const quietAt = trace.spans.reduce((latest, { receivedAt }) => Math.max(latest, receivedAt), 0) + trace.idleMs
      if (now() < quietAt) return { dueAt: quietAt }
      const outcomeEvent = await storage.findEvent(environmentId, subjectId, top.eventId)
      if (outcomeEvent === null) return 'done'
      const { clientId, agentId, agentName, payload } = outcomeEvent.event
      const { error } = JSON.parse(payload) as { error?: unknown }
      const outcome = { status: error === undefined ? 'COMPLETED' : 'FAILED', error }
      const event = {
        eventId: `${top.spanId}-outcome`,
        clientId,
        runId: trace.runId,
        agentName,
        ...(agentId !== null && { agentId }),
        eventType: 'SESSION_OUTCOME',
        label: outcome.status,
        timestamp: endOf(top),
        payload: outcome,
        parentSpanId: top.spanId,
      }
      const json = JSON.stringify(outcome)
      const { events } = validateItems([event], () => ({ json, levels: 1 }), { workspaceId: '', now: now() })
      await storage.appendEvents({ environmentId, receivedAt: now(), events, rejections: [] })
      return 'done'
    },
    giveUp: async () => 'done',
  }
}

const endOf = ({ time, latencyMicros }: TraceSpan): number => Math.round(time + latencyMicros / 1_000)

/** A call of a model or tool is never the topmost span: its agent may have been killed before it sent its own span. */
function topOf(spans: readonly TraceSpan[]): TraceSpan | undefined {
  const known = new Set(spans.map(({ spanId }) => spanId))
  return spans
    .filter(
      ({ eventType, parentSpanId }) => eventType === 'AGENT_STEP' && parentSpanId !== null && !known.has(parentSpanId),
    )
    .toSorted((one, other) => endOf(other) - endOf(one))[0]
}

const INTERVAL_MS = 60_000

export function closeStalled({ storage, now }: HandlerOptions<'closeStalledRuns'>): ItemHandler {
  const again = (at = 0) => ({ dueAt: Math.max(at, now() + INTERVAL_MS) })

  /** When to check again; null: the rule closes no more runs. */
  async function closeAll({ environmentId }: WorkItem, signal: AbortSignal): Promise<number | null> {
    let nextAt = 0
    let after: RunPlace | null = null
    do {
      signal.throwIfAborted()
      const closed = await storage.closeStalledRuns(environmentId, now(), after)
      if (!closed.isOn) return null
      nextAt = closed.nextAt ?? 0
      after = closed.after
    } while (after !== null)
    return nextAt
  }

  return {
    kind: 'close_stalled',
    batch: 5,
    async perform(item, _, signal) {
      const nextAt = await closeAll(item, signal)
      return nextAt === null ? 'done' : again(nextAt)
    },
    giveUp: async () => again(),
  }
}
