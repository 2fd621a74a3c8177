/** The age of policies follows the clock, not timers: after a freeze, a process knows that its policies are old. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Tacho, type TachoOptions } from '../../src/index.ts'
import { hostRuntime } from '../../src/delivery/runtime.ts'
import { FakeService } from '../../src/testing/fake-service.ts'
import { policy, resultOf } from '../guard/scene.ts'

/** A process that can be frozen: its clock continues, but its timers stop. */
function frozen(t: TestContext, options: TachoOptions = {}) {
  const service = new FakeService('approve')
  let slept = 0
  let hangs = false
  const fetch: typeof service.fetch = (url, init) =>
    hangs && url.endsWith('/runtime-config') ? new Promise(() => undefined) : service.fetch(url, init)
  const said: string[] = []
  const onDiagnostic = ({ code }: { code: string }) => void said.push(code)
  const given = { apiKey: 'k', baseUrl: 'http://localhost', fetch, onDiagnostic, ...options }
  const tacho = new Tacho(given, { ...hostRuntime, now: () => hostRuntime.now() + slept })
  t.after(() => tacho.shutdown(0))
  const refund = tacho.guard((_: object) => 'ran', { name: 'refund', configurationWaitMs: 1_000 })
  return {
    service,
    tacho,
    said,
    refund: () => resultOf(refund({ order: 7 })),
    sleep: (ms: number) => (slept += ms),
    hang: () => (hangs = true),
    decisions: async () => {
      await tacho.flush()
      return service.events.filter(({ eventType }) => eventType === 'POLICY_DECISION').map(({ payload }) => payload)
    },
  }
}

test('after a freeze, the first call is judged by what was deployed meanwhile', async (t) => {
  const { service, refund, sleep, tacho } = frozen(t)
  assert.equal(await refund(), 'ran')
  service.setPolicies([policy('BLOCK')])
  assert.equal(await refund(), 'ran', 'it is not due yet')
  sleep(60_000)
  assert.deepEqual(await Promise.all([refund(), refund()]), ['policy', 'policy'])
  assert.ok((tacho.configuration.state.ageMs ?? Infinity) < 5_000)
})

test('a service that does not answer costs a call its wait once, and old policies are said', async (t) => {
  const { refund, sleep, hang, decisions, said } = frozen(t)
  assert.equal(await refund(), 'ran')
  hang()
  sleep(270_000)
  assert.equal(await refund(), 'ran')
  assert.deepEqual(await decisions(), [], 'not old yet')
  sleep(31_000)
  const begun = performance.now()
  for (let calls = 0; calls < 5; calls++) assert.equal(await refund(), 'ran')
  assert.ok(performance.now() - begun < 4_500, 'each call waited')
  const ages = (await decisions()).map(({ action, policyAgeMs }) => [action, Number(policyAgeMs) > 300_000])
  assert.deepEqual(ages, Array(5).fill(['ALLOW', true]))
  assert.equal(said.filter((code) => code === 'policies_old').length, 1)
})

test('the limit is an option', async (t) => {
  const { refund, sleep, service, decisions } = frozen(t, { configuration: { oldAfterMs: 10_000 } })
  assert.equal(await refund(), 'ran')
  service.isDown = true
  sleep(46_000)
  await refund()
  service.isDown = false
  assert.ok(Number((await decisions())[0]?.['policyAgeMs']) >= 46_000)
})

test('a prompt that was taken before anything was loaded is said, and the run shows which it was', async (t) => {
  const { service, tacho, said } = frozen(t)
  service.prompts = { greeting: 'Hello {{größe}}' }
  await tacho.run(async (run) => {
    assert.equal(tacho.prompt('greeting', 'Hi').content, 'Hi')
    run.llmCall({ model: 'm' })
    await tacho.configuration.ready()
    assert.equal(tacho.prompt('greeting', 'Hi').isFallback, false)
    run.llmCall({ model: 'm' })
  })
  await tacho.flush()
  const calls = service.events.filter(({ eventType }) => eventType === 'LLM_CALL').map(({ payload }) => payload)
  assert.deepEqual(
    calls.map(({ promptFallback, promptVersionId }) => [promptFallback, typeof promptVersionId]),
    [
      [true, 'undefined'],
      [undefined, 'string'],
    ],
  )
  assert.ok(said.includes('prompt_fallback'))
})
