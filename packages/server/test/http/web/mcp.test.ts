/** The MCP server at /mcp, with the official client, on a real server. */
import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import http from 'node:http'
import { registerHooks } from 'node:module'
import { after, before, test, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { CreatedOperatorToken } from '@tacho/contract/people/token.ts'
import { newPerson } from '../people/browser.ts'
import { eventually } from '../../setup/eventually.ts'
import { event, startFromSources, startService, type Answer, type Service } from '../../setup/service.ts'

const LIBRARY = '@modelcontextprotocol/server'
/** Files of the library that were loaded after the server's own, and files of the build with parts of it. */
const loaded: string[] = []
registerHooks({
  load(url, context, next) {
    const module = next(url, context)
    const { source } = module
    const text = typeof source === 'string' ? source : new TextDecoder().decode(source ?? undefined)
    // The build names the file of each part.
    const isPart = url.includes('/cli/dist/') && text.includes(`// node_modules/${LIBRARY}/`)
    if (url.includes(LIBRARY) || isPart) loaded.push(url)
    return module
  },
})

let service: Service
let other: { workspaceId: string; environmentId: string }
let workspaceId: string
let client: Client
before(async () => {
  service = await startService()
  await service.record([event({ runId: 'run-1', eventId: 'step-1', payload: { said: 'Grüße' } })])
  other = await service.newTenant('globex')
  const { body } = await service.operator<{ items: { id: string }[] }>('/workspaces')
  workspaceId = body.items.find(({ id }) => id !== other.workspaceId)?.id ?? ''
  assert.deepEqual(loaded, [], 'a server without a message has not loaded the library')
  client = await connected((await newToken('viewer')).token)
  assert.notDeepEqual(loaded, [])
})
after(async () => {
  await client.close()
  await service.close()
})

async function newToken(role: string, workspace = workspaceId): Promise<CreatedOperatorToken> {
  const made = await service.operator<CreatedOperatorToken>(`/workspaces/${workspace}/tokens`, {
    body: { name: role, role },
  })
  assert.equal(made.status, 201, made.text)
  return made.body
}

async function connected(token: string, of: Service = service, mode: 'auto' | 'legacy' = 'auto'): Promise<Client> {
  const made = new Client({ name: 'tests', version: '1' }, { versionNegotiation: { mode } })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await made.connect(new StreamableHTTPClientTransport(new URL(`${of.url}/mcp`), { requestInit }))
  return made
}

interface Result {
  isError?: boolean
  content: { text: string }[]
}

async function said(from: Client, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { isError, content } = (await from.callTool({ name, arguments: args })) as Result
  return `${isError ? 'error: ' : ''}${content[0]?.text ?? ''}`
}

/** Sends one message without the client, in the protocol version of 2025. */
function send(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const given = { authorization: `Bearer ${service.operatorToken}`, accept: 'application/json, text/event-stream' }
  return service.call('/mcp', { body, headers: { ...given, ...headers } })
}

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

for (const mode of ['auto', 'legacy'] as const) {
  test(`a client reads runs and events (protocol: ${mode})`, async () => {
    const viewer = await connected((await newToken('viewer')).token, service, mode)
    const { tools } = await viewer.listTools()
    assert.ok(tools.length > 15)
    const writing = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true).map(({ name }) => name)
    assert.deepEqual(writing, ['simulate_policy'], 'it stores a simulation')
    const { items } = JSON.parse(await said(viewer, 'list_runs')) as { items: { runId: string }[] }
    assert.deepEqual(
      items.map(({ runId }) => runId),
      ['run-1'],
    )
    assert.match(await said(viewer, 'read_event', { runId: 'run-1', eventId: 'step-1' }), /"said":"Grüße"/)
    const uri = `tacho://environments/${service.environmentId}/runs/run-1`
    const { contents } = await viewer.readResource({ uri })
    assert.match((contents[0] as { text: string }).text, /"runId":"run-1"/)
    await viewer.close()
  })
}

