/**
 * Ends clients with their process.
 *
 *   work is over   beforeExit   deliver as usual
 *   signal         SIGTERM, …   end open runs as CANCELLED, deliver, let the signal take effect; the host's own listeners
 *                               decide instead, if there are any. A bundle can hold the SDK twice: the last copy that has
 *                               delivered ends the process
 *   any other end  exit         end open runs as FAILED, then deliver while the process waits
 */
import type { Failure } from './ending.ts'

export interface Ending {
  /** Ends within a bounded time. */
  flush(): Promise<unknown>
  hasQueued(): boolean
  readonly flushOnSignals: boolean
  /** Ends runs of `startRun` only if the process failed. */
  endRuns(status: 'FAILED' | 'CANCELLED', failure: Failure, isFailed: boolean): void
  /** Delivers before it returns. @param spentMs what other clients took of the time. */
  deliverNow(spentMs: number): void
  /** Called for many open clients, which suggest that the host creates one for each request. */
  warn(clients: number): void
}

type Listener = ((given: unknown) => void) & { [OURS]?: true }

/** Bun and Deno have it too. */
interface HostProcess {
  readonly pid: number
  on(event: string, listener: Listener): unknown
  prependListener(event: string, listener: Listener): unknown
  removeListener(event: string, listener: Listener): unknown
  listeners(event: string): Listener[]
  kill(pid: number, signal: string): unknown
}

/** Shared by every copy of the SDK in this process. */
const OURS = Symbol.for('tacho.listener')
const SIGNALS = ['SIGTERM', 'SIGINT']
/** A process group and its parent may pass on the same signal. */
const SAME_SIGNAL_MS = 1_000

/** Each client keeps its queue, its timers and its policies until its shutdown. */
const CLIENTS_MAX = 20

/** One listener for all clients of a process. */
const endings = new Set<Ending>()
const listening = new Map<string, Listener>()
/** The exception or signal that may be about to end the process. A host that handles it can also continue. */
let thrown: Failure | undefined
let signalled: { readonly signal: string; readonly at: number } | undefined

/** Ends open runs at the end of the process, in hosts with a `process`. Call the result to stop. */
export function endRunsAtEnd(ending: Ending): () => void {
  const { process: host } = globalThis as unknown as { process: HostProcess }
  endings.add(ending)
  if (endings.size === CLIENTS_MAX) ending.warn(CLIENTS_MAX)
  listen(host, 'beforeExit', onBeforeExit)
  listen(host, 'uncaughtExceptionMonitor', (error) => (thrown = { error }))
  listen(host, 'exit', onExit)
  if (ending.flushOnSignals) for (const signal of SIGNALS) listen(host, signal, () => void onSignal(host, signal))
  return () => {
    endings.delete(ending)
    if (endings.size === 0) forget(host, ...listening.keys())
  }
}

function listen(host: HostProcess, event: string, listener: Listener): void {
  if (listening.has(event)) return
  listener[OURS] = true
  listening.set(event, listener)
  // First, so that the host's own listeners can be counted: those of `once` are removed when they are called.
  host.prependListener(event, listener)
}

function forget(host: HostProcess, ...events: readonly string[]): void {
  for (const event of events) {
    const listener = listening.get(event)
    if (listener) host.removeListener(event, listener)
    listening.delete(event)
  }
}

/** Clients that have flushed: `beforeExit` comes again after each delivery, which must not loop forever. */
const flushed = new WeakSet<Ending>()

function onBeforeExit(): void {
  for (const ending of endings) {
    if (flushed.has(ending) || !ending.hasQueued()) continue
    flushed.add(ending)
    void ending.flush()
  }
}

function onExit(code: unknown): void {
  const begun = Date.now()
  const isFailed = code !== 0 || signalled !== undefined
  for (const ending of endings) {
    if (signalled) ending.endRuns('CANCELLED', bySignal(signalled.signal), isFailed)
    else
      ending.endRuns(
        'FAILED',
        (code !== 0 && thrown) ||
          noted('ProcessExit', `The process ended with code ${String(code)} before the run did.`),
        isFailed,
      )
    ending.deliverNow(Date.now() - begun)
  }
}

const bySignal = (signal: string) => noted(signal, `The process was ended by ${signal}.`)

/** An error without a stack, which would only show the SDK. */
function noted(name: string, message: string): Failure {
  return { error: Object.assign(new Error(message), { name, stack: undefined }) }
}

async function onSignal(host: HostProcess, signal: string): Promise<void> {
  const before = signalled
  const at = Date.now()
  if (before && at - before.at < SAME_SIGNAL_MS) return
  signalled = { signal, at }
  const isHosts = () => host.listeners(signal).some((listener) => !listener[OURS])
  const hasOthers = isHosts()
  // A second signal takes effect at once.
  if (hasOthers || !before) {
    const waiting = [...endings].filter(({ flushOnSignals }) => flushOnSignals)
    if (!hasOthers) for (const ending of waiting) ending.endRuns('CANCELLED', bySignal(signal), true)
    await Promise.all(waiting.map((ending) => ending.flush()))
  }
  if (hasOthers || isHosts()) return
  forget(host, signal)
  if (host.listeners(signal).length === 0) host.kill(host.pid, signal)
}
