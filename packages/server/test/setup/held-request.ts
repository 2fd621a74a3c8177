import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { event } from './service.ts'

/** A request whose body is incomplete until `finish`. */
export async function heldRequest(url: string, key: string): Promise<{ socket: Socket; finish(): Promise<string> }> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const body = JSON.stringify([event()])
  const head = [
    'POST /openapi/v1/events/batch HTTP/1.1',
    'Host: x',
    `X-API-Key: ${key}`,
    'Content-Type: application/json',
    'Expect: 100-continue',
  ]
  socket.write([...head, `Content-Length: ${body.length}`, '', body.slice(0, -1)].join('\r\n'))
  // The server has read the head when it answers 100 Continue.
  const [answer] = (await once(socket, 'data')) as [Buffer]
  assert.match(answer.toString(), /^HTTP\/1\.1 100 Continue/)
  socket.pause()
  return {
    socket,
    async finish() {
      socket.write(body.slice(-1))
      return Buffer.concat((await socket.toArray()) as Buffer[]).toString()
    },
  }
}
