/**
 * Answers gRPC, the default of several OpenTelemetry SDKs, in gRPC: its clients print the message of a status, and of anything
 * else only that the connection ended. Nothing is stored. The connection ends with the answer.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { GRPC_HEADERS, speaksGrpc } from './exporters.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n')
/** A client that says nothing after its preface. */
const ANSWER_MS = 2_000
const ANSWERS_AT_ONCE = 100
/** Of one connection, in MB and in headers. */
const BOUNDS = { maxSessionMemory: 1, maxHeaderListPairs: 64, settings: { maxConcurrentStreams: 4, enablePush: false } }

export type OnCall = (caller: { ip: string; headers: IncomingHttpHeaders }) => void

export interface ParserError extends NodeJS.ErrnoException {
  rawPacket?: Buffer | { data: number[] }
}

export const speaksHttp2 = ({ rawPacket }: ParserError): boolean =>
  Buffer.isBuffer(rawPacket) && rawPacket.subarray(0, PREFACE.length).equals(PREFACE)

export type GrpcAnswers = (error: ParserError, socket: Socket) => void

export function createGrpcAnswers(onCall: OnCall): GrpcAnswers {
  let open = 0
  return ({ rawPacket }, socket) => {
    if (open >= ANSWERS_AT_ONCE) return void socket.destroy()
    open += 1
    socket.once('close', () => (open -= 1))
    const ip = socket.remoteAddress ?? ''
    answeringServer((headers) => onCall({ ip, headers })).emit(
      'connection',
      joined(socket, Buffer.isBuffer(rawPacket) ? rawPacket : PREFACE),
    )
  }
}

/** It listens nowhere. */
function answeringServer(onCall: (headers: IncomingHttpHeaders) => void): Http2Server {
  const server = createServer(BOUNDS)
  server.on('session', (session: ServerHttp2Session) => {
    const late = setTimeout(() => session.destroy(), ANSWER_MS).unref()
    session.once('close', () => clearTimeout(late)).on('error', () => session.destroy())
  })
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined)
    if (speaksGrpc(headers)) {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...GRPC_HEADERS }, { endStream: true })
      onCall(headers)
    } else {
      stream.respond({ ':status': 505, 'content-type': 'text/plain' })
      stream.end('The service speaks HTTP/1.1\n')
    }
    stream.session?.close()
  })
  server.on('sessionError', () => undefined)
  return server
}

/** The HTTP/1 parser has read the beginning, and keeps its hold of the socket's handle: HTTP/2 gets a stream instead. */
function joined(socket: Socket, begun: Buffer): Duplex {
  const stream = new Duplex({
    read: () => void socket.resume(),
    write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  stream.push(begun)
  // Those of the HTTP/1 parser, which would answer in HTTP/1.
  socket.removeAllListeners('data').removeAllListeners('end')
  socket.on('data', (chunk: Buffer) => {
    if (!stream.push(chunk)) socket.pause()
  })
  socket.once('end', () => stream.push(null)).once('close', () => stream.destroy())
  return stream
}
