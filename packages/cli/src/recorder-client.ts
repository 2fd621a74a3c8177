/** The public interface as any client uses it: batches, retries of what may be retried, the same ids each time. */
import type { Failure, Refusal } from '@tacho/client/call.ts'
import { JsonText } from '@tacho/client/json-text.ts'
import { createPublicClient } from '@tacho/client/public.ts'
import type { BatchResult, Event, EventInput } from '@tacho/contract/event.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { batchBody, batches, packed, type PackedEvent } from './batches.ts'
import { retryDelayMs } from './retry.ts'
import { sentenceOf } from './server-trouble.ts'
import { failed } from './stop.ts'

const ATTEMPTS = 8

export interface RefusedEvent {
  eventId: string
  code: string
  message: string
}

/** What became of the events: every one is in exactly one of the two. */
export interface Recorded {
  /** Stored now or before; the service does not tell which. */
  accepted: number
  refused: RefusedEvent[]
}

export interface Recorder {
  /** Returns when every event is stored or refused; rejects with a Stop when the service cannot be made to take them. */
  record(events: Iterable<EventInput>): Promise<Recorded>
  /** First event on the timeline of a run; null when there is no such run. */
  firstEvent(runId: string): Promise<Event | null>
}

export interface RecorderOptions {
  /** Told once, in a sentence, when a request has to be repeated: that may take a while. */
  onTrouble?: (sentence: string) => void
  /** Waiting and chance, so that tests need neither. */
  patience?: Patience
}

export interface Patience {
  sleep: (ms: number) => Promise<unknown>
  random: () => number
}

const PATIENCE: Patience = { sleep: (ms) => sleep(ms), random: Math.random }

/** `url` as readUrl gives it. */
export function openRecorder(url: string, apiKey: string, options: RecorderOptions = {}): Recorder {
  const { onTrouble = () => undefined, patience = PATIENCE } = options
  const client = createPublicClient({ url, apiKey })
  let hasTold = false
  return {
    async record(events) {
      const sum: Recorded = { accepted: 0, refused: [] }
      for (const batch of batches(Iterator.from(events).map(packed))) {
        const { accepted, refused } = await recordBatch(batch)
        sum.accepted += accepted
        sum.refused.push(...refused)
      }
      return sum
    },
    async firstEvent(runId) {
      const result = await patiently(() => client.listRunEvents({ params: { runId }, query: { limit: 1 } }))
      if (result.ok) return result.value.items[0] ?? null
      if (result.code === 'not_found') return null
      throw failed(sentenceOf(url, result))
    },
  }

  async function recordBatch(batch: PackedEvent[]): Promise<Recorded> {
    const refused: RefusedEvent[] = []
    let left = batch
    for (let attempt = 0; left.length > 0; attempt++) {
      if (attempt === ATTEMPTS) throw failed(`${url} could not store ${left.length} events after ${ATTEMPTS} attempts.`)
      if (attempt > 0) await patience.sleep(retryDelayMs(attempt - 1, null, patience.random))
      const body = new JsonText(batchBody(left))
      const result = await patiently(() => client.recordEvents({ body }))
      if (result.status === 413) {
        // Something before the service takes less than it does: its answer is about this body, not about the next.
        refused.push(
          ...left.map(({ eventId }) => ({ eventId, code: 'body_too_large', message: 'The body is too large' })),
        )
        break
      }
      if (!result.ok) throw failed(sentenceOf(url, result))
      const answer = verdicts(left, result.value)
      refused.push(...answer.refused)
      left = answer.left
    }
    return { accepted: batch.length - refused.length, refused }
  }

  /** The first result that is not a reason to try again. */
  async function patiently<Answer extends { ok: true }>(
    call: () => Promise<Answer | Refusal | Failure>,
  ): Promise<Answer | Refusal | Failure> {
    for (let attempt = 1; ; attempt++) {
      const result = await call()
      if (result.ok || !result.temporary) return result
      const trouble = sentenceOf(url, result)
      if (attempt === ATTEMPTS) throw failed(trouble)
      if (!hasTold) onTrouble(`${trouble} Trying again.`)
      hasTold = true
      await patience.sleep(retryDelayMs(attempt - 1, result.retryAfterMs, patience.random))
    }
  }
}

/** Sorts a batch by its answer. What the answer passes over in silence is sent again, unless its count covers it. */
function verdicts(batch: PackedEvent[], result: BatchResult): { left: PackedEvent[]; refused: RefusedEvent[] } {
  const rejected = new Set(result.rejectedEventIds)
  const retryable = new Set(result.retryableEventIds)
  const silent = batch.filter(({ eventId }) => !rejected.has(eventId) && !retryable.has(eventId))
  const covered = result.accepted >= silent.length
  const left = batch.filter(({ eventId }) => retryable.has(eventId) || (!covered && !rejected.has(eventId)))
  const reasons = new Map((result.rejections ?? []).map((rejection) => [rejection.eventId, rejection]))
  const refused = batch
    .filter(({ eventId }) => rejected.has(eventId) && !retryable.has(eventId))
    .map(({ eventId }) => {
      const { code, message } = reasons.get(eventId) ?? { code: 'rejected', message: 'The service refused the event' }
      return { eventId, code, message }
    })
  return { left, refused }
}
