/** The process that records: through the SDK, or with minimal handwritten code. */
import { setImmediate as turn } from 'node:timers/promises'
import { Tacho } from '@tacho/sdk'
import { answer } from '../child.ts'
import { rateOf, type Rate } from '../stats.ts'

export interface RecordLoad {
  by: 'sdk' | 'hand'
  url: string
  seconds: number
}

const BATCH = 100
/** Events between two turns of the event loop, as in a busy host. */
const STRIDE = 100
const QUEUED_MAX = 10_000

interface Recorder {
  record(n: number): void
  queued(): number
  /** Delivers the remaining events. Returns the total number of accepted events. */
  end(): Promise<number>
}

const payloadOf = (n: number) => ({
  toolName: 'search_orders',
  input: { customer: `customer-${n % 1_000}`, status: 'open', limit: 20 },
  output: { orders: [{ id: `order-${n}`, total: 129.9, items: 3 }] },
  latency: n % 300,
})

function withSdk(url: string): Recorder {
  const tacho = new Tacho({ apiKey: 'bench', baseUrl: url, clientId: 'bench' })
  const run = tacho.startRun({ agentId: 'bench', agentName: 'Bench', sessionId: 'session' })
  return {
    record: (n) => void run.toolCall(payloadOf(n)),
    queued: () => tacho.counters().queued,
    async end() {
      await tacho.shutdown(60_000)
      return tacho.counters().accepted
    },
  }
}

/** Serialises events and sends full batches. Without masking, bounds, retries or spans. */
function byHand(url: string): Recorder {
  const queue: string[] = []
  let accepted = 0
  let sending: Promise<void> | undefined
  async function send(): Promise<void> {
    while (queue.length > 0) {
      const body = `[${queue.splice(0, BATCH).join(',')}]`
      const headers = { 'content-type': 'application/json', 'x-api-key': 'bench' }
      const response = await fetch(`${url}/openapi/v1/events/batch`, { method: 'POST', headers, body })
      accepted += ((await response.json()) as { accepted: number }).accepted
    }
    sending = undefined
  }
  return {
    record(n) {
      const shared = { clientId: 'bench', runId: 'run', sessionId: 'session', agentId: 'bench', agentName: 'Bench' }
      const event = { eventType: 'TOOL_CALL', label: 'search_orders', timestamp: Date.now(), payload: payloadOf(n) }
      queue.push(JSON.stringify({ eventId: `event-${n}`, ...shared, ...event }))
      if (queue.length >= BATCH) sending ??= Promise.resolve().then(send)
    },
    queued: () => queue.length,
    async end() {
      await (sending ?? send())
      if (queue.length > 0) await send()
      return accepted
    },
  }
}

answer<RecordLoad, Rate>(async ({ by, url, seconds }) => {
  const recorder = by === 'sdk' ? withSdk(url) : byHand(url)
  let n = 0
  const half = seconds * 500
  const begun = performance.now()
  while (performance.now() - begun < half) {
    for (let stride = 0; stride < STRIDE; stride++) recorder.record(n++)
    do await turn()
    while (recorder.queued() > QUEUED_MAX)
  }
  const counted = n
  while (recorder.queued() > BATCH) await turn()
  const perSecond = (counted * 1_000) / (performance.now() - begun)

  const took: number[] = []
  for (const end = performance.now() + half; performance.now() < end;) {
    for (let stride = 0; stride < STRIDE; stride++) {
      const from = performance.now()
      recorder.record(n++)
      took.push(performance.now() - from)
    }
    do await turn()
    while (recorder.queued() > QUEUED_MAX)
  }
  const accepted = await recorder.end()
  if (accepted !== n) throw new Error(`${n} events were recorded, ${accepted} accepted`)
  return rateOf(took, perSecond)
})
