/** The process that attacks: it sends what a stranger with one machine, or a tenant with one key, can send. */
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { answer } from '../child.ts'
import { requestHead } from './connection.ts'
import { nestedLists } from './worst-telemetry.ts'

/** Sends requests on one connection without reading the answers. */
interface Pipelined {
  kind: 'pipelined'
  method: string
  path: string
  connections: number
  requests: number
  body: keyof typeof BODIES
}

/** Bodies in chunks of one byte each. */
interface Chunked {
  kind: 'chunked'
  path: string
  connections: number
  chunks: number
  /** The body's media type. */
  type: string
}

/** Whole requests. Each connection sends the next one after the answer. At the end, it waits for the last answer. */
interface Repeated {
  kind: 'repeated'
  method: string
  path: string
  connections: number
  body: keyof typeof BODIES
}

/** Reads addresses repeatedly, each on its own connections. */
interface Reads {
  kind: 'reads'
  connections: number
  reads: readonly { path: string; connections: number }[]
}

export type Attacked = Pipelined | Chunked | Repeated | Reads

export type Attack = Attacked & {
  url: string
  headers: Record<string, string>
  seconds: number
}

/** Number of answers by status. */
export type Suffered = Record<string, number>

/** The body of a request of each kind, and the headers that belong to it. */
const BODIES = {
  none: () => ({ body: null, type: {} }),
  'nested lists': () => ({ body: nestedLists(OTLP_BYTES - 1_000), type: { 'content-type': 'application/x-protobuf' } }),
  'mcp read': () => mcpMessage({ name: 'list_runs' }),
  'mcp simulation': () =>
    mcpMessage({ name: 'simulate_policy', arguments: { condition: 'true', action: 'BLOCK', days: 1 } }),
}

const mcpMessage = (params: object) => ({
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  type: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
})

/** Longest wait for an answer. A later one does not count. */
const ANSWER_MS = 30_000

const CHUNKS_A_WRITE = 10_000
const CHUNK = '1\r\n \r\n'
const OTLP_BYTES = 4 * 1_048_576

answer<Attack, Suffered>(async (attack) => {
  const suffered: Suffered = {}
  const end = performance.now() + attack.seconds * 1000
  const count = (word: string): void => void (suffered[word] = (suffered[word] ?? 0) + 1)
  await Promise.all(Array.from({ length: attack.connections }, () => WAYS[attack.kind](attack as never, end, count)))
  return suffered
})

type Way = (attack: never, end: number, count: (word: string) => void) => Promise<void>

const WAYS: Record<Attack['kind'], Way> = {
  async pipelined(attack: Attack & Pipelined, end, count) {
    const socket = await open(attack.url)
    socket.pause()
    const { body, type } = BODIES[attack.body]()
    const content = Buffer.from(body ?? '')
    const length = content.length === 0 ? {} : { 'content-length': String(content.length) }
    const request = Buffer.concat([headOf(attack, attack.method, { ...type, ...length }), content])
    socket.write(Buffer.concat(Array.from({ length: attack.requests }, () => request)))
    await untilEnd(socket, end)
    count(socket.destroyed ? 'closed by the server' : 'left open')
    socket.destroy()
  },

  async chunked(attack: Attack & Chunked, end, count) {
    const socket = await open(attack.url)
    socket.once('data', (chunk: Buffer) => count(chunk.toString('latin1', 9, 12)))
    const headers = { 'content-type': attack.type, 'transfer-encoding': 'chunked' }
    socket.write(headOf(attack, 'POST', headers))
    const piece = Buffer.from(CHUNK.repeat(CHUNKS_A_WRITE))
    for (let sent = 0; sent < attack.chunks && !socket.destroyed && performance.now() < end; sent += CHUNKS_A_WRITE) {
      if (!socket.write(piece)) await Promise.race([drained(socket), closed(socket), sleep(end - performance.now())])
    }
    socket.write('0\r\n\r\n')
    await untilEnd(socket, end)
    count(socket.destroyed ? 'closed by the server' : 'left open')
    socket.destroy()
  },

  async reads({ reads, ...attack }: Attack & Reads, end, count) {
    const one = { ...attack, kind: 'repeated', method: 'GET', body: 'none' } as const
    const readers = reads.flatMap(({ path, connections }) => Array.from({ length: connections }, () => path))
    await Promise.all(readers.map((path) => WAYS.repeated({ ...one, path } as never, end, count)))
  },

  async repeated(attack: Attack & Repeated, end, count) {
    const { body, type } = BODIES[attack.body]()
    const headers = { ...attack.headers, ...type }
    do {
      try {
        const signal = AbortSignal.timeout(ANSWER_MS)
        const reply = await fetch(attack.url + attack.path, { method: attack.method, headers, body, signal })
        await reply.bytes()
        count(String(reply.status))
      } catch {
        count('no answer')
      }
    } while (performance.now() < end)
  },
}

async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = createConnection({ host: hostname, port: Number(port) })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

type Addressed = Pick<Attack, 'url' | 'headers'> & { path: string }

const headOf = ({ url, path, headers }: Addressed, method: string, more: Record<string, string>): Buffer =>
  requestHead(method, url + path, { ...headers, ...more })

// Not `once`, which rejects when the server closes the connection.
const drained = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once('drain', resolve))
const closed = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once('close', resolve))

async function untilEnd(socket: Socket, end: number): Promise<void> {
  if (socket.destroyed) return
  await Promise.race([closed(socket), sleep(Math.max(0, end - performance.now()))])
}
