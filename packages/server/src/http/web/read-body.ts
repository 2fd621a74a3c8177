import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isUtf8 } from 'node:buffer'
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isCut } from './connections.ts'
import { mediaType, NO_GRPC, speaksGrpc } from '../record/exporters.ts'
import { isRefusal, refuse, type Refusal } from './reply-error.ts'
import { waitForTurn } from './turns.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'

/** The memory has this many equal parts; a workspace may use one. */
const WORKSPACES = 4

/** The shares keep unfinished uploads of one workspace or key from stopping the requests of others. */
export class BodyMemory {
  readonly maxBytes: number
  readonly #shares: Shares

  constructor(maxBytes: number, largestBody: number = LIMITS.otlpBytes) {
    this.maxBytes = maxBytes
    const ofWorkspace = Math.max(maxBytes / WORKSPACES, Math.min(2 * largestBody, maxBytes / 2))
    // The share has room for the largest body, unless that leaves no room for others.
    const ofLargest = largestBody + UNFINISHED_BYTES
    const ofCredential = ofLargest <= ofWorkspace ? Math.max(ofWorkspace / 2, ofLargest) : ofWorkspace / 2
    this.#shares = new Shares({ most: maxBytes, ofWorkspace, ofCredential })
  }

  get bytes(): number {
    return this.#shares.used
  }

  resize(holder: Holder, from: number, to: number): boolean {
    this.#shares.add(holder, -from)
    const fits = this.#shares.fits(holder, to)
    this.#shares.add(holder, fits ? to : from)
    return fits
  }

  give(holder: Holder, bytes: number): void {
    this.#shares.add(holder, -bytes)
  }
}

export interface BodyLimits {
  maxBytes: number
  memory: BodyMemory
  holder: Holder
  binaryType?: string
  /** If true, error messages name the setting to change in an OpenTelemetry exporter. */
  isOfExporter?: boolean
}

/** By Content-Encoding. A Map, because clients can send names such as those of Object.prototype. */
const DECODERS = new Map<string, (() => Transform) | null>([
  ['', null],
  ['identity', null],
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
  ['zstd', createZstdDecompress],
])

/** Maximum compressed size, as a multiple of `maxBytes`. Stops endless empty blocks, which decompress to nothing. */
const COMPRESSED_SLACK = 2

/**
 * Bodies from this size are read in turns: Node would read up to 2 MiB of each connection before the next, so 40 large
 * bodies would take a tenth of a second.
 */
const PACED_FROM_BYTES = 65_536

/** Memory for the connection, headers and objects of a request whose body has not arrived. */
const UNFINISHED_BYTES = 8_192
const TOO_MANY_BODIES = refuse('overloaded', 'Too many request bodies in memory')
const TOO_MANY_PIECES = refuse('invalid_request', 'The body came in too many small pieces. Send larger chunks')

/** Refuses in the order 413, 415, 400. The bytes count in `memory` until the response ends. */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { maxBytes, memory, holder, binaryType, isOfExporter = false }: BodyLimits,
): Promise<Buffer | Refusal> {
  const encoding = (request.headers['content-encoding'] ?? '').trim().toLowerCase()
  const decoder = DECODERS.get(encoding)
  const wireBytes = decoder ? maxBytes * COMPRESSED_SLACK : maxBytes
  const announced = Number(request.headers['content-length'] ?? 0)
  const body =
    announced > wireBytes
      ? tooLarge(maxBytes)
      : await collect(request, response, decoder?.() ?? null, { maxBytes, wireBytes, memory, holder })
  if (isRefusal(body) && body.code === 'body_too_large') {
    // Exporters never repeat a request that is too large.
    return isOfExporter ? refuse('body_too_large', `${TOO_LARGE(maxBytes)}: ${SMALLER_EXPORTS}`) : body
  }
  if (isOfExporter && speaksGrpc(request.headers)) {
    return refuse('unsupported_media_type', NO_GRPC)
  }
  const isBinary = binaryType !== undefined && mediaType(request.headers) === binaryType
  const refusal = isBinary
    ? encodingRefusal(decoder !== undefined)
    : mediaRefusal(request.headers, decoder !== undefined)
  if (refusal) return refusal
  if (isRefusal(body) || isBinary) return body
  return isUtf8(body) ? withoutByteOrderMark(body) : refuse('invalid_utf8')
}

interface Bounds {
  maxBytes: number
  wireBytes: number
  memory: BodyMemory
  holder: Holder
}

