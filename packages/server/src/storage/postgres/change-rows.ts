/** Rows for what stored events change beside their runs, each in the order in which rows of its table are locked. */
import { rejectionKey } from '../sql/keys.ts'
import { addUsage } from '../sql/sums.ts'
import type { HourChange, Tally } from '../sql/issues/tally.ts'
import type { NewEvent, RejectionRow } from '../events.ts'
import type { Buckets } from './known-models.ts'
import type { Row } from './row-writes.ts'

export function hourRows(hours: Tally['hours'], { keys }: Buckets, slot: number): Row[] {
  // Models of one bucket share a row, which a statement may change but once.
  const merged = new Map<string, HourChange>()
  for (const change of hours.values()) {
    const bucket = keys.get(change.model) ?? ''
    const place = `${String(change.hour).padStart(16, '0')} ${change.agentId} ${bucket}`
    const same = merged.get(place)
    if (same === undefined) merged.set(place, { ...change, model: bucket })
    else {
      same.events += change.events
      addUsage(same, change)
    }
  }
  return sorted(merged).map((change) => {
    const { hour, agentId, model: bucket, events, promptTokens, completionTokens, totalTokens, costNanos } = change
    return [hour, agentId, bucket, slot, events, promptTokens, completionTokens, totalTokens, costNanos]
  })
}

/** The newest refusal of each event. */
export function rejectionRows(rejections: RejectionRow[]): Row[] {
  const newest = new Map<string, Row>()
  for (const { runId, eventId, code, rejectedAt } of rejections) {
    const key = rejectionKey(runId, eventId)
    newest.set(key, [key, code, rejectedAt])
  }
  return sorted(newest)
}

/** Of each agent the newest of the events; of equal times, the later arrival. */
export function newestOfAgents(events: readonly NewEvent[]): NewEvent[] {
  const newest = new Map<string, NewEvent>()
  for (const event of events) {
    const agent = event.agentId === null ? `name ${event.agentName}` : `id ${event.agentId}`
    const known = newest.get(agent)
    if (known === undefined || event.time >= known.time) newest.set(agent, event)
  }
  return [...newest.values()]
}

function sorted<Value>(byKey: Map<string, Value>): Value[] {
  return [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value)
}
