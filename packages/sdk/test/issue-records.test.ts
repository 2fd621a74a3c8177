import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  garbage,
  hangUp,
  json,
  refuse,
  startScriptedService,
  type Answer,
} from '@tacho/sdk-conformance/scripted-service.ts'
import { Tacho, type TachoOptions } from '../src/index.ts'
import { hostRuntime } from '../src/runtime.ts'

const RECEIVED = json(202, { recordId: '01900000-0000-7000-8000-0000000000dd', status: 'RECEIVED', isNew: true })

async function start(t: TestContext, options: TachoOptions, ...answers: Answer[]) {
  const service = await startScriptedService()
  if (answers.length > 0) service.script('issue-records', ...answers)
  t.after(service.close)
  // Retries come at once: chance is the only thing that makes them wait.
  const runtime = { ...hostRuntime, random: () => 0 }
  const given = { apiKey: 'k', baseUrl: service.url, onDiagnostic: () => undefined, ...options }
  const tacho = new Tacho(given, runtime)
  t.after(() => tacho.shutdown(0))
  return { service, tacho }
}

/** recorded = accepted + rejected + dropped + queued. */
function balanced(tacho: Tacho) {
  const counters = tacho.issueRecordCounters()
  assert.ok(counters)
  const dropped = Object.values(counters.dropped).reduce((sum, count) => sum + count, 0)
  assert.equal(counters.recorded, counters.accepted + counters.rejected + dropped + counters.queued)
  return counters
}

test('a record says what the interface asks for, and belongs to the run it is reported in', async (t) => {
  const { service, tacho } = await start(t, { clientId: 'c', agentId: 'bot' })
  await tacho.run({ sessionId: 's', runId: 'r' }, () => {
    tacho.reportIssue({
      detectionType: 'CUSTOM',
      policyId: 'p',
      payload: { toolName: 'x', apiKey: 'sk-1' },
      evidence: { decision: 'BLOCK' },
    })
  })
  await tacho.flush()
  const [request] = service.requests('issue-records')
  assert.ok(request)
  const { clientRecordId, detectedAt, ...record } = request.json as Record<string, unknown>
  assert.match(String(clientRecordId), /^[0-9a-f-]{36}$/)
  assert.ok(Math.abs(Number(detectedAt) - Date.now()) < 60_000)
  const { payload, ...rest } = record
  assert.deepEqual(rest, {
    sdkInstanceId: 'c',
    recordKind: 'DETECTION',
    detectionType: 'CUSTOM',
    runId: 'r',
    sessionId: 's',
    agentId: 'bot',
    policyId: 'p',
    evidence: { decision: 'BLOCK' },
  })
  assert.equal((payload as Record<string, unknown>)['toolName'], 'x')
  assert.ok(!JSON.stringify(payload).includes('sk-1'), 'a credential was sent')
})

test('trouble is retried until it ends, one after the other and in order', async (t) => {
  const trouble = [refuse(500), hangUp, garbage, refuse(429)]
  const { service, tacho } = await start(t, {}, ...trouble, RECEIVED)
  for (const detectionType of ['A', 'B', 'C']) tacho.reportIssue({ detectionType })
  await tacho.flush(30_000)
  const types = service
    .requests('issue-records')
    .map(({ json: body }) => (body as { detectionType: string }).detectionType)
  assert.equal(types.join(''), 'AAAAABC')
  const { accepted, retried, queued } = balanced(tacho)
  assert.deepEqual([accepted, retried, queued], [3, 4, 0])
})

test('a record that is refused is given up; the next one is sent', async (t) => {
  const { tacho } = await start(t, {}, refuse(400), RECEIVED)
  for (let n = 0; n < 2; n++) tacho.reportIssue({ detectionType: 'A' })
  await tacho.flush()
  const { accepted, rejected } = balanced(tacho)
  assert.deepEqual([accepted, rejected], [1, 1])
})

for (const [status, reason] of [
  [401, 'unauthorized'],
  [403, 'forbidden'],
] as const) {
  test(`after ${status} no record is sent any more, and all are counted`, async (t) => {
    const { service, tacho } = await start(t, {}, refuse(status))
    for (let n = 0; n < 3; n++) tacho.reportIssue({ detectionType: 'A' })
    await tacho.flush()
    tacho.reportIssue({ detectionType: 'A' })
    await tacho.flush()
    assert.equal(service.requests('issue-records').length, 1)
    const { dropped } = balanced(tacho)
    assert.deepEqual(dropped, { [reason]: 3, closed: 1 })
  })
}

test('the queue is bounded in records: the oldest that waits makes room', async (t) => {
  const { service, tacho } = await start(t, {}, (response) => void setTimeout(() => response.destroy(), 300).unref())
  tacho.reportIssue({ detectionType: 'first' })
  await service.until('issue-records', 1)
  for (let n = 0; n < 1_000; n++) tacho.reportIssue({ detectionType: `${n}` })
  const { queued, dropped } = balanced(tacho)
  assert.deepEqual([queued, dropped], [1_000, { queue_full: 1 }])
})

test('the queue is bounded in bytes, and a record over 256 KiB is dropped', async (t) => {
  const { service, tacho } = await start(t, {}, hangUp)
  tacho.reportIssue({ detectionType: 'first' })
  await service.until('issue-records', 1)
  const large = (chars: number) => tacho.reportIssue({ detectionType: 'A', payload: { text: 'x'.repeat(chars) } })
  large(262_144)
  assert.deepEqual(balanced(tacho).dropped, { too_large: 1 })
  for (let n = 0; n < 30; n++) large(250_000)
  const { queued, dropped } = balanced(tacho)
  assert.ok(queued <= 17, String(queued))
  assert.ok((dropped.queue_full ?? 0) >= 14)
})

test('flush ends when its time is up, and shutdown counts what is left', async (t) => {
  const { tacho } = await start(t, {}, () => undefined)
  tacho.reportIssue({ detectionType: 'A' })
  await tacho.flush(50)
  assert.equal(balanced(tacho).queued, 1)
  await tacho.shutdown(0)
  assert.deepEqual(balanced(tacho).dropped, { closed: 1 })
  await sleep(0)
})

test('a process that ends by itself delivers its issue records first, also those that wait for a retry', async (t) => {
  const { service } = await start(t, {}, refuse(500), refuse(500), RECEIVED)
  const program = `
    import { Tacho } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)}
    new Tacho({ apiKey: 'k', baseUrl: ${JSON.stringify(service.url)}, flushTimeoutMs: 30_000, onDiagnostic() {} })
      .reportIssue({ detectionType: 'LAST_WORDS' })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'inherit' })
  assert.deepEqual(await once(child, 'close'), [0, null])
  assert.equal(service.requests('issue-records').length, 3)
})

test('a serverless function is kept running until its records are delivered', async (t) => {
  const handedOver: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void handedOver.push(promise)
  const { service, tacho } = await start(t, { waitUntil }, refuse(500), RECEIVED)
  tacho.reportIssue({ detectionType: 'A' })
  assert.ok(handedOver.length > 0)
  // One promise may bring the next, such as loading what sends.
  for (const promise of handedOver) await promise
  assert.equal(service.requests('issue-records').length, 2)
  assert.equal(balanced(tacho).accepted, 1)
})
