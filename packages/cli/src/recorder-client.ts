/** The public interface as any client uses it: batches, retries of what may be retried, the same ids each time. */
import type { BatchResult, Event, EventInput, EventPage } from '@tacho/contract/event.ts'
import { PUBLIC_PREFIX, ROUTES } from '@tacho/contract/routes.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { batchBody, batches, packed, type PackedEvent } from './batches.ts'
import { isRetryableStatus, retryAfterMs, retryDelayMs } from './retry.ts'
import { readProblem, refusal, unreachable } from './server-trouble.ts'
import { failed } from './stop.ts'

const ATTEMPTS = 8
const TIMEOUT_MS = 30_000

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
      const path = ROUTES.listRunEvents.path.replace('{runId}', encodeURIComponent(runId))
      const { status, text } = await request('GET', `${path}?limit=1`, null)
      if (status === 404) return null
      if (status !== 200) throw failed(refusal(url, status, text))
      return (JSON.parse(text) as EventPage).items[0] ?? null
    },
  }

  async function recordBatch(batch: PackedEvent[]): Promise<Recorded> {
    const refused: RefusedEvent[] = []
    let left = batch
    for (let attempt = 0; left.length > 0; attempt++) {
      if (attempt === ATTEMPTS) throw failed(`${url} could not store ${left.length} events after ${ATTEMPTS} attempts.`)
      if (attempt > 0) await patience.sleep(retryDelayMs(attempt - 1, null, patience.random))
      const { status, text } = await request('POST', ROUTES.recordEvents.path, batchBody(left))
      if (status === 413) {
        // Something before the service takes less than it does: its answer is about this body, not about the next.
        refused.push(
          ...left.map(({ eventId }) => ({ eventId, code: 'body_too_large', message: 'The body is too large' })),
        )
        break
      }
      if (status !== ROUTES.recordEvents.status) throw failed(refusal(url, status, text))
      const answer = verdicts(left, JSON.parse(text) as BatchResult)
      refused.push(...answer.refused)
      left = answer.left
    }
    return { accepted: batch.length - refused.length, refused }
  }

  /** The first answer that is not a request to come again. */
  async function request(method: string, path: string, body: string | null): Promise<{ status: number; text: string }> {
    for (let attempt = 1; ; attempt++) {
      let trouble: string
      let wait: number | null = null
      try {
        const response = await fetch(url + PUBLIC_PREFIX + path, {
          method,
          body,
          redirect: 'manual',
          signal: AbortSignal.timeout(TIMEOUT_MS),
          headers: { 'x-api-key': apiKey, ...(body === null ? {} : { 'content-type': 'application/json' }) },
        })
        const text = await response.text()
        if (!isRetryableStatus(response.status)) return checked(response.status, text)
        trouble = refusal(url, response.status, text)
        wait = retryAfterMs(response.headers.get('retry-after'), Date.now())
      } catch (error) {
        if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error
        trouble = unreachable(url, error)
      }
      if (attempt === ATTEMPTS) throw failed(trouble)
      if (!hasTold) onTrouble(`${trouble} Trying again.`)
      hasTold = true
      await patience.sleep(retryDelayMs(attempt - 1, wait, patience.random))
    }
  }

  /** An answer of the service: JSON on success, a problem otherwise. */
  function checked(status: number, text: string): { status: number; text: string } {
    const isOurs = status === 200 ? isJsonObject(text) : readProblem(text) !== null || status === 413
    if (!isOurs) throw failed(refusal(url, status, text))
    return { status, text }
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

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
