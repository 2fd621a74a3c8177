import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { JsonText } from '../src/json-text.ts'
import { createOperatorClient } from '../src/operator.ts'
import { createPublicClient } from '../src/public.ts'
import { CallError, throwing } from '../src/throwing.ts'
import { startHttpServer } from './http-server.ts'
import { eventually } from '../../server/test/setup/eventually.ts'

const params = { environmentId: 'e' }

async function start(t: TestContext, answer: RequestListener, options: { maxReplyBytes?: number } = {}) {
  const server = await startHttpServer(t, answer)
  return { ...server, client: createOperatorClient({ url: server.url, token: 'token', ...options }) }
}

const answerWith =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, headers).end(body)

const problem = (code: string, status: number) =>
  JSON.stringify({ type: 'about:blank', title: 'A title', status, code, requestId: 'q' })

/** Closes the connection of the first `cuts` requests. */
const cutting = (cuts: number, status: number): RequestListener => {
  let seen = 0
  return (request, response) => {
    seen += 1
    if (seen <= cuts) request.socket.destroy()
    else response.writeHead(status, { connection: 'close' }).end('{"id":"w"}')
  }
}

test('each creation has a new idempotency key, or the given one; other calls have none', async (t) => {
  const { client, requests } = await start(t, answerWith(201, '{"id":"w"}'))
  const body = { name: 'w' }
  await client.createWorkspace({ body })
  await client.createWorkspace({ body })
  await client.createWorkspace({ body, headers: { 'Idempotency-Key': 'mine' } })
  await client.listWorkspaces()
  const [first, second, third, fourth] = requests.map(({ headers }) => headers['idempotency-key'])
  assert.match(first as string, /^[0-9a-f]{32}$/)
  assert.notEqual(first, second)
  assert.deepEqual([third, fourth], ['mine', undefined])
})

test('a creation is repeated once with its key when the connection is lost', async (t) => {
  const once = await start(t, cutting(1, 201))
  const made = await once.client.createWorkspace({ body: { name: 'w' } })
  assert.deepEqual(made.ok && made.value, { id: 'w' })
  const keys = once.requests.map(({ headers }) => headers['idempotency-key'])
  assert.equal(keys.length, 2)
  assert.equal(keys[0], keys[1])

  const twice = await start(t, cutting(2, 201))
  const lost = await twice.client.createWorkspace({ body: { name: 'w' } })
  assert.equal(!lost.ok && lost.reason, 'no_answer')
  assert.equal(twice.requests.length, 2)
})

test('an answered creation and other calls are not repeated', async (t) => {
  const refused = await start(t, answerWith(500, problem('internal', 500)))
  await refused.client.createWorkspace({ body: { name: 'w' } })
  assert.equal(refused.requests.length, 1)
  const cut = await start(t, cutting(1, 200))
  const result = await cut.client.listWorkspaces()
  assert.deepEqual([!result.ok && result.reason, !result.ok && result.temporary], ['no_answer', true])
  assert.equal(cut.requests.length, 1)
})

test('any path parameter arrives unchanged, or is refused before anything is sent', async (t) => {
  const { client, requests } = await start(t, answerWith(200, '{}'))
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (runId) => {
      const before = requests.length
      const result = await client.readOperatorRun({ params: { environmentId: 'e', runId } })
      if (['', '.', '..'].includes(runId)) {
        assert.equal(!result.ok && result.reason, 'no_address')
        assert.equal(requests.length, before)
        return
      }
      const [, , , , , , ...rest] = requests[before]?.url?.split('/') ?? []
      assert.deepEqual(rest.map(decodeURIComponent), [runId])
    }),
    { numRuns: 50, examples: [['..'], ['.'], [''], ['a/../b'], ['%2e%2e'], ['?#&']] },
  )
})

test('query, token, body and media type are sent; undefined values are left out', async (t) => {
  const bodies: Promise<string>[] = []
  const { client, requests } = await start(t, (request, response) => {
    bodies.push(text(request))
    response.end('{}')
  })
  await client.listApprovals({ params, query: { toolName: 'a b&c', limit: 5, agentId: undefined } })
  await client.decideApproval({ params: { ...params, approvalId: 'a' }, body: { decision: 'APPROVED' } })
  await client.decideApproval({ params: { ...params, approvalId: 'a' }, body: new JsonText('{"exact":1.0}') })
  assert.equal(requests[0]?.url, '/operator/v1/environments/e/approvals?toolName=a+b%26c&limit=5')
  assert.equal(requests[0]?.headers.authorization, 'Bearer token')
  assert.equal(requests[0]?.headers['content-type'], undefined)
  assert.equal(requests[1]?.headers['content-type'], 'application/json')
  assert.deepEqual(await Promise.all(bodies), ['', '{"decision":"APPROVED"}', '{"exact":1.0}'])
})

