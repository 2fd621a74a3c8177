/** Node's socket timeout does not disconnect clients that read nothing: every write restarts it. */
import type { Server, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { LIMITS } from '@tacho/contract/engine/limits.ts'

/** Pieces show how far the client has read. */
const PIECE_BYTES = 65_536
const CHECKS = 10

interface Progress {
  taken: number
  since: number
}

/** Bytes that a socket must take within `stalledMs`; others must take one. */
const paces = new WeakMap<Socket, number>()

export function demandPace(socket: Socket, bytes: number): () => void {
  paces.set(socket, bytes)
  return () => paces.delete(socket)
}

export function cutStalledReaders(server: Server, stalledMs: number, monotonicNow = () => performance.now()): void {
  const sockets = new Map<Socket, Progress>()
  const check = (): void => {
    const now = monotonicNow()
    for (const [socket, progress] of sockets) {
      const taken = socket.bytesWritten - socket.writableLength
      const isEnough = taken - progress.taken >= (paces.get(socket) ?? 1)
      if (socket.writableLength === 0 || isEnough) Object.assign(progress, { taken, since: now })
      else if (now - progress.since >= stalledMs) socket.destroy()
    }
  }
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, { taken: 0, since: monotonicNow() })
    socket.once('close', () => sockets.delete(socket))
  })
  const timer = setInterval(check, stalledMs / CHECKS).unref()
  server.once('close', () => clearInterval(timer))
}

export function sendInPieces(reply: FastifyReply, body: string | Buffer): FastifyReply {
  if (body.length <= PIECE_BYTES) return reply.send(body)
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return reply.header('content-length', bytes.length).send(Readable.from(pieces(bytes), { objectMode: false }))
}

function* pieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES)
}

/** Unbounded, connections without a request could use up the files of the process, and the store could open none. */

export function boundIdleConnections(server: Server, most: number = LIMITS.idleConnections): void {
  const idle = new Set<Socket>()
  const underWay = new WeakMap<Socket, number>()

  function pauseSocket(socket: Socket): void {
    idle.add(socket)
    if (idle.size <= most) return
    const [longest] = idle
    longest?.destroy()
    if (longest) idle.delete(longest)
  }

  server.on('connection', (socket: Socket) => {
    pauseSocket(socket)
    socket.once('close', () => idle.delete(socket))
  })
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket)
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
    response.once('close', () => {
      const others = (underWay.get(socket) ?? 1) - 1
      underWay.set(socket, others)
      if (others === 0 && !socket.destroyed) pauseSocket(socket)
    })
  })
}