test('a token of another tenant reads nothing of this one', async () => {
  const stranger = await connected((await newToken('owner', other.workspaceId)).token)
  const places = await said(stranger, 'list_environments')
  assert.ok(places.includes(other.environmentId) && !places.includes(service.environmentId), places)
  assert.match(await said(stranger, 'list_runs', { environmentId: service.environmentId }), /^error: not_found: /)
  assert.match(await said(stranger, 'read_run', { runId: 'run-1' }), /^error: not_found: /)
  await stranger.close()
})

test('a viewer may not store a simulation', async () => {
  const given = { condition: 'true', action: 'BLOCK', days: 1 }
  assert.match(await said(client, 'simulate_policy', given), /^error: forbidden: /)
  const owner = await connected((await newToken('owner')).token)
  assert.match(await said(owner, 'simulate_policy', given), /^\{.*"status":"(DONE|RUNNING|QUEUED)"/)
  await owner.close()
})

test('a token that is revoked between two calls is refused, also by the next tool call', async () => {
  const { id, token } = await newToken('viewer')
  const revoked = await connected(token)
  assert.match(await said(revoked, 'list_runs'), /run-1/)
  const { status } = await service.operator(`/workspaces/${workspaceId}/tokens/${id}/revoke`, { method: 'POST' })
  assert.ok(status < 300)
  await assert.rejects(said(revoked, 'list_runs'))
  const answer = await send(PING, { authorization: `Bearer ${token}` })
  assert.deepEqual(
    [answer.status, answer.headers.get('www-authenticate')],
    [401, 'Bearer realm="tacho", error="invalid_token"'],
  )
  await revoked.close()
})

test('a token that is revoked while the message arrives is refused', async () => {
  const { id, token } = await newToken('viewer')
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: '*/*' }
  const request = http.request(`${service.url}/mcp`, {
    method: 'POST',
    headers: { ...headers, expect: '100-continue' },
  })
  const answered = new Promise<number | undefined>((resolve, reject) => {
    request.once('response', (response) => resolve(response.resume().statusCode)).once('error', reject)
  })
  const arrived = new Promise((resolve) => request.once('continue', resolve))
  const text = JSON.stringify(PING)
  request.write(text.slice(0, 10))
  await arrived
  await service.operator(`/workspaces/${workspaceId}/tokens/${id}/revoke`, { method: 'POST' })
  request.end(text.slice(10))
  assert.equal(await answered, 401)
})

test('only an operator token opens it: no session, no API key', async () => {
  const person = await newPerson(service, 'ann@example.com', 'owner', null)
  const cookie = [...person.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  assert.equal((await service.call('/operator/v1/me', { headers: { cookie } })).status, 200)
  for (const headers of [
    {},
    { cookie, origin: service.url },
    { 'x-api-key': service.apiKey },
    { authorization: `Bearer ${service.apiKey}` },
  ] as Record<string, string>[]) {
    const { status, headers: replied } = await service.call('/mcp', { body: PING, headers })
    assert.equal(status, 401)
    assert.match(replied.get('www-authenticate') ?? '', /^Bearer realm="tacho"/)
  }
})

test('a page of another origin is refused, even with a token', async () => {
  const { host, origin } = new URL(service.url)
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin, 'sec-fetch-site': 'cross-site' },
  ] as Record<string, string>[]) {
    assert.equal((await send(PING, headers)).status, 403, JSON.stringify(headers))
  }
  assert.equal((await send(PING, { origin: `http://${host}` })).status, 200)
})

test('GET and DELETE are answered 405: there are no sessions', async () => {
  for (const method of ['GET', 'DELETE']) {
    const { status, headers } = await service.call('/mcp', {
      method,
      headers: { authorization: `Bearer ${service.operatorToken}`, accept: 'text/html, text/event-stream' },
    })
    assert.deepEqual([status, headers.get('allow'), headers.get('mcp-session-id')], [405, 'POST', null])
  }
})

