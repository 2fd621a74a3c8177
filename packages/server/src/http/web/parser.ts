/**
 * Node's HTTP parser has no public way to skip what it has read, so this file sets its internal properties. If Node changes
 * them, the server does more work, and answers the same.
 */
import type { Socket } from 'node:net'

type Parser = Record<number, unknown> & { constructor: { kOnBody?: number }; onIncoming: () => number }

/** The answer of llhttp's `on_headers_complete` if a request says that another protocol follows: parsing ends. */
const UPGRADED = 2

/**
 * Node parses all of what it read, up to a thousand requests, and makes an error for each when the connection closes. This
 * ends its parser at the next one.
 */
export function skipRequests(socket: Socket): void {
  const parser = parserOf(socket)
  if (parser) parser.onIncoming = () => UPGRADED
}

/** Node makes a Buffer for each chunk of what it read: ten thousand for 64 KiB. It makes none of the rest of this read. */
export function skipBody(socket: Socket): void {
  const parser = parserOf(socket)
  const onBody = parser?.constructor.kOnBody
  if (!parser || onBody === undefined || parser[onBody] === null) return
  const take = parser[onBody]
  parser[onBody] = null
  // Node gives this parser to another connection only after this one has closed, which is later.
  setImmediate(() => {
    parser[onBody] = take
  })
}

function parserOf(socket: Socket & { parser?: Parser | null }): Parser | null {
  return socket.parser ?? null
}
