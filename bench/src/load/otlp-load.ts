/** Sends spans in OTLP protobuf, in a process of its own. Each request has a new trace, as large as a batch of events. */
import { answer } from '../child.ts'
import { requestHead, withConnections } from './connection.ts'
import { paceRequests, type Paced } from './pace.ts'
import { createTraceRequest } from './trace-request.ts'

export interface OtlpLoad {
  url: string
  apiKey: string
  connections: number
  seconds: number
}

answer<OtlpLoad, Paced>(async ({ url, apiKey, connections, seconds }) => {
  const { body: template, renew } = createTraceRequest()
  const head = requestHead('POST', `${url}/openapi/v1/otlp/v1/traces`, {
    'x-api-key': apiKey,
    'content-type': 'application/x-protobuf',
    'content-length': template.length,
  })
  return withConnections(url, connections, (opened) => {
    const lanes = opened.map((connection) => ({ connection, body: Buffer.from(template) }))
    return paceRequests(lanes, { seconds }, async ({ connection, body }) => {
      renew(body)
      const reply = await connection.request([head, body])
      // An empty message: every span was accepted.
      if (reply.status !== 200 || reply.body.length > 0) {
        throw new Error(`Spans were not accepted: ${reply.status} ${reply.body.toString().slice(0, 500)}`)
      }
    })
  })
})