test('a message is refused that is too large, no JSON, a batch or deeply nested; the server goes on', async () => {
  const padded = (bytes: number) => {
    const text = JSON.stringify({ ...PING, params: { text: '' } })
    return text.replace('""', `"${'x'.repeat(bytes - text.length)}"`)
  }
  assert.equal((await send(padded(LIMITS.operatorBodyBytes))).status, 200)
  assert.equal((await send(padded(LIMITS.operatorBodyBytes + 1))).status, 413)
  assert.equal((await send(padded(20_000_000))).status, 413)
  for (const body of ['{', '', '7', 'null', [PING, PING]])
    assert.equal((await send(body)).status, 400, JSON.stringify(body))
  const call = (depth: number) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_runs","arguments":{"cursor":${'['.repeat(depth)}${']'.repeat(depth)}}}}`
  for (const depth of [100, 100_000]) assert.ok([200, 400].includes((await send(call(depth))).status), String(depth))
  assert.equal((await send(PING, { 'content-type': 'text/plain' })).status, 415)
  assert.equal((await send(PING)).status, 200)
})

test('an unknown tool, method or argument is an error of the protocol', async () => {
  await assert.rejects(said(client, 'approve'), /approve/)
  await assert.rejects(client.readResource({ uri: 'tacho://environments/x' }))
  assert.match(await said(client, 'list_runs', { statu: 'FAILED' }), /no argument "statu"/)
  // The server answers with a stream, and ends it.
  const reply = await fetch(`${service.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.operatorToken}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'constructor' }),
  })
  assert.match(await reply.text(), /-32601/)
})

test('a subscription is refused instead of held open', async () => {
  const params = {
    notifications: { toolsListChanged: true },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  }
  const method = 'subscriptions/listen'
  const { text, status } = await send(
    { jsonrpc: '2.0', id: 1, method, params },
    { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
  )
  assert.equal(status, 404)
  assert.deepEqual(JSON.parse(text), { jsonrpc: '2.0', id: 1, error: { code: -32_601, message: 'Method not found' } })
  assert.deepEqual(client.getServerCapabilities(), { tools: { listChanged: false }, resources: { listChanged: false } })
})

test('100 calls at once are all answered, and their memory is given back', async () => {
  const calls = Array.from({ length: 100 }, () => said(client, 'read_event', { runId: 'run-1', eventId: 'step-1' }))
  for (const text of await Promise.all(calls)) assert.match(text, /"eventId":"step-1"/)
  await eventually(async () => {
    const { text } = await service.call('/metrics')
    assert.match(text, /tacho_body_memory_bytes 0\n/)
    assert.match(text, /tacho_reply_memory_bytes 0\n/)
    // Each call is counted twice: as the request to /mcp, and as the read that the tool made.
    assert.match(text, /_count\{method="POST",route="\/mcp",status="200"\} \d{3}/)
    assert.match(text, /_count\{method="GET",route="\/operator[^"]+events\/:eventId",status="200"\} \d{3}/)
    return true
  }, 'the memory of 100 calls is free')
})

test('each read counts against the rate limit of the token', async (t) => {
  const limited = await startService({ operatorRateLimit: '10' })
  t.after(() => limited.close())
  const hurried = await connected(limited.operatorToken, limited)
  // Each call sends three requests. One of them has the message, which the limit may refuse.
  const calls = Array.from({ length: 200 }, () => said(hurried, 'list_environments').catch(() => 'message refused'))
  const texts = await Promise.all(calls)
  assert.ok(texts.includes('message refused'))
  assert.ok(
    texts.some((text) => text.startsWith('error: This token or session is limited to 10 requests')),
    [...new Set(texts)].join('\n').slice(0, 1_000),
  )
  await hurried.close()
})

test('a client that leaves does not end the server', async () => {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'simulate_policy',
      arguments: { condition: 'true', action: 'BLOCK', days: 1, environmentId: service.environmentId },
    },
  })
  for (let times = 0; times < 20; times++) {
    await new Promise<void>((resolve) => {
      const headers = {
        authorization: `Bearer ${service.operatorToken}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      }
      const request = http.request(`${service.url}/mcp`, { method: 'POST', headers })
      request.once('error', () => resolve())
      request.once('close', () => resolve())
      request.end(body, () => setTimeout(() => request.destroy(), times))
    })
  }
  assert.equal((await send(PING)).status, 200)
})

