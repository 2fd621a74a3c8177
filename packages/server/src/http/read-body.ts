/**
 * Reads a request body into memory. Counts its bytes on arrival and during decompression, and does not trust headers.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isUtf8 } from 'node:buffer'
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { LIMITS } from '@tacho/contract/limits.ts'
import { isRefusal, refuse, type Refusal } from './reply-error.ts'

/** One holder gets this part of the memory, and always room for the largest body. */
const HOLDERS = 4

/**
 * Bytes of all request bodies in memory; bounds a flood of uploads. Each holder has a share, so that unfinished uploads
 * of one cannot stop the requests of others.
 */
export class BodyMemory {
  readonly maxBytes: number
  bytes = 0
  readonly #holders = new Map<string, number>()

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** Reserves `bytes` if they fit; returns whether they did. */
  take(holder: string, bytes: number): boolean {
    const held = (this.#holders.get(holder) ?? 0) + bytes
    const share = Math.max(this.maxBytes / HOLDERS, LIMITS.otlpBytes)
    if (held > share || this.bytes + bytes > this.maxBytes) return false
    this.bytes += bytes
    this.#holders.set(holder, held)
    return true
  }

  give(holder: string, bytes: number): void {
    this.bytes -= bytes
    const held = (this.#holders.get(holder) ?? 0) - bytes
    if (held > 0) this.#holders.set(holder, held)
    else this.#holders.delete(holder)
  }
}

export interface BodyLimits {
  maxBytes: number
  memory: BodyMemory
  /** The sender: a key, an operator or an address. */
  holder: string
  /** Media type of bodies that may have any bytes. */
  binaryType?: string
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

/** A compressed body may be somewhat larger than its content. The limit stops endless empty blocks. */
const COMPRESSED_SLACK = 2

/**
 * Returns the decoded body as at most `maxBytes` of UTF-8, or a refusal, in the order 413, 415, 400. Its bytes count in
 * `memory` until the response ends.
 */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { maxBytes, memory, holder, binaryType }: BodyLimits,
): Promise<Buffer | Refusal> {
  const encoding = (request.headers['content-encoding'] ?? '').trim().toLowerCase()
  const decoder = DECODERS.get(encoding)
  const wireBytes = decoder ? maxBytes * COMPRESSED_SLACK : maxBytes
  const announced = Number(request.headers['content-length'] ?? 0)
  const body =
    announced > wireBytes
      ? tooLarge(maxBytes)
      : await collect(request, response, decoder?.() ?? null, { maxBytes, wireBytes, memory, holder })
  // Discard the rest of the upload so the client can read the reply; the request timeout bounds this.
  request.resume()
  if (isRefusal(body) && body.code === 'body_too_large') return body
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
  holder: string
}

async function collect(
  request: IncomingMessage,
  response: ServerResponse,
  decoder: Transform | null,
  { maxBytes, wireBytes, memory, holder }: Bounds,
): Promise<Buffer | Refusal> {
  const chunks: Buffer[] = []
  let size = 0
  let taken = 0
  response.once('close', () => memory.give(holder, taken))
  const source = decoder ? feed(request, decoder, wireBytes) : request
  try {
    // Leaving the loop must not destroy the request: that would close the socket before the client reads the reply.
    for await (const chunk of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxBytes) return tooLarge(maxBytes)
      if (!memory.take(holder, chunk.length)) return refuse('overloaded', 'Too many request bodies in memory')
      taken += chunk.length
      chunks.push(chunk)
    }
    return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)
  } catch (error) {
    if (error instanceof WireOverflow) return tooLarge(maxBytes)
    return decoder ? refuse('invalid_encoding') : refuse('invalid_request', 'The body ended early')
  } finally {
    if (decoder) {
      request.unpipe(decoder)
      decoder.destroy()
    }
  }
}

class WireOverflow extends Error {}

/** Pipes the request into its decoder, with limits. Unlike stream.pipeline, it keeps the socket open on failure. */
function feed(request: IncomingMessage, decoder: Transform, wireBytes: number): Transform {
  let received = 0
  request.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (received > wireBytes) decoder.destroy(new WireOverflow())
  })
  request.once('error', (error) => decoder.destroy(error))
  return request.pipe(decoder)
}

function tooLarge(maxBytes: number): Refusal {
  return refuse('body_too_large', `The body must have at most ${maxBytes} bytes after decompression`)
}

/** Some platforms start every text with a byte order mark; RFC 8259 lets a parser ignore it. */
function withoutByteOrderMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body
}

/** In lower case, without parameters. */
export function mediaType(headers: IncomingHttpHeaders): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** 415 unless the body is JSON in a supported encoding. */
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
