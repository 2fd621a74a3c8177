/** Connections to the models: reused between requests, and opened through the user's proxy if variables name one. */
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Writable } from 'node:stream'

export interface Sent {
  readonly method: string
  readonly path: string
  /** Alternating names and values. */
  readonly headers: readonly string[]
  readonly signal: AbortSignal
}

/** Shorter than the idle timeout of servers, so that no request uses a connection that is being closed. */
const IDLE_MS = 4_000
const HEADER_BYTES_MAX = 262_144

export class StaleConnection extends Error {
  readonly code = 'ECONNRESET'
}

export class Upstream {
  readonly #agents: { http: http.Agent; https: https.Agent }

  constructor() {
    // With `proxyEnv`, Node 24 reads HTTPS_PROXY and NO_PROXY.
    const settings = { keepAlive: true, timeout: IDLE_MS, proxyEnv: process.env }
    this.#agents = { http: new http.Agent(settings), https: new https.Agent(settings) }
  }

  /**
   * Sends the body as it comes, no faster than the upstream reads it.
   * @returns the answer, whose body is not read yet. An upstream may answer before it has the whole body.
   * @throws StaleConnection if the upstream closed a connection that was idle before.
   */
  send(target: URL, { method, path, headers, signal }: Sent, body: AsyncGenerator<Buffer>): Promise<IncomingMessage> {
    const { protocol, hostname, port } = target
    const isTls = protocol === 'https:'
    const request = (isTls ? https : http).request({
      agent: isTls ? this.#agents.https : this.#agents.http,
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port || (isTls ? 443 : 80),
      method,
      path,
      headers: headers as string[],
      maxHeaderSize: HEADER_BYTES_MAX,
      signal,
    })
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve)
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && error.code === 'ECONNRESET'
        reject(isStale ? new StaleConnection('The connection was closed.', { cause: error }) : error)
      })
    })
    write(request, body).catch((error: Error) => request.destroy(error))
    return answered
  }

  close(): void {
    this.#agents.http.destroy()
    this.#agents.https.destroy()
  }
}

async function write(request: http.ClientRequest, body: AsyncGenerator<Buffer>): Promise<void> {
  for await (const piece of body) {
    await writePiece(request, piece)
    if (request.destroyed) return
  }
  request.end()
}

/** Resolves when there is room for more, or when the reader has left. */
export function writePiece(to: Writable, piece: Buffer): Promise<void> | undefined {
  if (to.destroyed || to.write(piece)) return undefined
  return new Promise((resolve) => {
    const goOn = (): void => {
      to.off('drain', goOn)
      to.off('close', goOn)
      resolve()
    }
    to.on('drain', goOn)
    to.on('close', goOn)
  })
}