/** Call this before the service starts. Simulations then end only after the returned function is called. */
function holdSimulations(t: TestContext): () => void {
  const { promise: going, resolve: go } = Promise.withResolvers<void>()
  const hold = (message: unknown) => {
    const { worker } = message as { worker: Worker }
    if (worker.threadName !== 'tacho-simulation') return
    const post = worker.postMessage.bind(worker)
    worker.postMessage = (task: unknown) => void going.then(() => post(task))
  }
  diagnostics.subscribe('worker_threads', hold)
  t.after(() => {
    diagnostics.unsubscribe('worker_threads', hold)
    go()
  })
  return go
}

/** Cancels all simulations, so that calls that wait for them are answered. */
async function cancelSimulations({ operator, environmentId }: Service): Promise<void> {
  const path = `/environments/${environmentId}/simulations`
  const { items } = (await operator<{ items: { id: string }[] }>(path)).body
  for (const { id } of items) assert.equal((await operator(`${path}/${id}/cancel`, { body: {} })).status, 200)
}

test('of the messages of one token, four run or wait for simulations and a bounded number waits', async (t) => {
  const limits: { mcpMessagesWaiting: number; simulationsWaiting: number } = LIMITS
  const { mcpMessagesWaiting, simulationsWaiting } = limits
  const release = holdSimulations(t)
  limits.mcpMessagesWaiting = 2
  const small = await startFromSources().finally(() => (limits.mcpMessagesWaiting = mcpMessagesWaiting))
  t.after(() => small.close())
  limits.simulationsWaiting = 12
  t.after(() => (limits.simulationsWaiting = simulationsWaiting))
  const given = { environmentId: small.environmentId, condition: 'true', action: 'BLOCK', days: 1 }
  const refused = Promise.withResolvers<void>()
  const counts = new Map<number, number>()
  const ask = async () => {
    const { status } = await small.call('/mcp', {
      headers: { authorization: `Bearer ${small.operatorToken}`, accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'simulate_policy', arguments: given } },
    })
    counts.set(status, (counts.get(status) ?? 0) + 1)
    if (counts.get(503) === 6) refused.resolve()
  }
  const all = Promise.all(Array.from({ length: 12 }, ask))
  await Promise.race([refused.promise, all])
  await eventually(async () => {
    const path = `/environments/${small.environmentId}/simulations`
    return (await small.operator<{ items: object[] }>(path)).body.items.length === 6
  }, 'the others wait for their simulations')
  await cancelSimulations(small)
  release()
  await all
  assert.deepEqual(Object.fromEntries(counts), { 200: 6, 503: 6 })
})

test('messages that wait for simulations leave their turns to others of the token', async (t) => {
  const release = holdSimulations(t)
  const own = await startService()
  t.after(() => own.close())
  const client = await connected(own.operatorToken, own)
  t.after(() => client.close())
  let answered = 0
  const waiting = Array.from({ length: LIMITS.simulationsWaiting }, async () => {
    const text = await said(client, 'simulate_policy', { condition: 'true', action: 'BLOCK', days: 1 })
    answered += 1
    return text
  })
  await eventually(async () => {
    const { body } = await own.operator<{ items: object[] }>(`/environments/${own.environmentId}/simulations`)
    return body.items.length === LIMITS.simulationsWaiting
  }, 'all wait for their simulations')
  assert.match(await said(client, 'list_environments'), /environmentId/)
  assert.equal(answered, 0)
  await cancelSimulations(own)
  release()
  for (const text of await Promise.all(waiting)) assert.match(text, /"condition":"true"/)
})
