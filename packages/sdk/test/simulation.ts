/** A simulated host: the test controls its clock and its network. */
import type { Fetch, Runtime } from '../src/delivery/runtime.ts'
import type { SentEvent } from './scripted-server.ts'

export interface SimulatedRequest {
  at: number
  method: string
  path: string
  headers: Record<string, string>
  body: string
  events: SentEvent[]
  signal: AbortSignal
}

export interface SimulatedReply {
  status?: number
  headers?: Record<string, string>
  /** Sent as JSON, unless it is a text. */
  body?: unknown
}

/** Answers, never answers, or fails like a network. */
export type Network = (request: SimulatedRequest) => SimulatedReply | Promise<SimulatedReply>

export interface Simulation {
  runtime: Runtime
  requests: SimulatedRequest[]
  now(): number
  /** Advances the clock. Timers fire in order, and promises settle between them. */
  pass(ms: number): Promise<void>
  /** Number of timers that keep the process running. */
  holds(): number
  timers(): number
}

const START = Date.UTC(2026, 0, 1)

export const acceptAll: Network = ({ events }) => judged({ accepted: events.length })

export function judged(answer: object): SimulatedReply {
  return { body: { success: true, accepted: 0, retryableEventIds: [], rejectedEventIds: [], ...answer } }
}

export function simulate(network: Network, random: () => number = () => 0.5): Simulation {
  let time = START
  let order = 0
  const timers = new Set<{ at: number; order: number; act: () => void; hold: boolean }>()
  const requests: SimulatedRequest[] = []

  const fetch: Fetch = async (url, init) => {
    const body = String(init.body ?? '')
    const request: SimulatedRequest = {
      at: time - START,
      method: init.method,
      path: new URL(url).pathname,
      headers: init.headers,
      body,
      events: body.startsWith('[') ? (JSON.parse(body) as SentEvent[]) : [],
      signal: init.signal as AbortSignal,
    }
    requests.push(request)
    const { status = 200, headers = {}, body: reply } = await network(request)
    const text = typeof reply === 'string' ? reply : JSON.stringify(reply ?? {})
    return new Response(text, { status, headers }) as unknown as Awaited<ReturnType<Fetch>>
  }

  const runtime: Runtime = {
    now: () => time,
    random,
    fillRandom: (bytes) => void crypto.getRandomValues(bytes),
    timer(ms, act, hold = false) {
      const timer = { at: time + Math.max(0, ms), order: order++, act, hold }
      timers.add(timer)
      return { cancel: () => void timers.delete(timer) }
    },
    soon: (act) => void runtime.timer(0, act),
    fetch,
  }

  return {
    runtime,
    requests,
    now: () => time,
    holds: () => [...timers].filter(({ hold }) => hold).length,
    timers: () => timers.size,
    async pass(ms) {
      const end = time + ms
      for (;;) {
        await finish()
        const next = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0]
        if (!next) break
        timers.delete(next)
        time = Math.max(time, next.at)
        next.act()
      }
      time = end
    },
  }
}

/** Runs promises and streams until they wait for a timer. */
async function finish(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}
