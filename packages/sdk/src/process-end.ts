/** What clients do when their process ends on its own or by a signal. */

export interface Ending {
  /** Delivers queued events, within a bound. */
  flush(): Promise<unknown>
  hasQueued(): boolean
  readonly flushOnSignals: boolean
}

type Listener = (signal?: string) => void

/** The part of Node's `process` that this needs. Bun and Deno have it too. */
interface HostProcess {
  readonly pid: number
  on(event: string, listener: Listener): unknown
  removeListener(event: string, listener: Listener): unknown
  listenerCount(event: string): number
  kill(pid: number, signal: string): unknown
}

const SIGNALS = ['SIGTERM', 'SIGINT']

/** One listener for all clients of a process. */
const endings = new Set<Ending>()
const listening = new Map<string, Listener>()

/** Only for hosts with a `process`. Returns a function that stops it. */
export function flushAtEnd(ending: Ending): () => void {
  const { process: host } = globalThis as unknown as { process: HostProcess }
  endings.add(ending)
  listen(host, 'beforeExit', onBeforeExit)
  if (ending.flushOnSignals) for (const signal of SIGNALS) listen(host, signal, () => void onSignal(host, signal))
  return () => {
    endings.delete(ending)
    if (endings.size === 0) forget(host, ...listening.keys())
  }
}

function listen(host: HostProcess, event: string, listener: Listener): void {
  if (listening.has(event)) return
  listening.set(event, listener)
  host.on(event, listener)
}

function forget(host: HostProcess, ...events: readonly string[]): void {
  for (const event of events) {
    const listener = listening.get(event)
    if (listener) host.removeListener(event, listener)
    listening.delete(event)
  }
}

/** Clients that already had their chance. `beforeExit` comes again after each delivery, which must not loop forever. */
const flushed = new WeakSet<Ending>()

function onBeforeExit(): void {
  for (const ending of endings) {
    if (flushed.has(ending) || !ending.hasQueued()) continue
    flushed.add(ending)
    void ending.flush()
  }
}

/** Delivers, then lets the signal take effect. If the host has its own listeners, they decide instead. */
async function onSignal(host: HostProcess, signal: string): Promise<void> {
  await Promise.all([...endings].filter(({ flushOnSignals }) => flushOnSignals).map((ending) => ending.flush()))
  if (host.listenerCount(signal) > 1) return
  forget(host, signal)
  host.kill(host.pid, signal)
}
