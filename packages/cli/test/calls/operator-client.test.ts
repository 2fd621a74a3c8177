import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHttpServer } from '../../../client/test/http-server.ts'
import { operatorClient, Refused, unreachable } from '../../src/engine/operator-client.ts'

const problem = (code: string, more: object = {}) =>
  JSON.stringify({ type: 'about:blank', title: 'A title.', status: 400, code, requestId: 'req-1', ...more })

test('an error, or a reply from another server, becomes a sentence', async (t) => {
  const answers: [status: number, body: string, sentence: RegExp][] = [
    [
      401,
      problem('unauthenticated'),
      /^A title: check TACHO_OPERATOR_TOKEN, or the file of --token-file \(unauthenticated, request req-1\)\.$/,
    ],
    [
      400,
      problem('x', { detail: 'No.', errors: [{ path: '/a', message: 'is b' }] }),
      /^No; \/a is b \(x, request req-1\)\.$/,
    ],
    // A text from outside that is also a member of every JavaScript object.
    [400, problem('constructor'), /^A title \(constructor, request req-1\)\.$/],
    [200, '<html>', /answered 200, but is not a Tacho server/],
    [302, '', /answered 302, but is not a Tacho server/],
  ]
  for (const [status, body, sentence] of answers) {
    const { url } = await startHttpServer(t, (_request, response) => void response.writeHead(status).end(body))
    await assert.rejects(operatorClient(url, 'token').listWorkspaces(), (error) => {
      assert.ok(error instanceof Refused)
      assert.equal(error.exitCode, 1)
      assert.match(error.message, sentence)
      return true
    })
  }
})

test('an id that fits no URL becomes a sentence, and nothing is sent', async () => {
  const client = operatorClient('http://127.0.0.1:1', 'token')
  await assert.rejects(client.readPolicy({ params: { workspaceId: 'w', policyId: '..' } }), /An id must not be empty/)
})

test('every network failure becomes a sentence', () => {
  const coded = (code: string) => unreachable('http://x', Object.assign(new Error('m'), { code }))
  assert.match(coded('ECONNREFUSED'), /^No answer from http:\/\/x: the connection was refused\./)
  assert.match(coded('constructor'), /the request failed \(constructor\)/)
})

test('a creation is retried once with the same key when the connection is lost', async (t) => {
  const { url, requests } = await startHttpServer(t, (request, response) => {
    if (requests.length === 1) request.socket.destroy()
    else response.writeHead(201, { connection: 'close' }).end('{"id":"w"}')
  })
  assert.deepEqual(await operatorClient(url, 'token').createWorkspace({ body: { name: 'w' } }), { id: 'w' })
  const keys = requests.map(({ headers }) => headers['idempotency-key'])
  assert.ok(keys.length === 2 && keys[0] && keys[0] === keys[1])
})
