/** Ends a client with its process. process-end.ts decides when. */
import { appendFileSync } from 'node:fs'
import process from 'node:process'
import type { Diagnostics, FlushResult } from '../delivery/diagnostics.ts'
import type { Failure } from '../delivery/ending.ts'
import type { Settings } from '../options.ts'
import { endRunsAtEnd } from '../delivery/process-end.ts'
import type { Sender } from '../delivery/sender.ts'
import { readSafely } from '../recording/json.ts'
import { hint } from './deliver-now.ts'
import { isHostOver } from './idle-host.ts'

/** Parts of the core that the end needs. */
interface Ended {
  readonly sender: Sender
  readonly settings: Settings
  readonly diagnostics: Diagnostics
  readonly openRuns: ReadonlyMap<{ fail(status: 'FAILED' | 'CANCELLED', failure: Failure): void }, 'own' | 'started'>
  readonly leavers: ReadonlySet<{ leave(reason: 'process_ended'): void }>
  readonly control?: { readonly hasQueued: boolean; leave(): Promise<void> }
  readonly endRequests: () => void
  readonly deliverNow: (timeoutMs: number) => void
}

/** Ends a client with its process. Returns a function that cancels this. */
export function endWith(core: Ended, flush: (timeoutMs?: number) => Promise<FlushResult>): () => void {
  const { sender, settings, diagnostics, openRuns, leavers } = core
  // Tell `tacho record` that an SDK records this program. Throws without the variable.
  readSafely(() => settings.enabled && appendFileSync(process.env['TACHO_RECORDED_BY'] as string, ''), undefined)
  /** Whether a delivery did not finish in its time. */
  let isGivenUp = false

  function giveUp(left: number): void {
    if (left === 0) return
    isGivenUp = true
    core.endRequests()
    const fate = settings.spool ? 'The spool keeps them.' : `They are lost.${hint()}`
    diagnostics.report('error', 'events_undelivered', `Not delivered to ${settings.baseUrl}: ${left} events. ${fate}`)
  }

  return endRunsAtEnd({
    flushOnSignals: settings.flushOnSignals,
    hasQueued: () => sender.held.queued > 0 || core.control?.hasQueued === true,
    async flush() {
      // If only our requests kept the host running, the time for a flush has passed already.
      const isOver = isHostOver()
      const { left } = await flush(isOver ? 0 : undefined)
      if (!isOver) await core.control?.leave()
      giveUp(left)
    },
    endRuns(status, failure, isFailed) {
      for (const leaver of leavers) leaver.leave('process_ended')
      for (const [run, how] of openRuns) if (how === 'own' || isFailed) run.fail(status, failure)
    },
    deliverNow(spentMs) {
      if (isGivenUp) return
      core.deliverNow(settings.flushTimeoutMs - spentMs)
      giveUp(sender.held.queued)
    },
    warn(clients) {
      const message = `${clients} clients are open. Create one for the process, or call shutdown on each.`
      diagnostics.report('warning', 'clients_open', message)
    },
  })
}
