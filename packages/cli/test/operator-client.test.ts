import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { OperatorClient, Refused } from '../src/operator-client.ts'

/** A server that cuts the first `cuts` requests off, and answers the others with `status`. */
async function startServer(t: TestContext, cuts: number, status: number) {
  const requests: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    requests.push(request.headers)
    if (requests.length <= cuts) request.socket.destroy()
    else response.writeHead(status, { connection: 'close' }).end('{"id":"w"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const client = new OperatorClient(`http://127.0.0.1:${port}`, 'token')
  return { requests, create: () => client.call('createWorkspace', { body: { name: 'w' } }), client }
}

test('each creation has a key of its own; nothing else has one', async (t) => {
  const { requests, create, client } = await startServer(t, 0, 201)
  await create()
  await create()
  await client.call('listWorkspaces').catch(() => undefined)
  const [first, second, third] = requests.map((headers) => headers['idempotency-key'])
  assert.ok(first && second && first !== second)
  assert.equal(third, undefined)
})

test('a creation is repeated once with its key when the connection is lost', async (t) => {
  const { requests, create } = await startServer(t, 1, 201)
  assert.deepEqual(await create(), { id: 'w' })
  const keys = requests.map((headers) => headers['idempotency-key'])
  assert.equal(keys.length, 2)
  assert.equal(keys[0], keys[1])

  const gone = await startServer(t, 2, 201)
  await assert.rejects(gone.create(), Refused)
  assert.equal(gone.requests.length, 2)
})

test('a creation that was answered, and what is no creation, are not repeated', async (t) => {
  const refused = await startServer(t, 0, 500)
  await assert.rejects(refused.create(), Refused)
  assert.equal(refused.requests.length, 1)
  const cut = await startServer(t, 1, 200)
  await assert.rejects(cut.client.call('listWorkspaces'), Refused)
  assert.equal(cut.requests.length, 1)
})
