/** Records events through the public API: batches, retries, stable ids. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Failure, Refusal } from '@tacho/client/call.ts'
import { JsonText } from '@tacho/client/json-text.ts'
import { createPublicClient } from '@tacho/client/public.ts'
import type { BatchResult, Event, EventInput } from '@tacho/contract/record/event.ts'
import type { WarningCode } from '@tacho/contract/web/errors.ts'
import { IMPORT_HEADER } from '@tacho/contract/engine/words.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { readBatchAnswer } from '../../../sdk/src/delivery/answer.ts'
import { delayMs } from '../../../sdk/src/delivery/retry.ts'
import { httpFetch } from '@tacho/guards/http-fetch.ts'
import { sentenceOf } from '../engine/operator-client.ts'
import { failed } from '../engine/stop.ts'

const ATTEMPTS = 8
const UNCOUNTED = new Set<string>(['usage_not_counted', 'cost_not_counted'] satisfies WarningCode[])

export interface RefusedEvent {
  eventId: string
  code: string
  message: string
}

/** Each event is either accepted or refused. */
export interface Recorded {
  /** Stored now or before; the server does not say which. */
  accepted: number
  refused: RefusedEvent[]
  /** Accepted events with a count or cost that the server could not read. */
  uncounted: RefusedEvent[]
}

export interface Recorder {
  /** Resolves when every event is stored or refused. Rejects with a Stop when the server keeps failing. */
  record(events: Iterable<EventInput>): Promise<Recorded>
  /** First event on the timeline of a run; null if the run does not exist. */
  firstEvent(runId: string): Promise<Event | null>
}

interface RecorderOptions {
  /** Called once, on the first retry: retries may take a while. */
  onTrouble?: (sentence: string) => void
  /** Events may be older than 30 days. */
  isImport?: boolean
  /** Sleep and random numbers, replaceable in tests. */
  patience?: Patience
}

interface Patience {
  sleep: (ms: number) => Promise<unknown>
  random: () => number
}

const PATIENCE: Patience = { sleep: (ms) => sleep(ms), random: Math.random }

/** `url` comes from `readUrl`. */
export function openRecorder(url: string, apiKey: string, options: RecorderOptions = {}): Recorder {
  const { onTrouble = () => undefined, patience = PATIENCE, isImport = false } = options
  const client = createPublicClient({ url, apiKey, fetch: isImport ? fetchAsImport : httpFetch })
  let hasTold = false
  return {
    async record(events) {
      const sum: Recorded = { accepted: 0, refused: [], uncounted: [] }
      for (const batch of batches(Iterator.from(events).map(packed))) {
        const { accepted, refused, uncounted } = await recordBatch(batch)
        sum.accepted += accepted
        sum.refused.push(...refused)
        sum.uncounted.push(...uncounted)
      }
      return sum
    },
    async firstEvent(runId) {
      const result = await patiently(() => client.listRunEvents({ params: { runId }, query: { limit: 1 } }))
      if (result.ok) return result.value.items[0] ?? null
      if (result.code === 'not_found') return null
      throw failed(sentenceOf(url, result, 'API key'))
    },
  }

  async function recordBatch(batch: PackedEvent[]): Promise<Recorded> {
    const refused: RefusedEvent[] = []
    const uncounted: RefusedEvent[] = []
    let left = batch
    for (let attempt = 0; left.length > 0; attempt++) {
      if (attempt === ATTEMPTS) throw failed(`${url} could not store ${left.length} events after ${ATTEMPTS} attempts.`)
      if (attempt > 0) await patience.sleep(delayMs(attempt, undefined, patience.random()))
      const body = new JsonText(batchBody(left))
      const result = await patiently(() => client.recordEvents({ body }))
      if (result.status === 413) {
        // A proxy has a lower limit than the server. Refuse only these events: later ones may be small enough.
        refused.push(
          ...left.map(({ eventId }) => ({ eventId, code: 'body_too_large', message: 'The body is too large' })),
        )
        break
      }
      if (!result.ok) throw failed(sentenceOf(url, result, 'API key'))
      const answer = verdicts(left, result.value)
      refused.push(...answer.refused)
      uncounted.push(...(result.value.warnings ?? []).filter(({ code }) => UNCOUNTED.has(code)))
      left = answer.left
    }
    return { accepted: batch.length - refused.length, refused, uncounted }
  }

  /** Sends a request, and retries temporary failures. */
  async function patiently<Answer extends { ok: true }>(
    call: () => Promise<Answer | Refusal | Failure>,
  ): Promise<Answer | Refusal | Failure> {
    for (let attempt = 1; ; attempt++) {
      const result = await call()
      if (result.ok || !result.temporary) return result
      const trouble = sentenceOf(url, result, 'API key')
      if (attempt === ATTEMPTS) throw failed(trouble)
      if (!hasTold) onTrouble(`${trouble} Retrying.`)
      hasTold = true
      await patience.sleep(delayMs(attempt, result.retryAfterMs ?? undefined, patience.random()))
    }
  }
}

const fetchAsImport: typeof fetch = (address, init) =>
  httpFetch(address, { ...init, headers: { ...(init?.headers as Record<string, string>), [IMPORT_HEADER]: 'true' } })

/** Sorts the events of a batch by the server's verdicts. */
function verdicts(batch: PackedEvent[], result: BatchResult): { left: PackedEvent[]; refused: RefusedEvent[] } {
  const ids = batch.map(({ eventId }) => eventId)
  const { retry, rejected } = readBatchAnswer(result, ids) ?? {
    retry: new Set(ids),
    rejected: new Map<string, string>(),
  }
  const messages = new Map((result.rejections ?? []).map(({ eventId, message }) => [eventId, message]))
  const refused = [...rejected].map(([eventId, code]) => {
    return { eventId, code, message: messages.get(eventId) ?? 'The server rejected the event' }
  })
  return { left: batch.filter(({ eventId }) => retry.has(eventId)), refused }
}

/** Packs events into request bodies. Pure. */

/** An encoded event: every attempt sends the same bytes. */
export interface PackedEvent {
  eventId: string
  text: string
}

function packed(event: EventInput): PackedEvent {
  return { eventId: event.eventId, text: JSON.stringify(event) }
}

export function batchBody(batch: readonly PackedEvent[]): string {
  return `[${batch.map(({ text }) => text).join(',')}]`
}

/**
 * Events in order, in batches of at most 100 events and 1 MiB. A larger event gets its own batch, which the server
 * rejects. No batch has an event id twice, because the reply gives verdicts by id.
 */
export function* batches(events: Iterable<PackedEvent>): Generator<PackedEvent[]> {
  let batch: PackedEvent[] = []
  let ids = new Set<string>()
  let bytes = 2
  for (const event of events) {
    const more = Buffer.byteLength(event.text) + (batch.length > 0 ? 1 : 0)
    const full = batch.length === LIMITS.batchEvents || bytes + more > LIMITS.batchBytes || ids.has(event.eventId)
    if (batch.length > 0 && full) {
      yield batch
      batch = []
      ids = new Set()
      bytes = 2
    }
    bytes += Buffer.byteLength(event.text) + (batch.length > 0 ? 1 : 0)
    batch.push(event)
    ids.add(event.eventId)
  }
  if (batch.length > 0) yield batch
}
