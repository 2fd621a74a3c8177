/**
 * The part of `fetch` that the SDK uses, built on node:http. The first use of the built-in fetch is slower. Loading
 * node:http takes time too, so it is loaded with the first request: most decisions need none.
 */
import type { IncomingMessage } from 'node:http'
import type { TachoOptions } from '@tacho/sdk'

type Fetch = NonNullable<TachoOptions['fetch']>

export const httpFetch: Fetch = async (url, { method, headers, body, signal }) => {
  // An import would read all exports of node:http, and so load all of the built-in fetch.
  const { request: send } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
  return new Promise((resolve, reject) => {
    const options = { method, headers, ...(signal instanceof AbortSignal && { signal }) }
    const request = send(url, options, (reply) => {
      const get = (name: string) => String(reply.headers[name.toLowerCase()] ?? '') || null
      resolve({ status: reply.statusCode ?? 0, headers: { get }, body: { getReader: () => readerOf(reply) } })
    })
    request.on('error', reject)
    request.end(body)
  })
}

function readerOf(reply: IncomingMessage) {
  const chunks = reply.iterator() as AsyncIterator<Uint8Array, undefined>
  return {
    async read() {
      const { done = false, value } = await chunks.next()
      return { done, value }
    },
    async cancel() {
      reply.destroy()
    },
  }
}
