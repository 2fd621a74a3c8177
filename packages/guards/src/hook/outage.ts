/**
 * Limits the delay by a service that is down or silent to one second per session: the first hook waits, and writes a
 * file that keeps later hooks from waiting.
 *
 *   answering --no answer within a second--> out --a minute, or a new session--> answering
 */
import { rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { TachoOptions } from '@tacho/sdk'

type Fetch = NonNullable<TachoOptions['fetch']>

/** Longest wait for an answer, in one hook. */
const ANSWER_MS = 1_000
const REMEMBERED_MS = 60_000

/** A retry would delay the agent, so the call is denied at once. */
const NO_APPROVAL: Awaited<ReturnType<Fetch>> = {
  status: 424,
  headers: { get: () => null },
  body: null,
}

export interface Outage {
  /** Resolves when the service has not answered, in this process or in another one a moment ago. */
  readonly noticed: Promise<void>
  /** Stops all requests after one second without an answer; only an approval may take longer. */
  readonly fetch: Fetch
}

/** @param isNewSession tries the service again in any case. */
export function watchOutage(directory: string, fetch: Fetch, isNewSession: boolean): Outage {
  const file = path.join(directory, 'outage')
  const { promise: noticed, resolve: notice } = Promise.withResolvers<void>()
  const isOut = !isNewSession && isRecent(file)
  if (isOut) notice()
  const deadline = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let hasAnswered = false

  async function ask(...[url, options]: Parameters<Fetch>): ReturnType<Fetch> {
    const isApproval = url.includes('/firewall-approvals')
    if (isOut && !isApproval) throw new Error('the service did not answer a moment ago')
    const isPatient = hasAnswered || url.includes('?wait=')
    const { signal } = options
    // Start the timer with the first request, because a hook may need a second to start on a busy machine.
    timer ??= setTimeout(() => deadline.abort(), ANSWER_MS).unref()
    const soon = [deadline.signal, ...(signal instanceof AbortSignal ? [signal] : [])]
    try {
      const reply = await fetch(url, isPatient ? options : { ...options, signal: AbortSignal.any(soon) })
      clearTimeout(timer)
      if (!hasAnswered) rmSync(file, { force: true })
      hasAnswered = true
      return reply
    } catch (error) {
      if (!hasAnswered) {
        writeFileSync(file, '', { mode: 0o600 })
        notice()
        // A retry would delay the agent by minutes.
        if (isApproval) return NO_APPROVAL
      }
      throw error
    }
  }
  return { noticed, fetch: ask }
}

function isRecent(file: string): boolean {
  const at = statSync(file, { throwIfNoEntry: false })?.mtimeMs
  return at !== undefined && Math.abs(Date.now() - at) < REMEMBERED_MS
}
