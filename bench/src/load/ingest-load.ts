/** Sends batches of events, in a process of its own. */
import { answer } from '../child.ts'
import { BATCH_EVENTS } from './events.ts'
import { bodyWriter } from './bodies.ts'
import { connect, requestHead, type Connection } from './connection.ts'
import { closedLoop, fixedRate, type Paced } from './pace.ts'
import type { Plot } from './shapes.ts'

export interface IngestLoad {
  url: string
  apiKey: string
  plot: Plot
  connections: number
  /** How long, or how many requests. */
  seconds?: number
  requests?: number
  /** As many requests a second; as many as it takes where none is given. */
  perSecond?: number
}

const SUCCESS = Buffer.from(`{"success":true,"accepted":${BATCH_EVENTS},`)

interface Lane {
  connection: Connection
  body: (n: number) => Buffer
}

/** Requests sent so far, by salt: no two have the same events. */
const sent = new Map<string, number>()

answer<IngestLoad, Paced>(async ({ url, apiKey, plot, connections, seconds, requests, perSecond }) => {
  const lanes = await Promise.all(
    Array.from({ length: connections }, async (): Promise<Lane> => {
      return { connection: await connect(url), body: bodyWriter(plot) }
    }),
  )
  const bytes = lanes[0]?.body(0).length ?? 0
  const head = requestHead('POST', `${url}/openapi/v1/events/batch`, {
    'x-api-key': apiKey,
    'content-type': 'application/json',
    'content-length': bytes,
  })

  async function send({ connection, body }: Lane): Promise<void> {
    const n = sent.get(plot.salt) ?? 0
    sent.set(plot.salt, n + 1)
    const reply = await connection.request([head, body(n)])
    if (reply.status !== 200 || !reply.body.subarray(0, SUCCESS.length).equals(SUCCESS)) {
      throw new Error(`Events were not accepted: ${reply.status} ${reply.body.toString().slice(0, 500)}`)
    }
  }

  try {
    return await (perSecond === undefined
      ? closedLoop(lanes, { seconds, requests }, send)
      : fixedRate(lanes, seconds ?? 0, perSecond, send))
  } finally {
    for (const { connection } of lanes) connection.close()
  }
})
