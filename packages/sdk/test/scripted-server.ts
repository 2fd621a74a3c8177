/** A service on a real socket that plays a script and stores what it receives. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'

export interface SentEvent {
  eventId: string
  runId: string
  eventType: string
  label: string
  timestamp: number
  spanId: string
  parentSpanId?: string
  payload: Record<string, unknown>
  [field: string]: unknown
}

export interface SentBatch {
  events: SentEvent[]
  headers: IncomingHttpHeaders
  /** Size of the body before and after decoding. */
  wireBytes: number
  bytes: number
}

export type Answer = (response: ServerResponse, batch: SentBatch) => void

export interface ScriptedServer {
  url: string
  batches: SentBatch[]
  /** One answer per request; the last one repeats. */
  script(...answers: Answer[]): void
  /** All events in order of arrival, including repeats. */
  events(): SentEvent[]
  close(): Promise<void>
}

export const accept: Answer = (response, { events }) => judge(response, { accepted: events.length })

export function judge(response: ServerResponse, answer: object): void {
  const none = { success: true, accepted: 0, retryableEventIds: [], rejectedEventIds: [], rejections: [] }
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...none, ...answer }))
}

export function status(code: number, headers: Record<string, string> = {}): Answer {
  return (response) => void response.writeHead(code, headers).end(JSON.stringify({ status: code }))
}

export async function startScriptedServer(...answers: Answer[]): Promise<ScriptedServer> {
  let left = answers.length > 0 ? answers : [accept]
  const batches: SentBatch[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => undefined)
    request.on('end', () => {
      const wire = Buffer.concat(chunks)
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(wire) : wire
      const events = JSON.parse(body.toString()) as SentEvent[]
      const batch = { events, headers: request.headers, wireBytes: wire.length, bytes: body.length }
      batches.push(batch)
      const [answer = accept, ...rest] = left
      if (rest.length > 0) left = rest
      answer(response, batch)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    batches,
    script: (...next) => void (left = next),
    events: () => batches.flatMap(({ events }) => events),
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
