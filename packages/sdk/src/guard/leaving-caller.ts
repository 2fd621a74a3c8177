/**
 * The caller of a guarded call. If it leaves while a person is asked, nothing runs under the approval.
 *
 *   waits --the call runs or is refused--> closed
 *     \--timeout, abort, the end of the run or process--> gone     \--another process continues the run--> handed over
 */
import type { Context } from '../recording/context.ts'
import type { Core } from '../core.ts'
import { readSafely } from '../recording/json.ts'
import type { StopSignal } from '../delivery/runtime.ts'

export type LeaveReason = 'timeout' | 'cancelled' | 'aborted' | 'run_ended' | 'process_ended'

const OF_SIGNALS: ReadonlySet<unknown> = new Set<LeaveReason>(['timeout', 'cancelled', 'run_ended', 'process_ended'])

/** Aborts when the run or its process ends, or with the host's signal. */
export class LeavingCaller {
  readonly #core: Core
  readonly scope: Context['scope']
  readonly #signal: StopSignal | undefined
  readonly #stop = new AbortController()
  readonly #onAbort = () => this.leave(reasonOf(this.#signal))
  /** Called once, when the caller leaves. Set only while there is a request. */
  onLeave: ((reason: LeaveReason) => void) | undefined
  /** `handed_over`: the next process of the run continues the call. */
  gone: LeaveReason | 'handed_over' | null = null

  constructor(core: Core, { scope }: Context, signal: StopSignal | undefined) {
    this.#core = core
    this.scope = scope
    this.#signal = signal
    core.leavers.add(this)
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (signal?.aborted) this.#onAbort()
    else if (scope.hasEnded) this.leave('run_ended')
  }

  /** Aborts the wait. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** @param ended leaves only if the call belongs to this run. */
  leave(reason: LeaveReason | 'handed_over', ended: Context['scope'] = this.scope): void {
    if (this.gone !== null || ended !== this.scope) return
    this.gone = reason
    this.close()
    if (reason !== 'handed_over') readSafely(() => this.onLeave?.(reason), undefined)
    // When the process ends, do not abort: the host's code would continue.
    if (reason !== 'process_ended') this.#stop.abort()
  }

  /** Call it when the call runs or was refused. */
  close(): void {
    this.#core.leavers.delete(this)
    this.#signal?.removeEventListener('abort', this.#onAbort)
  }
}

/** The reason that the host passed to `abort(reason)`. `AbortSignal.timeout` passes one too. */
function reasonOf(signal: StopSignal | undefined): LeaveReason {
  return readSafely(() => {
    const { reason } = signal as { reason?: unknown }
    if (OF_SIGNALS.has(reason)) return reason as LeaveReason
    return (reason as { name?: unknown } | undefined)?.name === 'TimeoutError' ? 'timeout' : 'aborted'
  }, 'aborted')
}
