/**
 * Chooses the headers to forward: all but those of the connection (RFC 9110, section 7.6.1), in the sender's order and
 * spelling.
 */
import type { IncomingMessage } from 'node:http'

const OF_THE_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'transfer-encoding',
  'upgrade',
])

/** Headers for the gateway only; they are not forwarded. */
export const OWN_HEADERS = /^x-tacho-/i

function passing({ rawHeaders, headers }: IncomingMessage, isDropped: (name: string) => boolean): string[] {
  const named = new Set((headers.connection ?? '').toLowerCase().split(/[\s,]+/))
  const passed: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at] as string, rawHeaders[at + 1] as string]
    const lower = name.toLowerCase()
    // Forward content-length even if Connection names it: the upstream may need it to read the body.
    const isNamed = named.has(lower) && lower !== 'content-length'
    if (!OF_THE_CONNECTION.has(lower) && !isNamed && !isDropped(lower)) passed.push(name, value)
  }
  return passed
}

/** @param isPlain ask the upstream for an uncompressed answer. */
export function requestHeaders(request: IncomingMessage, host: string, isPlain: boolean): string[] {
  const isDropped = (name: string) =>
    name === 'host' || name === 'expect' || OWN_HEADERS.test(name) || (isPlain && name === 'accept-encoding')
  const { headers, method } = request
  const passed = ['Host', host, ...passing(request, isDropped)]
  if (isPlain) passed.push('Accept-Encoding', 'identity')
  if (headers['transfer-encoding'] !== undefined) passed.push('Transfer-Encoding', 'chunked')
  else if (headers['content-length'] === undefined && method !== 'GET' && method !== 'HEAD')
    passed.push('Content-Length', '0')
  return passed
}

/** @param isEdited the upstream's length and encoding no longer apply. @param location replaces the upstream's. */
export function answerHeaders(answer: IncomingMessage, isEdited: boolean, location?: string): string[] {
  const isDropped = (name: string) =>
    (isEdited && (name === 'content-length' || name === 'content-encoding')) ||
    (location !== undefined && name === 'location')
  return [...passing(answer, isDropped), ...(location === undefined ? [] : ['Location', location])]
}
