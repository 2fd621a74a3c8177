/**
 * Recognizes requests of OpenTelemetry exporters at any address, and tells them the right one, because exporters never
 * repeat a request that gets a 404.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { FastifyRequest } from 'fastify'

export const PROTOBUF = 'application/x-protobuf'

export const NO_GRPC =
  'There is no gRPC: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, and let OTEL_EXPORTER_OTLP_ENDPOINT end with /openapi/v1/otlp'
/** Clients never retry UNIMPLEMENTED. */
export const GRPC_HEADERS = { 'grpc-status': '12', 'grpc-message': NO_GRPC } as const

const BASE = '/openapi/v1/otlp'
/** The path of a signal, a service of gRPC, or a base address. */
const TELEMETRY = /\/v1\/(?:traces|logs|metrics)\/?$|^\/opentelemetry\.proto\.|\/otlp(?:\/v1)?\/?$/
const SIGNAL = /\/v1\/(?:traces|logs|metrics)(?=\/?$)/

export function mediaType(headers: IncomingHttpHeaders): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

export const speaksGrpc = (headers: IncomingHttpHeaders): boolean => mediaType(headers).startsWith('application/grpc')

export function pathOf(request: Pick<FastifyRequest, 'url'>): string {
  return request.url.split('?', 1)[0] ?? ''
}

export function isTelemetry(request: FastifyRequest): boolean {
  if (request.method !== 'POST') return false
  return TELEMETRY.test(pathOf(request)) || mediaType(request.headers) === PROTOBUF || speaksGrpc(request.headers)
}

/**
 * A sentence to append to an error. Exporters append the signal to a base address, but not to the address of one
 * signal.
 */
export function addressAdvice(request: FastifyRequest): string {
  if (!isTelemetry(request)) return ''
  if (speaksGrpc(request.headers)) return `. ${NO_GRPC}`
  const [signal] = SIGNAL.exec(pathOf(request)) ?? []
  const advice = `let OTEL_EXPORTER_OTLP_ENDPOINT end with ${BASE}`
  if (signal !== undefined) return `. OpenTelemetry goes to ${BASE}${signal}: ${advice}`
  const ofOne = `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT with ${BASE}/v1/traces`
  return `. OpenTelemetry goes to addresses such as ${BASE}/v1/traces: ${advice}, or ${ofOne}`
}

/**
 * Answers gRPC, the default of several OpenTelemetry SDKs, in gRPC. Its clients print the message of a gRPC status; for
 * any other answer, they report only a lost connection. Nothing is stored. The connection ends with the answer.
 */

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n')
/** Timeout for a client that sends nothing after its preface. */
const ANSWER_MS = 2_000
const ANSWERS_AT_ONCE = 100
/** Bounds of one connection, in MB and in headers. */
const BOUNDS = { maxSessionMemory: 1, maxHeaderListPairs: 64, settings: { maxConcurrentStreams: 4, enablePush: false } }

type OnCall = (caller: { ip: string; headers: IncomingHttpHeaders }) => void

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

/** Answers on sockets that it receives; it does not listen on a port. */
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

/**
 * A stream for HTTP/2 that starts with what the HTTP/1 parser has already read. HTTP/2 cannot use the socket itself,
 * because that parser keeps its handle.
 */
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
  // Remove the listeners of the HTTP/1 parser, which would answer in HTTP/1.
  socket.removeAllListeners('data').removeAllListeners('end')
  socket.on('data', (chunk: Buffer) => {
    if (!stream.push(chunk)) socket.pause()
  })
  socket.once('end', () => stream.push(null)).once('close', () => stream.destroy())
  return stream
}
