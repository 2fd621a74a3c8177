import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { after, before, test } from 'node:test'
import { configurationCalls, type ConfigurationCalls } from '../../setup/configuration-service.ts'
import { eventually } from '../../setup/eventually.ts'
import { startService, type Service } from '../../setup/service.ts'

let service: Service
let calls: ConfigurationCalls
before(async () => {
  service = await startService()
  calls = await configurationCalls(service)
  await calls.deploy([['policy', (await calls.newPolicy()).policyId, '1']])
})
after(() => service.close())

const SCOPES = ['config:read', 'policies:read'] as const
/** Headers that differ from reply to reply. */
const CHANGING = ['date', 'ratelimit-remaining', 'ratelimit-reset', 'x-request-id']

/** Only the framework's route ignores the unknown parameter. */
const ROUTES = { first: '/runtime-config', framework: '/runtime-config?unknown=1' }

async function ask(path: string, headers: Record<string, string>) {
  const reply = await service.api(path, { headers })
  const fixed = [...reply.headers].filter(([name]) => !CHANGING.includes(name))
  return { status: reply.status, text: reply.text, fixed: new Map(fixed), names: [...reply.headers.keys()] }
}

/** How many requests the framework handled meanwhile. */
async function handledByFramework(work: () => Promise<unknown>): Promise<number> {
  let handled = 0
  const count = () => (handled += 1)
  subscribe('tracing:fastify.request.handler:start', count)
  try {
    await work()
  } finally {
    unsubscribe('tracing:fastify.request.handler:start', count)
  }
  return handled
}

async function counted304(): Promise<number> {
  const { text } = await service.call('/metrics')
  const count = /_count\{method="GET",route="\/openapi\/v1\/runtime-config",status="304"\} (\d+)/.exec(text)
  return Number(count?.[1] ?? 0)
}

test('the answer in front of the framework has the status, headers and counters of the route', async () => {
  const key = await service.newKey({ scopes: [...SCOPES] })
  const { headers } = await calls.load({ 'x-api-key': key })
  const before = await counted304()
  for (const tag of [headers.get('etag') ?? '', `"old", ${headers.get('etag')}`, '*']) {
    const given = { 'x-api-key': key, 'if-none-match': tag }
    const [first, framework] = [await ask(ROUTES.first, given), await ask(ROUTES.framework, given)]
    assert.equal(first.status, 304)
    assert.deepEqual(first, framework)
  }
  assert.equal(await counted304(), before + 6)
})

test('the listener answers the simple case; every other request goes to the framework', async () => {
  const key = await service.newKey({ scopes: [...SCOPES] })
  const { headers } = await calls.load({ 'x-api-key': key })
  const given = { 'x-api-key': key, 'if-none-match': headers.get('etag') ?? '' }
  const handled = (path: string, more: Record<string, string> = {}) =>
    handledByFramework(async () => assert.equal((await ask(path, { ...given, ...more })).text === '', true))
  // If the node has not polled the control revision recently, the framework handles even this simple request.
  await eventually(async () => (await handled(ROUTES.first)) === 0, 'the answer in front of the framework')
  assert.equal(await handled(ROUTES.framework), 1)
  assert.equal(await handledByFramework(() => ask(ROUTES.first, { 'x-api-key': key })), 1)
  assert.equal(await handledByFramework(() => ask(ROUTES.first, { ...given, 'if-none-match': '"old"' })), 1)
})

test('its answers count for the rate limit of the key, and one request too many is refused', async () => {
  const key = await service.newKey({ scopes: [...SCOPES], requestsPerSecond: 1 })
  const given = { 'x-api-key': key, 'if-none-match': '*' }
  await calls.load({ 'x-api-key': key })
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(ROUTES.first, given)))
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(refused.length > 0)
  for (const { text, names } of refused) {
    assert.match(text, /1 requests per second/)
    assert.ok(names.includes('retry-after'))
  }
})

test('a key without the scopes, or revoked, gets no 304', async () => {
  const noScope = await service.newKey({ scopes: ['config:read'] })
  const unknown = service.apiKey.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
  for (const path of Object.values(ROUTES)) {
    const given = { 'if-none-match': '*' }
    assert.equal((await ask(path, { ...given, 'x-api-key': noScope })).status, 403)
    assert.equal((await ask(path, { ...given, 'x-api-key': unknown })).status, 401)
  }
})
