/** Sends batches of events, in a process of its own. */
import { answer } from '../child.ts'
import { BATCH_EVENTS } from './events.ts'
import { bodyWriter } from './bodies.ts'
import { requestHead, withConnections, type Connection } from './connection.ts'
import { paceRequests, type Paced } from './pace.ts'
import type { Plot } from './shapes.ts'

export interface IngestLoad {
  url: string
  apiKey: string
  plot: Plot
  connections: number
  /** How long, or how many requests. */
  seconds?: number
  requests?: number
  /** Requests a second; by default, as many as the server answers. */
  perSecond?: number
}

const SUCCESS = Buffer.from(`{"success":true,"accepted":${BATCH_EVENTS},`)

/** Requests sent so far, by salt, so that no two have the same events. */
const sent = new Map<string, number>()

answer<IngestLoad, Paced>(async ({ url, apiKey, plot, connections, seconds, requests, perSecond }) => {
  const bytes = bodyWriter(plot)(0).length
  const head = requestHead('POST', `${url}/openapi/v1/events/batch`, {
    'x-api-key': apiKey,
    'content-type': 'application/json',
    'content-length': bytes,
  })

  async function send({ connection, body }: { connection: Connection; body: (n: number) => Buffer }): Promise<void> {
    const n = sent.get(plot.salt) ?? 0
    sent.set(plot.salt, n + 1)
    const reply = await connection.request([head, body(n)])
    if (reply.status !== 200 || !reply.body.subarray(0, SUCCESS.length).equals(SUCCESS)) {
      throw new Error(`Events were not accepted: ${reply.status} ${reply.body.toString().slice(0, 500)}`)
    }
  }

  return withConnections(url, connections, (opened) => {
    const lanes = opened.map((connection) => ({ connection, body: bodyWriter(plot) }))
    return paceRequests(lanes, { seconds, requests, perSecond }, send)
  })
})
