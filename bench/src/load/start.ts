/** Starts and calls the process that sends load. */
import { startChild } from '../child.ts'
import { spentBetween, type Server } from '../server.ts'
import type { ServerProcess } from '../server-process.ts'
import { BATCH_EVENTS } from './events.ts'
import type { Load, Sent } from './load.ts'
import type { Pace, Paced } from './pace.ts'
import { newHistory, type Plot } from './shapes.ts'

/** Number of connections that record at the same time. */
export const CONNECTIONS = 8

type Target = Pick<ServerProcess, 'url' | 'headers'>

export interface Recording {
  send: Plot | 'spans'
  seconds: number
  /** Events per second. Default: as many as the server accepts. */
  rate?: number
}

export function startLoad() {
  const child = startChild<Load, Paced>(new URL('load.ts', import.meta.url))

  function send(target: Target, load: Pace & { connections: number; send: Sent }): Promise<Paced> {
    return child.call({ ...load, url: target.url, headers: target.headers })
  }

  /** Records this many requests of a plot. */
  async function fill(server: Server, plot: Plot, requests: number): Promise<void> {
    await send(server, { connections: CONNECTIONS, requests, send: { plot } })
  }

  /** Records this many events of the last weeks, in order. */
  async function fillHistory(server: Server, events: number): Promise<Plot> {
    const plot = newHistory(events / BATCH_EVENTS, { ago: 20, days: 19 })
    await fill(server, plot, events / BATCH_EVENTS)
    return plot
  }

  /** Returns events per second, acknowledgement times in milliseconds, and the server's cost. */
  async function record(server: Server, { send: sent, seconds, rate }: Recording) {
    const perSecond = rate === undefined ? undefined : rate / BATCH_EVENTS
    const what = sent === 'spans' ? { spans: true as const } : { plot: sent }
    const before = await server.metrics()
    const paced = await send(server, { connections: CONNECTIONS, seconds, perSecond, send: what })
    const { p50, p99, p999 } = paced.times
    return { rate: eventsPerSecond(paced), p50, p99, p999, ...spentBetween(before, await server.metrics()) }
  }

  return { send, fill, fillHistory, record, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() }
}

export function eventsPerSecond({ answered, seconds }: Paced): number {
  return (answered * BATCH_EVENTS) / seconds
}
