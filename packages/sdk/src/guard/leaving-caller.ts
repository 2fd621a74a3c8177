/**
 * The caller of a guarded call, who may leave while a person is asked: then nothing runs under the approval.
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

/** Leaves with the run, its process, or the signal of the host. */
export class LeavingCaller {
  readonly #core: Core
  readonly scope: Context['scope']
  readonly #signal: StopSignal | undefined
  readonly #stop = new AbortController()
  readonly #onAbort = () => this.leave(reasonOf(this.#signal))
  /** Called once, when the caller leaves. Set while a request is known. */
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

  /** Ends the wait. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** @param ended only if it is a call of this run. */
  leave(reason: LeaveReason | 'handed_over', ended: Context['scope'] = this.scope): void {
    if (this.gone !== null || ended !== this.scope) return
    this.gone = reason
    this.close()
    if (reason !== 'handed_over') readSafely(() => this.onLeave?.(reason), undefined)
    // The host's code goes no further while its process ends.
    if (reason !== 'process_ended') this.#stop.abort()
  }

  /** The call runs or was refused. */
  close(): void {
    this.#core.leavers.delete(this)
    this.#signal?.removeEventListener('abort', this.#onAbort)
  }
}

/** A host passes the reason to `abort(reason)`; `AbortSignal.timeout` does too. */
function reasonOf(signal: StopSignal | undefined): LeaveReason {
  return readSafely(() => {
    const { reason } = signal as { reason?: unknown }
    if (OF_SIGNALS.has(reason)) return reason as LeaveReason
    return (reason as { name?: unknown } | undefined)?.name === 'TimeoutError' ? 'timeout' : 'aborted'
  }, 'aborted')
}
