/** When requests are sent, and how long their replies take. */
import { setTimeout as sleep } from 'node:timers/promises'
import { timesOf, type Times } from '../stats.ts'

export interface Paced {
  /** Requests answered before the end of the time. */
  answered: number
  seconds: number
  times: Times
}

/** Sends one request and resolves after its reply is checked. Throws if the reply is wrong. */
export type Send<Lane> = (lane: Lane) => Promise<void>

export interface Pace {
  seconds?: number | undefined
  requests?: number | undefined
  /** At fixed times; by default, each lane sends again when it has its reply. */
  perSecond?: number | undefined
}

export function paceRequests<Lane>(
  lanes: readonly Lane[],
  { seconds, requests, perSecond }: Pace,
  send: Send<Lane>,
): Promise<Paced> {
  return perSecond === undefined
    ? closedLoop(lanes, { seconds, requests }, send)
    : fixedRate(lanes, seconds ?? 0, perSecond, send)
}

/** Each lane sends its next request when it has the previous reply, until the time or the requests run out. */
async function closedLoop<Lane>(
  lanes: readonly Lane[],
  { seconds = Infinity, requests = Infinity }: { seconds?: number | undefined; requests?: number | undefined },
  send: Send<Lane>,
): Promise<Paced> {
  const took: number[] = []
  const begun = performance.now()
  const end = begun + seconds * 1000
  let sent = 0
  let answered = 0
  let lastAt = begun
  async function keepSending(lane: Lane): Promise<void> {
    for (let sentAt = performance.now(); (sentAt < end || sent === 0) && sent < requests;) {
      sent++
      await send(lane)
      const now = performance.now()
      took.push(now - sentAt)
      // At least one request is sent and counts, however slow this process or the reply is.
      if (now <= end || answered === 0) {
        answered++
        lastAt = now
      }
      sentAt = now
    }
  }
  await Promise.all(lanes.map(keepSending))
  const ms = Math.max(lastAt - begun, Math.min(seconds * 1000, performance.now() - begun))
  return { answered, seconds: ms / 1000, times: timesOf(took) }
}

/**
 * Requests are due at fixed times, however slow the replies are. If all lanes are busy, a due request waits, and its
 * time includes that wait. Otherwise a slow server would get fewer requests and look faster.
 */
async function fixedRate<Lane>(
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
      // The server is not charged for a timer that fires late in this process.
      const from = early > 0 ? performance.now() : due
      await send(lane)
      took.push(performance.now() - from)
    }
  }
  await Promise.all(lanes.map(keepSending))
  return { answered: count, seconds, times: timesOf(took) }
}
