import { createCore, type Core } from './core.ts'
import type { Counters } from './diagnostics.ts'
import type { EventType, Payload } from './event.ts'
import type { TachoOptions } from './options.ts'
import { createScope, Run, type RunOptions } from './run.ts'
import { hostRuntime, type Runtime } from './runtime.ts'
import type { FlushResult } from './sender.ts'

/** A client of one environment. Nothing here throws, waits or ends the process of its host. */
export class Tacho {
  readonly #core: Core

  /** `runtime` is for tests: another clock, network or source of chance. */
  constructor(options: TachoOptions = {}, runtime: Runtime = hostRuntime) {
    this.#core = createCore(options, runtime)
  }

  /** Runs `act` as one agent execution and records its outcome; what `act` returns or throws comes out unchanged. */
  async run<T>(options: RunOptions, act: (run: Run) => T): Promise<Awaited<T>> {
    const run = this.startRun(options)
    try {
      const result = await run.within(() => act(run))
      run.end('COMPLETED')
      return result
    } catch (error) {
      const isAbort = error instanceof Error && error.name === 'AbortError'
      run.end(isAbort ? 'CANCELLED' : 'FAILED', { error: String(error) })
      throw error
    }
  }

  /** Begins or continues a run without a callback; call its `end`. */
  startRun(options: RunOptions = {}): Run {
    return new Run(this.#core, createScope(this.#core, options))
  }

  /** Records an event on the current run. */
  record(type: EventType, label: string, payload?: Payload): string | undefined {
    return this.#core.record(this.#core.context.getStore()?.scope, { type, label, payload })
  }

  /** Waits until everything recorded so far is delivered, rejected or dropped, or the time is up. */
  flush(timeoutMs: number = this.#core.settings.flushTimeoutMs): Promise<FlushResult> {
    return this.#core.sender.flush(timeoutMs)
  }

  /** Delivers what is queued, then takes nothing more. */
  async shutdown(timeoutMs?: number): Promise<FlushResult> {
    const result = await this.flush(timeoutMs)
    this.#core.sender.close()
    return result
  }

  counters(): Counters {
    return this.#core.diagnostics.counters(this.#core.sender.held)
  }
}
