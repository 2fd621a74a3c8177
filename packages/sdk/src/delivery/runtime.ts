/** Functions that the SDK uses from its process. Tests supply their own clock, randomness, timers and network. */
import { outside } from '../recording/context.ts'
import { readSafely } from '../recording/json.ts'

/** @internal */
export interface Timer {
  cancel(): void
}

/** The part of `fetch` that the SDK uses. Every fetch implementation fits, and a plain function of a test. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchReply>

export interface FetchInit {
  method: string
  headers: Record<string, string>
  redirect?: 'manual'
  cache?: 'no-store'
  /** A text or a Uint8Array. Hosts have different types of `body` and `signal`. */
  // oxlint-disable-next-line typescript/no-explicit-any
  body?: any
  // oxlint-disable-next-line typescript/no-explicit-any
  signal?: any
}

/** @internal Joins a body in pieces to a text, which any fetch accepts. */
export function inOnePiece<Init extends FetchInit>(init: Init): Init {
  return Array.isArray(init.body) ? { ...init, body: init.body.join('') } : init
}

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

/** @internal */
export interface Runtime {
  /** Unix time in milliseconds. */
  now(): number
  /** From 0 (inclusive) to 1 (exclusive); for jitter, not for ids. */
  random(): number
  /** Fills the array with cryptographically random bytes. False: only weaker ones are available yet. */
  fillRandom(bytes: Uint8Array<ArrayBuffer>): boolean | void
  /** Calls `act` after `ms`. Only a timer with `hold` keeps the process running until then. */
  timer(ms: number, act: () => unknown, hold?: boolean): Timer
  /** Calls `act` after the host's current synchronous code. */
  soon(act: () => void): void
  fetch: Fetch
  /** Default: 500. Tests set Infinity, because on a slow machine a run could seem to start late. */
  lateStartMs?: number
}

/** The longest delay a timer supports; a longer one would fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

type Unrefable = { unref?: () => void }

interface Timers {
  setTimeout: typeof globalThis.setTimeout
  clearTimeout: typeof globalThis.clearTimeout
  /** Only from `node:timers`. */
  setImmediate?: (act: () => void) => unknown
}

/** @internal Read at the import: fake timers of a test would stop deliveries. In Node, those of `node:timers` replace them. */
export const timers: Timers = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }
const { now } = Date

/** @internal The clock, randomness, timers and network of the host. */
export const hostRuntime: Runtime = {
  now: () => outside(now),
  random: () => outside(Math.random),
  fillRandom(bytes) {
    try {
      outside(() => crypto.getRandomValues(bytes))
      return true
    } catch {
      // Edge workers forbid it while they load a module.
      for (const at of bytes.keys()) bytes[at] = Math.random() * 256
      return false
    }
  },
  timer(ms, act, holdsProcess) {
    // Browsers refuse to call them as methods.
    const { setTimeout: startTimer, clearTimeout: stopTimer } = timers
    // Edge workers forbid timers while they load a module. The next flush needs none.
    const handle = readSafely(() => outside(() => startTimer(act, Math.min(ms, TIMER_MAX_MS))), undefined)
    if (handle === undefined) return { cancel: () => undefined }
    // Some runtimes return a number, without `unref`: their timers do not keep a process running.
    if (!holdsProcess) (handle as unknown as Unrefable).unref?.()
    return { cancel: () => stopTimer(handle) }
  },
  // Edge runtimes have no setImmediate, or one that throws.
  soon: (act) => void hostRuntime.timer(0, act, true),
  fetch: (url, init) => (globalThis.fetch as unknown as Fetch)(url, init),
}
