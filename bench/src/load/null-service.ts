/** A service that reads batches and accepts them as fast as possible. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answer } from '../child.ts'

const server = createServer((request, response) => {
  // Events are counted without parsing: each has one eventId.
  let accepted = 0
  let rest = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => {
    const text = rest + chunk
    for (let at = text.indexOf(MARK); at !== -1; at = text.indexOf(MARK, at + MARK.length)) accepted++
    // A mark can be split between two chunks.
    rest = text.slice(-(MARK.length - 1))
  })
  request.on('end', () => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ success: true, accepted, retryableEventIds: [], rejectedEventIds: [] }))
  })
})
const MARK = '{"eventId":"'

answer<null, string>(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
