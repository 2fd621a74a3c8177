/** When requests are sent, and how long they take. */
import { setTimeout as sleep } from 'node:timers/promises'
import { timesOf, type Times } from '../stats.ts'

export interface Paced {
  /** Requests answered within the time. */
  answered: number
  seconds: number
  times: Times
}

/** Sends one request and resolves when its reply is checked; throws when it is not the right one. */
export type Send<Lane> = (lane: Lane) => Promise<void>

/** Each lane sends its next request when it has the reply to the one before; until the time or the requests are over. */
export async function closedLoop<Lane>(
  lanes: readonly Lane[],
  { seconds = Infinity, requests = Infinity }: { seconds?: number | undefined; requests?: number | undefined },
  send: Send<Lane>,
): Promise<Paced> {
  const took: number[] = []
  const begun = performance.now()
  const end = begun + seconds * 1000
  let sent = 0
  let answered = 0
  async function keepSending(lane: Lane): Promise<void> {
    for (let sentAt = performance.now(); sentAt < end && sent < requests;) {
      sent++
      await send(lane)
      const now = performance.now()
      took.push(now - sentAt)
      if (now <= end) answered++
      sentAt = now
    }
  }
  await Promise.all(lanes.map(keepSending))
  return { answered, seconds: Math.min(seconds, (performance.now() - begun) / 1000), times: timesOf(took) }
}

/**
 * Requests are due at fixed times, whatever the replies do. When all lanes are busy, the wait of a request that is due
 * counts as its own: otherwise a slow server would be asked less, and look quicker.
 */
export async function fixedRate<Lane>(
  lanes: readonly Lane[],
  seconds: number,
  perSecond: number,
  send: Send<Lane>,
): Promise<Paced> {
  const took: number[] = []
  const begun = performance.now()
  const count = Math.ceil(seconds * perSecond)
  let next = 0
  async function keepSending(lane: Lane): Promise<void> {
    while (next < count) {
      const due = begun + (next++ * 1000) / perSecond
      const early = due - performance.now()
      if (early > 0) await sleep(early)
      // A timer that fires late is the fault of this process, not of the server.
      const from = early > 0 ? performance.now() : due
      await send(lane)
      took.push(performance.now() - from)
    }
  }
  await Promise.all(lanes.map(keepSending))
  return { answered: count, seconds, times: timesOf(took) }
}
