/** Answers each recorder at once, and counts the model calls that arrive. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { MARK } from './model-calls.ts'

/** Tacho's events are counted by their ids, because the model's name occurs twice: in the label too. */
const EVENT_MARK = '{"eventId":"'

let counted = 0

const server = createServer((request, reply) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    if (request.method === 'GET') return reply.end(String(request.url === '/counted' ? take() : ''))
    const sent = Buffer.concat(chunks)
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent
    const isTacho = request.url?.startsWith('/openapi/v1/events') ?? false
    const found = countIn(body, isTacho ? EVENT_MARK : MARK)
    counted += found
    if (isTacho) {
      const verdict = { success: true, accepted: found, retryableEventIds: [], rejectedEventIds: [] }
      return reply.setHeader('content-type', 'application/json').end(JSON.stringify(verdict))
    }
    const isJson = request.headers['content-type']?.includes('json')
    return reply.setHeader('content-type', request.headers['content-type'] ?? 'text/plain').end(isJson ? '{}' : '')
  })
})
server.listen(0, '127.0.0.1', () => {
  console.log(`listens on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})

function take(): number {
  const taken = counted
  counted = 0
  return taken
}

function countIn(body: Buffer, mark: string): number {
  let found = 0
  for (let at = body.indexOf(mark); at !== -1; at = body.indexOf(mark, at + mark.length)) found++
  return found
}
