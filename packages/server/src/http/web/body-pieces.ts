/**
 * Bounds the pieces in which the body of a request comes. Each costs as much as many bytes, and one read of a connection
 * can bring ten thousand, before anything reads the body.
 */
import type { IncomingMessage } from 'node:http'
import { skipBody } from './parser.ts'

/** Pieces that a body may have, and one more for each of these bytes. Buffered writers are far below. */
const PIECES = 4_096
const BYTES_PER_PIECE = 16

/** Their bodies are incomplete. Their connection must not be used again. */
const cut = new WeakSet<IncomingMessage>()

/** Call it before anything reads the request. One that has too many pieces emits `cut`. */
export function boundPieces(request: IncomingMessage): void {
  const { 'transfer-encoding': encoding, 'content-length': length } = request.headers
  if (encoding === undefined && length === undefined) return
  let [bytes, pieces] = [0, 0]
  const { push } = request
  request.push = (chunk: Buffer | null, ...rest) => {
    if (cut.has(request)) {
      skipBody(request.socket)
      return true
    }
    if (chunk !== null) {
      bytes += chunk.length
      pieces += 1
    }
    if (pieces <= PIECES + bytes / BYTES_PER_PIECE) return push.call(request, chunk, ...rest)
    cutBody(request)
    return request.emit('cut')
  }
}

export function cutBody(request: IncomingMessage): void {
  cut.add(request)
  skipBody(request.socket)
}

export const isCut = (request: IncomingMessage): boolean => cut.has(request)
