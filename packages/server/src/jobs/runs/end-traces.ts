/**
 * A trace whose parent is recorded elsewhere, such as a server's span below a caller of another system, never sends the span
 * without a parent that ends its run. After a quiet time, the topmost span that was sent does.
 *
 *   queued, by a span whose parent is not there --quiet--> the last topmost span to end is the outcome
 *                    ^----- other events ------|  `--an outcome, or the parent, arrived--> done
 */
import { judgeItems } from '../../domain/record/event.ts'
import type { TraceSpan } from '../../storage/runs/runs.ts'
import type { HandlerOptions, ItemHandler } from '../engine/work.ts'

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
      const found = await storage.findEvent(environmentId, subjectId, top.eventId)
      if (found === null) return 'done'
      const { clientId, agentId, agentName, payload } = found.event
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
      const { events } = judgeItems([event], () => ({ json, levels: 1 }), { workspaceId: '', now: now() })
      await storage.appendEvents({ environmentId, receivedAt: now(), events, rejections: [] })
      return 'done'
    },
    giveUp: async () => 'done',
  }
}

const endOf = ({ time, latencyMicros }: TraceSpan): number => Math.round(time + latencyMicros / 1_000)

/** A call of a model or tool is never the topmost span: the agent around it may have been killed before it was sent. */
function topOf(spans: readonly TraceSpan[]): TraceSpan | undefined {
  const known = new Set(spans.map(({ spanId }) => spanId))
  return spans
    .filter(
      ({ eventType, parentSpanId }) => eventType === 'AGENT_STEP' && parentSpanId !== null && !known.has(parentSpanId),
    )
    .toSorted((one, other) => endOf(other) - endOf(one))[0]
}
