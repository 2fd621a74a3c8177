/** A service on a real socket that plays a script for each route and stores what it receives. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'

export type Route = 'events' | 'issue-records' | 'runtime-config' | 'ask' | 'answer' | 'tool-calls'

export interface SentRequest {
  readonly route: Route
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Decoded. */
  readonly text: string
  readonly bytes: number
  /** Undefined if it is not JSON. */
  readonly json: unknown
  /** Milliseconds of a monotonic clock. */
  readonly at: number
}

export interface SentEvent {
  readonly eventId: string
  readonly [field: string]: unknown
}

export type Answer = (response: ServerResponse, request: SentRequest) => void

export interface ScriptedService {
  readonly url: string
  /** Sets one answer per request of the route; the last one repeats. */
  script(route: Route, ...answers: Answer[]): void
  requests(route: Route): readonly SentRequest[]
  /** Waits until the route has received `count` requests. Rejects after `withinMs`. */
  until(route: Route, count: number, withinMs?: number): Promise<readonly SentRequest[]>
  close(): Promise<void>
}

const DECODERS = new Map<string, (body: Buffer) => Buffer>([
  ['gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
  ['zstd', zstdDecompressSync],
])

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(body === undefined ? undefined : JSON.stringify(body))
}

/** An error of the service. */
export const refuse = (status: number, headers: Record<string, string> = {}): Answer =>
  json(
    status,
    { type: 'urn:tacho:error:scripted', status, code: 'scripted', title: 'scripted' },
    { 'content-type': 'application/problem+json', ...headers },
  )

/** Closes the connection without an answer. */
export const hangUp: Answer = (response) => void response.socket?.destroy()

/** 200 with a body that is not an answer of this interface. */
export const garbage: Answer = (response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end('{"hello":')

/** Judges each event of a batch. */
export function judge(verdictOf: (event: SentEvent) => 'accepted' | 'retryable' | 'rejected'): Answer {
  return (response, request) => {
    const verdicts = (request.json as SentEvent[]).map((event) => ({ id: event.eventId, verdict: verdictOf(event) }))
    const ids = (wanted: string) => verdicts.flatMap(({ id, verdict }) => (verdict === wanted ? [id] : []))
    const [accepted, retryable, rejected] = [ids('accepted'), ids('retryable'), ids('rejected')]
    const body = {
      success: accepted.length === verdicts.length,
      accepted: accepted.length,
      retryableEventIds: retryable,
      rejectedEventIds: rejected,
      rejections: [],
    }
    json(200, body)(response, request)
  }
}

export const acceptAll: Answer = judge(() => 'accepted')

const RECORD_ID = '01900000-0000-7000-8000-0000000000aa'

const DEFAULTS: Record<Route, Answer> = {
  events: acceptAll,
  'issue-records': json(202, { recordId: RECORD_ID, status: 'RECEIVED', isNew: true }),
  'runtime-config': json(200, { revision: 'empty', prompts: [], policies: [] }, { etag: 'W/"empty"' }),
  ask: refuse(503),
  answer: refuse(503),
  'tool-calls': refuse(503),
}

function routeOf(method: string, path: string): Route | null {
  if (method === 'POST' && path === '/openapi/v1/events/batch') return 'events'
  if (method === 'POST' && path === '/openapi/v1/issue-records') return 'issue-records'
  if (method === 'GET' && path === '/openapi/v1/runtime-config') return 'runtime-config'
  if (method === 'POST' && path === '/openapi/v1/firewall-approvals') return 'ask'
  if (method === 'GET' && path.startsWith('/openapi/v1/firewall-approvals/')) return 'answer'
  if (method === 'POST' && path === '/openapi/v1/replay/tool-calls') return 'tool-calls'
  return null
}

export async function startScriptedService(): Promise<ScriptedService> {
  const scripts = new Map<Route, Answer[]>()
  const sent: SentRequest[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    request.on('end', () => {
      const path = request.url ?? ''
      const route = routeOf(request.method ?? '', path.split('?')[0] ?? '')
      if (route === null) return void response.writeHead(404).end()
      const wire = Buffer.concat(chunks)
      const decode = DECODERS.get(request.headers['content-encoding'] ?? '')
      const body = decode ? decode(wire) : wire
      const text = body.toString()
      const { headers } = request
      const one = { route, path, headers, text, bytes: body.length, json: parse(text), at: performance.now() }
      sent.push(one)
      const [answer = DEFAULTS[route], ...laterAnswers] = scripts.get(route) ?? []
      if (laterAnswers.length > 0) scripts.set(route, laterAnswers)
      answer(response, one)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const requests = (route: Route) => sent.filter((request) => request.route === route)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script: (route, ...answers) => void scripts.set(route, answers),
    requests,
    async until(route, count, withinMs = 30_000) {
      const end = performance.now() + withinMs
      while (requests(route).length < count) {
        if (performance.now() > end) {
          throw new Error(`${requests(route).length} of ${count} requests to ${route} within ${withinMs} ms`)
        }
        await sleep(10)
      }
      return requests(route)
    },
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
