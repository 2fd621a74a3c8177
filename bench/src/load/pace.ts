/** Decides when requests are sent, and measures their replies. */
import { setTimeout as sleep } from 'node:timers/promises'
import { timesOf, type Times } from '../stats.ts'

export interface Paced {
  /** Number of requests that were answered in time. */
  answered: number
  seconds: number
  times: Times
}

/** Sends one request over its connection and resolves after its reply is checked. Throws if the reply is wrong. */
export type Send = () => Promise<void>

export interface Pace {
  /** Duration, or number of requests. */
  seconds?: number | undefined
  requests?: number | undefined
  /** Sends at fixed times. Default: each connection sends again after its reply. */
  perSecond?: number | undefined
}

/**
 * Each connection sends until the time or the requests run out. With fixed times, a request is due even if earlier
 * replies are slow. If all connections are busy, a due request waits, and the wait counts. Otherwise a slow server
 * would get fewer requests and look faster.
 */
export async function paceRequests(connections: readonly Send[], { perSecond, ...until }: Pace): Promise<Paced> {
  const { seconds = Infinity, requests = perSecond === undefined ? Infinity : Math.ceil(seconds * perSecond) } = until
  const took: number[] = []
  const begun = performance.now()
  const end = begun + seconds * 1000
  let [sent, answered, lastAt] = [0, 0, begun]
  // At least one request is sent and counted, even if this process or the reply is slow.
  const isOver = () => sent >= requests || (perSecond === undefined && sent > 0 && performance.now() >= end)
  async function keepSending(send: Send): Promise<void> {
    while (!isOver()) {
      const n = sent++
      const from = await untilDue(perSecond === undefined ? null : begun + (n * 1000) / perSecond)
      await send()
      const now = performance.now()
      took.push(now - from)
      if (perSecond !== undefined || now <= end || answered === 0) {
        answered++
        lastAt = now
      }
    }
  }
  await Promise.all(connections.map(keepSending))
  const ms = Math.max(lastAt - begun, Math.min(seconds * 1000, performance.now() - begun))
  return { answered, seconds: ms / 1000, times: timesOf(took) }
}

/**
 * The time from which a request is measured. A timer that fires late in this process does not count against the server.
 */
async function untilDue(due: number | null): Promise<number> {
  const early = due === null ? 0 : due - performance.now()
  if (early > 0) await sleep(early)
  return due === null || early > 0 ? performance.now() : due
}
