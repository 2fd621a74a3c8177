/** An API key from a function: after the service refuses a key, the SDK calls the function again, and loses no event. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { inspect } from 'node:util'
import { Tacho } from '../src/index.ts'
import { type Fetch, hostRuntime } from '../src/delivery/runtime.ts'
import { FakeService } from '../src/testing/fake-service.ts'
import { createRotatingKey } from '../src/delivery/rotating-key.ts'

const REFUSED = { type: 'urn:tacho:error:unauthorized', status: 401 }

/** A service that knows one key. */
function scene(t: TestContext, give: () => string | Promise<string>, options: object = {}) {
  const service = new FakeService('approve')
  const state = { key: 'first', asked: 0, refused: [] as string[] }
  const fetch: Fetch = async (url, init) => {
    if (init.headers['x-api-key'] === state.key) return service.fetch(url, init)
    state.refused.push(new URL(url).pathname)
    const headers = { 'content-type': 'application/problem+json' }
    return new Response(JSON.stringify(REFUSED), { status: 401, headers })
  }
  const apiKey = () => {
    state.asked++
    return give()
  }
  const said: string[] = []
  const tacho = new Tacho({
    apiKey,
    baseUrl: 'http://localhost',
    fetch,
    flushIntervalMs: 0,
    guard: { configurationWaitMs: 60_000 },
    onDiagnostic: ({ code }) => said.push(code),
    ...options,
  })
  t.after(() => tacho.shutdown(0))
  return { service, state, tacho, said }
}

test('the function is asked once for all requests, and after a 401 once more for all of them', async (t) => {
  let key = 'first'
  const { service, state, tacho } = scene(t, async () => key)
  const policy = {
    policyId: 'p',
    name: 'p',
    version: '1',
    condition: 'true',
    severity: 'HIGH',
    action: 'REQUIRE_APPROVAL',
  }
  service.setPolicies([policy])
  assert.equal(state.asked, 0)
  const refund = tacho.guard(() => 'ran', { name: 'refund' })
  assert.equal(await refund(), 'ran')
  await tacho.flush(60_000)
  assert.equal(state.asked, 1)
  state.key = key = 'second'
  // The following calls send each kind of request: configuration, approval, claim and events.
  await tacho.configuration.refresh()
  assert.equal(await refund(), 'ran')
  const { left, dropped } = await tacho.flush(60_000)
  assert.deepEqual([left, dropped], [0, 0])
  assert.equal(state.asked, 2)
  assert.ok(state.refused.length >= 1)
})

test('events wait while no other key is there, and the function is not asked in a loop', async (t) => {
  let key = 'old'
  const { service, state, tacho } = scene(t, () => key)
  const run = tacho.startRun()
  for (let number = 0; number < 250; number++) run.step(`step ${number}`)
  const began = performance.now()
  const { left, dropped } = await tacho.flush(1_500)
  assert.deepEqual([left, dropped], [250, 0])
  // One call for the first use and one after the refusal, then at most one every five seconds.
  assert.ok(state.asked <= 2 + (performance.now() - began) / 5_000 + 1, `${state.asked}`)
  key = 'first'
  assert.equal((await tacho.flush(120_000)).left, 0)
  assert.equal(service.events.length, 250)
  assert.equal(tacho.counters().accepted, 250)
})

test('a function that fails, or gives no key, is an outage', async (t) => {
  let give: () => string = () => {
    throw new TypeError('the vault is closed: hush')
  }
  const { service, tacho, said } = scene(t, () => give())
  tacho.startRun().step('step')
  assert.equal((await tacho.flush(200)).left, 1)
  give = () => ''
  assert.equal((await tacho.flush(200)).left, 1)
  assert.ok(said.includes('delivery_failing'))
  assert.doesNotMatch(said.join(), /hush/)
  give = () => 'first'
  assert.equal((await tacho.flush(120_000)).left, 0)
  assert.equal(service.events.length, 1)
})

test('a function that never answers holds up no request for longer than its timeout', async () => {
  const key = createRotatingKey(() => new Promise<string>(() => undefined), hostRuntime)
  const reply = await key.send(() => assert.fail('a request without a key'), 20)
  assert.equal(reply.kind, 'no-reply')
})

const ok = { kind: 'reply', ok: true, status: 200, header: () => null, json: {} } as const
const type = (name: string) => (name === 'content-type' ? 'application/problem+json' : null)
const refused = { kind: 'reply', ok: false, status: 401, header: type, json: REFUSED } as const

test('requests at the same time ask once, and each is repeated with the next key', async () => {
  const keys = ['first', 'second']
  let asked = 0
  const key = createRotatingKey(async () => keys[asked++] ?? 'third', hostRuntime)
  const used: string[] = []
  const act = async (given: string) => (used.push(given), given === 'first' ? refused : ok)
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => key.send(act, 60_000))), [ok, ok, ok])
  assert.deepEqual([asked, used], [2, ['first', 'first', 'first', 'second', 'second', 'second']])
})

test('a refused key is asked for again only after five seconds', async () => {
  let [now, asked] = [0, 0]
  const key = createRotatingKey(() => (asked++, 'same'), { ...hostRuntime, now: () => now })
  for (const [at, count] of [
    [0, 2],
    [4_999, 2],
    [5_000, 3],
  ] as const) {
    now = at
    assert.equal((await key.send(async () => refused, 60_000)).kind, 'no-reply')
    assert.equal(asked, count)
  }
})

test('a request that began with an older key takes the newer one without a question', async () => {
  let asked = 0
  const key = createRotatingKey(() => `key-${++asked}`, hostRuntime)
  const reply = await key.send(async (given) => {
    if (given !== 'key-1') return ok
    // Meanwhile, another request gets the newer key.
    assert.equal(await key.send(async (other) => (other === 'key-1' ? refused : ok), 60_000), ok)
    return refused
  }, 60_000)
  assert.deepEqual([reply, asked], [ok, 2])
})

test('what is no key is never sent', async () => {
  for (const given of ['', 'a b', 'schlüssel', 5, null]) {
    const key = createRotatingKey(() => given as string, hostRuntime)
    const reply = await key.send(() => assert.fail('sent'), 60_000)
    assert.deepEqual([reply.kind, key.known], ['no-reply', ''])
  }
})

test('a 401 of a proxy does not ask for a key', async () => {
  let asked = 0
  const key = createRotatingKey(() => `key-${++asked}`, hostRuntime)
  const reply = { kind: 'reply', ok: false, status: 401, header: () => 'text/html', json: undefined } as const
  assert.equal(await key.send(() => Promise.resolve(reply), 1_000), reply)
  assert.equal(asked, 1)
})

test('no object shows the key', async (t) => {
  const { tacho } = scene(t, () => 'first-secret')
  tacho.startRun().step('step')
  await tacho.flush(100)
  assert.doesNotMatch(inspect(tacho, { depth: 9, showHidden: true }), /first-secret/)
})
