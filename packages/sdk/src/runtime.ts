/** What the SDK takes from the process around it. Tests give their own clock, chance, timers and network. */

export interface Timer {
  cancel(): void
}

/** The part of `fetch` that the SDK uses; every fetch fits. */
export type Fetch = (
  url: string,
  init: {
    method: string
    headers: Record<string, string>
    body?: string | Uint8Array
    signal?: unknown
    redirect?: 'manual'
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

/** The part of an AbortSignal that the SDK uses; every AbortSignal fits. */
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
  /** Fills the bytes with unpredictable ones. */
  fillRandom(bytes: Uint8Array<ArrayBuffer>): void
  /** Calls `act` after `ms`. Only a timer that holds keeps the process running until then. */
  timer(ms: number, act: () => void, hold?: boolean): Timer
  /** Calls `act` after the host's current turn. */
  soon(act: () => void): void
  fetch: Fetch
}

/** The longest delay that timers take; a longer one would fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

type Unrefable = { unref?: () => void }

/** The clock, chance, timers and network of the host. */
export const hostRuntime: Runtime = {
  now: () => Date.now(),
  random: () => Math.random(),
  fillRandom: (bytes) => void crypto.getRandomValues(bytes),
  timer(ms, act, hold = false) {
    const handle = setTimeout(act, Math.min(ms, TIMER_MAX_MS))
    // A number in some runtimes, which hold nothing.
    if (!hold) (handle as unknown as Unrefable).unref?.()
    return { cancel: () => clearTimeout(handle) }
  },
  soon(act) {
    if (typeof setImmediate === 'function') setImmediate(act)
    else setTimeout(act, 0)
  },
  fetch: (url, init) => (globalThis.fetch as unknown as Fetch)(url, init),
}