function collect(
  request: IncomingMessage,
  response: ServerResponse,
  decoder: Transform | null,
  { maxBytes, wireBytes, memory, holder }: Bounds,
): Promise<Buffer | Refusal> {
  const body = new GrowingBuffer(maxBytes, decoder ? 0 : Number(request.headers['content-length'] ?? 0))
  let held = 0
  const holdBytes = (bytes: number): boolean => {
    const fits = memory.resize(holder, held, bytes)
    if (fits) held = bytes
    return fits
  }
  const release = (bytes: number): void => {
    memory.give(holder, held - bytes)
    held = bytes
  }
  response.once('close', () => release(0))
  const { promise, resolve } = Promise.withResolvers<Buffer | Refusal>()
  let wire = 0
  const source = decoder ?? request
  const settle = (bodyResult: Buffer | Refusal): void => {
    release(Math.min(held, body.capacity))
    source.off('data', take)
    // After a refusal, Node discards the rest of a short body; `closeIfUnread` closes the connection of a long one.
    request.off('data', count).resume()
    if (decoder) {
      request.unpipe(decoder)
      decoder.destroy()
    }
    resolve(bodyResult)
  }
  const take = (chunk: Buffer): void => {
    const capacity = body.capacityFor(chunk)
    if (body.size + chunk.length > maxBytes) return settle(tooLarge(maxBytes))
    if (capacity !== body.capacity && !holdBytes(UNFINISHED_BYTES + capacity)) return settle(TOO_MANY_BODIES)
    body.append(chunk, capacity)
    if (body.size > PACED_FROM_BYTES) void pace()
  }
  const pace = async (): Promise<void> => {
    source.pause()
    await waitForTurn(holder)
    source.resume()
  }
  const count = (chunk: Buffer): void => {
    wire += chunk.length
    if (wire > wireBytes) settle(tooLarge(maxBytes))
  }
  const damaged = (): void =>
    settle(decoder ? refuse('invalid_encoding') : refuse('invalid_request', 'The body ended early'))
  request.on('data', count).once('close', () => {
    if (!request.readableEnded) damaged()
  })
  source
    .on('data', take)
    .once('error', damaged)
    .once('end', () => settle(body.content()))
  if (decoder) request.pipe(decoder)
  request.once('cut', () => settle(TOO_MANY_PIECES))
  if (isCut(request)) settle(TOO_MANY_PIECES)
  else if (!holdBytes(UNFINISHED_BYTES)) settle(TOO_MANY_BODIES)
  return promise
}

function tooLarge(maxBytes: number): Refusal {
  return refuse('body_too_large', TOO_LARGE(maxBytes))
}

const TOO_LARGE = (maxBytes: number) => `The body must have at most ${maxBytes} bytes after decompression`
const SMALLER_EXPORTS = "lower OTEL_BSP_MAX_EXPORT_BATCH_SIZE, or send_batch_max_size of a Collector's batch processor"

/** Some platforms start every text with a byte order mark; RFC 8259 lets a parser ignore it. */
function withoutByteOrderMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body
}

function mediaRefusal(headers: IncomingHttpHeaders, knownEncoding: boolean): Refusal | null {
  const [, ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
  if (mediaType(headers) !== 'application/json')
    return refuse('unsupported_media_type', 'Send Content-Type: application/json')
  const charset = parameters.map((each) => each.trim()).find((each) => each.startsWith('charset='))
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset)) {
    return refuse('unsupported_media_type', 'JSON must be in UTF-8')
  }
  return encodingRefusal(knownEncoding)
}

function encodingRefusal(knownEncoding: boolean): Refusal | null {
  return knownEncoding ? null : refuse('unsupported_media_type', 'Content-Encoding must be gzip, deflate, br or zstd')
}

/** Takes at most twice the size of its bytes, while many small pieces would take hundreds of times as much. */
export class GrowingBuffer {
  readonly #maxBytes: number
  readonly #expected: number
  #buffer: Buffer = Buffer.alloc(0)
  size = 0

  /** @param expected the length that the sender announced, which may be wrong */
  constructor(maxBytes: number, expected = 0) {
    this.#maxBytes = maxBytes
    this.#expected = expected
  }

  get capacity(): number {
    return this.#buffer.length
  }

  capacityFor({ length }: Buffer): number {
    const needed = this.size + length
    if (needed <= this.capacity) return this.capacity
    if (needed <= this.#expected && this.#expected <= 2 * needed) return this.#expected
    return Math.max(needed, Math.min(2 * this.capacity, this.#maxBytes))
  }

  append(piece: Buffer, capacity = this.capacityFor(piece)): void {
    if (capacity !== this.capacity) {
      // The usual body arrives in one piece. Keep that piece unless it pins a much larger block of memory.
      if (capacity === piece.length && 2 * piece.length >= piece.buffer.byteLength) {
        this.#buffer = piece
        this.size = piece.length
        return
      }
      const grown = Buffer.allocUnsafeSlow(capacity)
      this.#buffer.copy(grown, 0, 0, this.size)
      this.#buffer = grown
    }
    piece.copy(this.#buffer, this.size)
    this.size += piece.length
  }

  content(): Buffer {
    return this.#buffer.subarray(0, this.size)
  }
}