test('a refusal has its code, its problem and the time to retry', async (t) => {
  const { client } = await start(t, answerWith(503, problem('overloaded', 503), { 'retry-after': '7' }))
  const result = await client.listWorkspaces()
  assert.ok(!result.ok && result.reason === 'refused')
  assert.deepEqual(
    [result.code, result.status, result.problem.title, result.retryAfterMs, result.temporary],
    ['overloaded', 503, 'A title', 7_000, true],
  )
  await assert.rejects(throwing(client).listWorkspaces(), (error: unknown) => {
    assert.ok(error instanceof CallError)
    assert.equal(error.result.code, 'overloaded')
    return true
  })
})

test('an unknown code is returned like any other code', async (t) => {
  const { client } = await start(t, answerWith(400, problem('constructor', 400)))
  const result = await client.listWorkspaces()
  assert.equal(result.ok ? null : (result.code as string | null), 'constructor')
})

test('an answer that is not from the service is neither a success nor a refusal', async (t) => {
  for (const [status, body] of [
    [200, '<html>'],
    [200, '[]'],
    [200, 'null'],
    [204, ''],
    [201, '{"items":[]}'],
    [302, ''],
    [404, '<html>'],
    [502, '{"code":1,"title":"x","requestId":"q"}'],
  ] as const) {
    const { client } = await start(t, answerWith(status, body, { location: '/elsewhere' }))
    const result = await client.listWorkspaces()
    assert.ok(!result.ok, body)
    assert.deepEqual([result.reason, result.status, result.temporary], ['not_tacho', status, status >= 500], body)
  }
})

test('a reply has exactly its maximum of bytes and not one more, as a success and as a refusal', async (t) => {
  for (const [status, body] of [
    [200, '{"items":["ü"]}'],
    [409, problem('conflict', 409)],
  ] as const) {
    const bytes = Buffer.byteLength(body)
    const reasons: unknown[] = []
    for (const maxReplyBytes of [bytes, bytes - 1]) {
      const { client } = await start(t, answerWith(status, body), { maxReplyBytes })
      const result = await client.listWorkspaces()
      reasons.push(result.ok ? result.text : result.reason)
    }
    assert.deepEqual(reasons, [status === 200 ? body : 'refused', 'too_large'])
  }
})

test('a call fails after the timeout if the service is silent, or stops in the middle of its reply', async (t) => {
  for (const answer of [
    () => undefined,
    (_request, response) => void response.write('{'),
  ] satisfies RequestListener[]) {
    const { client } = await start(t, answer)
    const result = await client.listWorkspaces({}, { timeoutMs: 50 })
    assert.deepEqual([!result.ok && result.reason, !result.ok && result.temporary], ['timeout', true])
  }
})

test('a call ends when its signal is aborted, before and after it was sent', async (t) => {
  const { client, requests } = await start(t, () => undefined)
  const signal = AbortSignal.abort()
  const early = await client.createWorkspace({ body: { name: 'w' } }, { signal })
  assert.deepEqual([!early.ok && early.reason, requests.length], ['aborted', 0])
  const leaving = new AbortController()
  const late = client.listWorkspaces({}, { signal: leaving.signal })
  await eventually(() => requests.length > 0, 'the request')
  leaving.abort()
  const result = await late
  assert.deepEqual([!result.ok && result.reason, !result.ok && result.temporary], ['aborted', false])
})

test('a download may take longer than the timeout once its bytes arrive', async (t) => {
  const { client } = await start(t, (_request, response) => {
    response.write('first ')
    setTimeout(() => response.end('last'), 1_200)
  })
  const result = await client.createBackup({}, { timeoutMs: 1_000 })
  assert.ok(result.ok)
  assert.equal(await text(result.value), 'first last')
})

test('an API key and the client id of approvals are sent as headers', async (t) => {
  const { url, requests } = await startHttpServer(t, answerWith(200, '{}'))
  const client = createPublicClient({ url, apiKey: 'key' })
  await client.readApproval({ params: { approvalId: 'a' }, headers: { 'X-Service-Client-ID': 'c' } })
  const { headers } = requests[0] ?? {}
  assert.deepEqual([headers?.['x-api-key'], headers?.['x-service-client-id']], ['key', 'c'])
})

test('a page without a token sends its cookie only to its own origin', async () => {
  const sent: (RequestInit | undefined)[] = []
  const fetch = (async (address: string, init?: RequestInit) => {
    sent.push({ ...init, method: address })
    return new Response('{}')
  }) as typeof globalThis.fetch
  await createOperatorClient({ url: '', fetch }).listWorkspaces()
  assert.deepEqual([sent[0]?.method, sent[0]?.credentials], ['/operator/v1/workspaces', 'same-origin'])
  assert.equal(new Headers(sent[0]?.headers).get('authorization'), null)
})

test('a connection is free again after each kind of end', async (t) => {
  let open = 0
  const { client } = await start(t, (request, response) => {
    open += 1
    response.once('close', () => (open -= 1))
    response.write(request.url?.endsWith('stream') ? 'event: end\ndata: {}\n\n' : `{"items":["${'x'.repeat(100_000)}`)
  })
  await client.listWorkspaces({}, { timeoutMs: 50 })
  const stream = await client.streamApprovals({ params })
  assert.ok(stream.ok)
  for await (const { event } of stream.value) if (event === 'end') break
  await eventually(() => open === 0, 'closed connections')
})
