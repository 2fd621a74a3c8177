/** What the SDK uses from its process. Tests supply their own clock, randomness, timers and network. */
import { outside } from './context.ts'

export interface Timer {
  cancel(): void
}

/** The part of `fetch` that the SDK uses. Every fetch implementation fits. */
export type Fetch = (
  url: string,
  init: {
    method: string
    headers: Record<string, string>
    body?: string | Uint8Array
    signal?: unknown
    redirect?: 'manual'
    cache?: 'no-store'
  },
) => Promise<FetchReply>

export interface FetchReply {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { getReader(): ReplyReader } | null
}

export interface ReplyReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

/** The part of an AbortSignal that the SDK uses. Every AbortSignal fits. */
export interface StopSignal {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

export interface Runtime {
  /** Unix time in milliseconds. */
  now(): number
  /** From 0 (inclusive) to 1 (exclusive); for jitter, not for ids. */
  random(): number
  /** Fills the array with cryptographically random bytes. */
  fillRandom(bytes: Uint8Array<ArrayBuffer>): void
  /** Calls `act` after `ms`. Only a timer with `hold` keeps the process running until then. */
  timer(ms: number, act: () => void, hold?: boolean): Timer
  /** Calls `act` after the host's current synchronous code. */
  soon(act: () => void): void
  fetch: Fetch
}

/** The longest delay a timer supports; a longer one would fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

type Unrefable = { unref?: () => void }

/** As they are at the import: fake timers of a test would stop deliveries and deadlines. */
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis
const { now } = Date

/** The clock, randomness, timers and network of the host. */
export const hostRuntime: Runtime = {
  now: () => outside(now),
  random: () => outside(Math.random),
  fillRandom: (bytes) => void outside(() => crypto.getRandomValues(bytes)),
  timer(ms, act, hold) {
    const handle = outside(() => startTimer(act, Math.min(ms, TIMER_MAX_MS)))
    // Some runtimes return a number, which cannot keep a process running.
    if (!hold) (handle as unknown as Unrefable).unref?.()
    return { cancel: () => stopTimer(handle) }
  },
  // Edge runtimes have no setImmediate, or one that throws.
  soon: (act) => void hostRuntime.timer(0, act, true),
  fetch: (url, init) => (globalThis.fetch as unknown as Fetch)(url, init),
}
