/**
 * Sends the items of a flush in the host's request that waits for it. Nothing here waits for a promise or a timer of another
 * request: platforms may bind these to their request, so they may never resolve, or resume the wrong request.
 *
 *   queued ---------> sent by this flush --------answer----> done
 *   sent by another --answer-------------------------------> done
 *            \------no answer soon: sent by this one too---> done, by the first answer: the service stores an event once
 */
import type { Runtime } from './runtime.ts'
import type { Flush } from './sender.ts'

/** Interval for checking what other flushes send. */
const LOOK_MS = 10
/** After this time, the request that was sending the items may have been stopped by its runtime. */
const PATIENCE_MS = 500

/**
 * Sends a queued batch, or one that another request has been sending for `patienceMs`. Undefined if there is none; `over`
 * when the flush ended, or the service refuses the key.
 */
type SendNext = (patienceMs: number) => Promise<void> | 'over' | undefined

export async function flushHere(flush: Flush, { timer }: Pick<Runtime, 'timer'>, sendNext: SendNext): Promise<void> {
  while (flush.left > 0) {
    const sending = sendNext(PATIENCE_MS)
    if (sending === 'over') break
    await (sending ?? new Promise<void>((resolve) => void timer(LOOK_MS, resolve, true)))
  }
  // Also send items recorded meanwhile, which may have no later flush: the outcome of an answer whose body has ended.
  await sendNext(Infinity)
  flush.end()
}
