/**
 * Servers that do nothing but answer: the upper bound for any server.
 *   hello     Fastify, 200 with a short text         not-modified        Fastify, 304
 *   sink      node:http, reads the body, then 200    plain-not-modified  node:http, 304
 *   body      Fastify, 200 with the text of the file in the second argument
 *   count     node:http, accepts each event of a batch
 *   hold      node:http, answers no request before /wake, and then all with the text of the file in the second argument
 *   refuse    node:http, 401 before the body has arrived; /healthz is answered
 */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fastify } from 'fastify'

const TAG = '"a-tag"'
const ACCEPTED = '{"success":true,"accepted":100,"retryableEventIds":[],"rejectedEventIds":[],"rejections":[]}'
const MARK = '{"eventId":"'

const held: ServerResponse[] = []
const PLAIN: Record<string, RequestListener> = {
  'plain-not-modified': (_request, reply) => void reply.writeHead(304, { etag: TAG }).end(),
  sink: (request, reply) => {
    request.on('data', () => undefined)
    request.on('end', () => {
      const head = { 'content-type': 'application/json', 'content-length': ACCEPTED.length }
      reply.writeHead(200, head).end(ACCEPTED)
    })
  },
  hold: ({ url }, reply) => {
    if (url !== '/wake') return void held.push(reply)
    const body = readFileSync(file ?? '')
    for (const waiting of held.splice(0)) waiting.writeHead(200, { 'content-length': body.length }).end(body)
    reply.end()
  },
  refuse: ({ url }, reply) =>
    void (url === '/healthz' ? reply.end('ok') : reply.writeHead(401, { connection: 'close' }).end()),
  count: (request, reply) => {
    // Count events without parsing: each has one eventId.
    let [accepted, rest] = [0, '']
    request.setEncoding('latin1').on('data', (chunk: string) => {
      const text = rest + chunk
      for (let at = text.indexOf(MARK); at !== -1; at = text.indexOf(MARK, at + MARK.length)) accepted++
      // Keep the end of the text, because a mark can be split between two chunks.
      rest = text.slice(-(MARK.length - 1))
    })
    request.on('end', () => {
      const verdict = { success: true, accepted, retryableEventIds: [], rejectedEventIds: [] }
      reply.setHeader('content-type', 'application/json').end(JSON.stringify(verdict))
    })
  },
}

const [, , kind = '', file] = process.argv
const listener = PLAIN[kind]
console.log(`listens on http://127.0.0.1:${await (listener ? listenPlain(listener) : listenFastify())}`)

function usage() {
  return { rss: process.memoryUsage.rss(), cpu: process.cpuUsage() }
}

async function listenPlain(answer: RequestListener): Promise<number> {
  const server = createServer((request, reply) =>
    request.url === '/usage' ? void reply.end(JSON.stringify(usage())) : answer(request, reply),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function listenFastify(): Promise<number> {
  const app = fastify()
  app.get('/usage', usage)
  if (kind === 'hello') app.get('/', () => 'hello')
  if (kind === 'not-modified') app.get('/', (_request, reply) => reply.code(304).header('etag', TAG).send())
  if (kind === 'body') {
    const body = readFileSync(file ?? '', 'utf8')
    app.get('/', (_request, reply) => reply.type('application/json; charset=utf-8').send(body))
  }
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port
}
