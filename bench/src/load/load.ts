/** The process that sends requests and checks each reply. */
import { answer } from '../child.ts'
import { bodyWriter } from './bodies.ts'
import { createLargeBatch } from './large-batch.ts'
import { requestHead, withConnections, type Connection } from './connection.ts'
import { BATCH_EVENTS } from './events.ts'
import { paceRequests, type Pace, type Paced, type Send } from './pace.ts'
import type { Plot } from './shapes.ts'
import { createTraceRequest } from './trace-request.ts'

export type Load = Pace & {
  url: string
  headers: Record<string, string>
  connections: number
  send: Sent
}

export type Sent =
  /** Sends batches of events. */
  | { plot: Plot }
  /** Sends traces over OTLP, as large as a batch of events. */
  | { spans: true }
  /** Sends batches of the largest size. */
  | { large: true }
  /** Requests these paths in turn. Each reply must have this body, or JSON with this many items. */
  | { paths: string[]; status: number; expected: string | { items: number } }

type Lanes = (connection: Connection) => Send

const PREFIX = '/openapi/v1'
const SUCCESS = Buffer.from(`{"success":true,"accepted":${BATCH_EVENTS},`)

/** Number of batches sent, by salt, so that no two have the same events. */
const sent = new Map<string, number>()

answer<Load, Paced>((load) =>
  withConnections(load.url, load.connections, (connections) => paceRequests(connections.map(lanesOf(load)), load)),
)

function lanesOf({ url, headers, send }: Load): Lanes {
  if ('plot' in send) return batches(url, headers, send.plot)
  if ('spans' in send) return traces(url, headers)
  if ('large' in send) return largeBatches(url, headers)
  const heads = send.paths.map((path) => ({ path, head: requestHead('GET', `${url}${path}`, headers) }))
  const isExpected = typeof send.expected === 'string' ? hasBody(send.expected) : hasItems(send.expected.items)
  let asked = 0
  return (connection) => async () => {
    const { path, head } = heads[asked++ % heads.length] ?? { path: '', head: Buffer.alloc(0) }
    const { status, body } = await connection.request([head])
    if (status !== send.status || !isExpected(path, body)) throw wrong(path, status, body)
  }
}

function hasBody(text: string) {
  const expected = Buffer.from(text)
  return (_path: string, body: Buffer): boolean => body.equals(expected)
}

/** Checks each path only once, because parsing costs more than the request. */
function hasItems(count: number) {
  const checked = new Set<string>()
  return (path: string, body: Buffer): boolean => {
    if (checked.has(path)) return true
    checked.add(path)
    return (JSON.parse(body.toString()) as { items: unknown[] }).items.length >= count
  }
}

function batches(url: string, headers: Record<string, string>, plot: Plot): Lanes {
  const head = requestHead('POST', `${url}${PREFIX}/events/batch`, {
    ...headers,
    'content-type': 'application/json',
    'content-length': bodyWriter(plot)(0).length,
  })
  return (connection) => {
    const writeBody = bodyWriter(plot)
    return async () => {
      const n = sent.get(plot.salt) ?? 0
      sent.set(plot.salt, n + 1)
      const { status, body } = await connection.request([head, writeBody(n)])
      if (status !== 200 || !body.subarray(0, SUCCESS.length).equals(SUCCESS)) throw wrong('A batch', status, body)
    }
  }
}

function traces(url: string, headers: Record<string, string>): Lanes {
  const { body: template, renew } = createTraceRequest()
  const head = requestHead('POST', `${url}${PREFIX}/otlp/v1/traces`, {
    ...headers,
    'content-type': 'application/x-protobuf',
    'content-length': template.length,
  })
  return renewed(head, template, renew, (status, body) => {
    // An empty reply means that every span was accepted.
    if (status !== 200 || body.length > 0) throw wrong('A trace', status, body)
  })
}

function largeBatches(url: string, headers: Record<string, string>): Lanes {
  const { body: template, renew } = createLargeBatch()
  const head = requestHead('POST', `${url}${PREFIX}/events/batch`, {
    ...headers,
    'content-type': 'application/json',
    'content-length': template.length,
  })
  return renewed(head, template, renew, (status, body) => {
    // Above a tenant's quota, the server refuses requests at once.
    if (status !== 200 && status !== 503) throw wrong('A large batch', status, body)
  })
}

/** Each connection sends its own copy repeatedly, with new ids. */
function renewed(
  head: Buffer,
  template: Uint8Array,
  renew: (request: Buffer) => void,
  check: (status: number, body: Buffer) => void,
): Lanes {
  return (connection) => {
    const request = Buffer.from(template)
    return async () => {
      renew(request)
      const { status, body } = await connection.request([head, request])
      check(status, body)
    }
  }
}

function wrong(what: string, status: number, body: Buffer): Error {
  return new Error(`${what}: ${status} ${body.toString().slice(0, 500)}`)
}
