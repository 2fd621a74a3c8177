/** Batches on their way to a commit: divided over the lanes of their runs, put together again for the answer. */
import type { EventBatchRows, EventVerdict, NewEvent, RejectionRow } from '../events.ts'
import { StorageError } from '../storage.ts'
import type { Part } from './append-events.ts'
import type { Committed } from './commit-parts.ts'
import { createLanes, laneOf, LANES, type Taken } from './lanes.ts'

/** What an event weighs in the queue beside its payload, roughly. */
const EVENT_BYTES = 500

export interface BatchQueueOptions {
  queueBytes: number
  transactions: number
  /** The number of this node, for rollup rows of its own. */
  slot: () => number
  commit: (group: { environmentId: string; slot: number; parts: Part[] }) => Promise<Committed[]>
}

interface QueuedPart extends Part {
  bytes: number
  /** Places of the events in their batch. */
  places: number[]
  settle(committed: Committed, places: number[]): void
}

export function createBatchQueue({ queueBytes, transactions, slot, commit }: BatchQueueOptions) {
  const lanes = createLanes<QueuedPart>({ transactions, run })
  const counts = { queuedBytes: 0, commits: 0, committedEvents: 0 }
  const isFull = () => counts.queuedBytes >= queueBytes

  async function append({ environmentId, receivedAt, events, rejections }: EventBatchRows): Promise<EventVerdict[]> {
    if (events.length === 0 && rejections.length === 0) return []
    const bytes = weightOf(events)
    if (isFull() || (counts.queuedBytes > 0 && counts.queuedBytes + bytes > queueBytes)) {
      throw new StorageError('overloaded', 'Too many events wait for a commit')
    }
    counts.queuedBytes += bytes
    try {
      return await new Promise<EventVerdict[]>((resolve, reject) => {
        const parts = divide(events, rejections)
        const verdicts: EventVerdict[] = []
        let left = parts.size
        let failure: { error: unknown } | null = null
        const settle: QueuedPart['settle'] = (committed, places) => {
          if ('error' in committed) failure ??= committed
          else places.forEach((place, index) => (verdicts[place] = committed.verdicts[index] ?? 'unstorable'))
          if (--left > 0) return
          if (failure) reject(failure.error)
          else resolve(verdicts)
        }
        for (const [lane, part] of parts) {
          lanes.add(environmentId, lane, { ...part, receivedAt, bytes: weightOf(part.events), settle })
        }
      })
    } finally {
      counts.queuedBytes -= bytes
    }
  }

  async function run({ environmentId, lanes: held, parts }: Taken<QueuedPart>): Promise<void> {
    const committed = await commit({ environmentId, slot: slot() * LANES + (held[0] ?? 0), parts })
    const stored = parts.filter((_part, index) => 'verdicts' in (committed[index] ?? {}))
    if (stored.length > 0) counts.commits++
    counts.committedEvents += stored.reduce((sum, { events }) => sum + events.length, 0)
    parts.forEach((part, index) => part.settle(committed[index] ?? { error: new Error('No answer') }, part.places))
  }

  return { append, isFull, counts, idle: lanes.idle }
}

/** By lane. Refusals belong to no run; they go with the first. */
function divide(events: NewEvent[], rejections: RejectionRow[]) {
  const parts = new Map<number, Pick<QueuedPart, 'events' | 'rejections' | 'places'>>()
  events.forEach((event, place) => {
    const lane = laneOf(event.runId)
    const part = parts.get(lane)
    if (part) {
      part.events.push(event)
      part.places.push(place)
    } else parts.set(lane, { events: [event], places: [place], rejections: [] })
  })
  const [first] = parts.values()
  if (first) first.rejections = rejections
  else parts.set(0, { events: [], places: [], rejections })
  return parts
}

function weightOf(events: NewEvent[]): number {
  return events.reduce((sum, { payload }) => sum + payload.length + EVENT_BYTES, 0)
}
