/** To parse the rest of a large body would be work for a refused client, so its connection is closed. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { cutBody, isCut } from './body-pieces.ts'

/** A client may send on until it notices the answer. Closing at once could lose the answer. */
const LINGER_MS = 2_000
const LINGER_BYTES = LIMITS.importBodyBytes

/** Call it before the headers of the answer are written. */
export function closeIfUnread(request: IncomingMessage, response: ServerResponse): void {
  if (!isCut(request) && (request.complete || !isLong(request))) return
  response.setHeader('connection', 'close')
  cutBody(request)
  lingerAtEnd(request.socket)
}

function isLong({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > LIMITS.batchBytes
}

/** Node calls `destroySoon` after the last answer of a connection. */
function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = () => {
    if (socket.destroyed) return
    socket.end()
    // Takes the bytes from Node's parser.
    socket.on('data', () => undefined).removeAllListeners('data')
    let left = LINGER_BYTES
    socket.on('data', ({ length }: Buffer) => {
      left -= length
      if (left < 0) socket.destroy()
    })
    socket.resume()
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
}
