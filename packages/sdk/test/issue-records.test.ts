import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
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
import { hostRuntime } from '../src/delivery/runtime.ts'

const RECEIVED = json(202, { recordId: '01900000-0000-7000-8000-0000000000dd', status: 'RECEIVED', isNew: true })

async function start(t: TestContext, options: TachoOptions, ...answers: Answer[]) {
  const service = await startScriptedService()
  if (answers.length > 0) service.script('issue-records', ...answers)
  t.after(service.close)
  // Without randomness, retries do not wait.
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

test('a record has the fields of the interface and belongs to the current run', async (t) => {
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

test('failed records are retried one after the other and in order', async (t) => {
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

test('a refused record is dropped, and the next one is sent', async (t) => {
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
  test(`after Tacho's ${status}, records wait, no flush does, and all are counted`, async (t) => {
    const { service, tacho } = await start(t, {}, refuse(status))
    for (let n = 0; n < 3; n++) tacho.reportIssue({ detectionType: 'A' })
    await tacho.flush()
    tacho.reportIssue({ detectionType: 'A' })
    await tacho.flush()
    assert.equal(service.requests('issue-records').length, 1)
    assert.equal(balanced(tacho).queued, 4)
    await tacho.shutdown()
    assert.deepEqual(balanced(tacho).dropped, { [reason]: 4 })
  })
}

test('the queue is bounded in records: the oldest waiting one is dropped', async (t) => {
  const { service, tacho } = await start(t, {}, (response) => void setTimeout(() => response.destroy(), 300).unref())
  tacho.reportIssue({ detectionType: 'first' })
  await service.until('issue-records', 1)
  for (let n = 0; n < 1_000; n++) tacho.reportIssue({ detectionType: `${n}` })
  const { queued, dropped } = balanced(tacho)
  assert.deepEqual([queued, dropped], [1_000, { queue_full: 1 }])
})

test('the queue is bounded in bytes, and a record over 256 KiB is shortened', async (t) => {
  const { service, tacho } = await start(t, {}, hangUp)
  const large = { text: 'x'.repeat(300_000) }
  tacho.reportIssue({ detectionType: 'A', payload: large, evidence: large })
  await service.until('issue-records', 1)
  const [request] = service.requests('issue-records')
  assert.ok(request)
  assert.ok(Buffer.byteLength(JSON.stringify(request.json)) <= 262_144)
  const { payload, evidence } = request.json as { payload: object; evidence: object }
  assert.ok('tachoShortened' in payload && 'tachoShortened' in evidence)
  for (let n = 0; n < 30; n++) tacho.reportIssue({ detectionType: 'A', payload: large, evidence: large })
  const { queued, dropped } = balanced(tacho)
  assert.ok(queued <= 21, String(queued))
  assert.ok((dropped.queue_full ?? 0) >= 10)
})

test('values that JSON cannot express are marked, and the record is sent', async (t) => {
  const { service, tacho } = await start(t, {})
  const cycle: Record<string, unknown> = { toolName: 'x', big: 1n }
  cycle['self'] = cycle
  tacho.reportIssue({ detectionType: 'A', payload: cycle })
  await tacho.flush()
  const [request] = service.requests('issue-records')
  const { payload } = (request?.json ?? {}) as { payload?: object }
  assert.deepEqual(payload, { toolName: 'x', big: '1', self: '[circular]' })
})

test('metadata-only: no free text of a record leaves the process', async (t) => {
  const { service, tacho } = await start(t, { capture: 'metadata-only' })
  const payload = { toolName: 'refund', reasonCode: 'E1', riskSignals: ['injection'], text: 'Ada', list: ['Ada'] }
  tacho.reportIssue({ detectionType: 'A', payload, evidence: { decision: 'BLOCK', quote: 'Ada said so' } })
  await tacho.flush()
  const [request] = service.requests('issue-records')
  const record = (request?.json ?? {}) as { payload?: object; evidence?: object }
  assert.deepEqual(record.payload, { toolName: 'refund', reasonCode: 'E1', riskSignals: ['injection'] })
  assert.deepEqual(record.evidence, { decision: 'BLOCK' })
})

test('with a spool, kill -9 loses no record, and every record keeps its id', async (t) => {
  const spool = mkdtempSync(path.join(tmpdir(), 'tacho-issues-'))
  t.after(() => rmSync(spool, { recursive: true, force: true }))
  const { service } = await start(t, {}, () => undefined)
  const program = `
    import { Tacho } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)}
    const spool = ${JSON.stringify(spool)}
    const tacho = new Tacho({ apiKey: 'k', baseUrl: ${JSON.stringify(service.url)}, spool, onDiagnostic() {} })
    await tacho.ready()
    for (const detectionType of ['A', 'B']) tacho.reportIssue({ detectionType })
    process.kill(process.pid, 'SIGKILL')`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'inherit' })
  assert.deepEqual(await once(child, 'close'), [null, 'SIGKILL'])
  service.script('issue-records', RECEIVED)
  const sent = () => service.requests('issue-records').map(({ json: body }) => body as Record<string, unknown>)
  const next = new Tacho({ apiKey: 'k', baseUrl: service.url, spool, onDiagnostic: () => undefined })
  await next.ready()
  await next.flush(30_000)
  const { recovered, accepted } = balanced(next)
  assert.deepEqual([recovered, accepted], [2, 2])
  // The first process may have sent a record too, with the same id.
  const kinds = new Map(sent().map(({ clientRecordId, detectionType }) => [clientRecordId, detectionType]))
  assert.deepEqual([...kinds.values()], ['A', 'B'])
  await next.shutdown()
  // Delivered segments are empty.
  assert.ok(readdirSync(spool).every((file) => statSync(path.join(spool, file)).size === 0))
})

test('flush ends at its timeout, and shutdown counts the rest', async (t) => {
  const { tacho } = await start(t, {}, () => undefined)
  tacho.reportIssue({ detectionType: 'A' })
  await tacho.flush(50)
  assert.equal(balanced(tacho).queued, 1)
  await tacho.shutdown(0)
  assert.deepEqual(balanced(tacho).dropped, { closed: 1 })
  await sleep(0)
})

test('a process that ends normally delivers its issue records first, including those that wait for a retry', async (t) => {
  const { service } = await start(t, {}, refuse(500), refuse(500), RECEIVED)
  const program = `
    import { Tacho } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)}
    new Tacho({ apiKey: 'k', baseUrl: ${JSON.stringify(service.url)}, flushTimeoutMs: 30_000, onDiagnostic() {} })
      .reportIssue({ detectionType: 'LAST_WORDS' })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'inherit' })
  assert.deepEqual(await once(child, 'close'), [0, null])
  assert.equal(service.requests('issue-records').length, 3)
})

test('waitUntil keeps a serverless function running until its records are delivered', async (t) => {
  const handedOver: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void handedOver.push(promise)
  const { service, tacho } = await start(t, { waitUntil }, refuse(500), RECEIVED)
  tacho.reportIssue({ detectionType: 'A' })
  assert.ok(handedOver.length > 0)
  // A promise may add another one.
  for (const promise of handedOver) await promise
  assert.equal(service.requests('issue-records').length, 2)
  assert.equal(balanced(tacho).accepted, 1)
})

test('an answer that never comes, as after a frozen function, holds up no later record', async (t) => {
  const service = await startScriptedService()
  t.after(service.close)
  let isFrozen = true
  let skew = 0
  const requestTimeoutMs = 7_777
  const { promise: lost, resolve: lose } = Promise.withResolvers<void>()
  const runtime: typeof hostRuntime = {
    ...hostRuntime,
    random: () => 0,
    now: () => Date.now() + skew,
    // The timeout of the request is lost with its connection.
    timer: (ms, act, hold) =>
      ms === requestTimeoutMs && isFrozen ? { cancel: () => undefined } : hostRuntime.timer(ms, act, hold),
    fetch: (...given) => (isFrozen ? new Promise(() => lose()) : hostRuntime.fetch(...given)),
  }
  const given = { apiKey: 'k', baseUrl: service.url, requestTimeoutMs, onDiagnostic: () => undefined }
  const tacho = new Tacho(given, runtime)
  t.after(() => tacho.shutdown(0))
  tacho.reportIssue({ detectionType: 'first' })
  await lost
  isFrozen = false
  skew = 60_000
  tacho.reportIssue({ detectionType: 'second' })
  await tacho.flush(30_000)
  const { accepted, retried } = balanced(tacho)
  assert.deepEqual([accepted, retried], [2, 1])
})
