/** If a caller gives up while its call waits for a person, the approval runs nothing, and the next call asks again. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { Tacho, type GuardDefaults, type Run, type RunHandle } from '../../src/index.ts'
import { FakeService } from '../../src/testing/fake-service.ts'
import { policy, resultOf } from './scene.ts'

const INPUT = { order: 7 }

function scene(t: TestContext) {
  const service = new FakeService('approve')
  service.setPolicies([policy('REQUIRE_APPROVAL')])
  let isDecided = false
  let expiresIn = 60_000
  /** Approvals that a client polls, so it has received the answer to its request. */
  const polled = new Set<string>()
  const answer = service.fetch
  const fetch: typeof answer = async (url, init) => {
    const { pathname } = new URL(url)
    if (!pathname.includes('/firewall-approvals')) return answer(url, init)
    const isAsking = init.method === 'POST'
    const created = isAsking ? await answer(url, init) : undefined
    const id = isAsking
      ? idOf(await new Response(created!.body as unknown as ReadableStream).json())
      : (pathname.split('/').at(-1) ?? '')
    if (!isAsking) polled.add(id)
    if (isDecided)
      await answer(`${url.slice(0, url.indexOf('/firewall-approvals'))}/firewall-approvals/${id}`, {
        ...init,
        method: 'GET',
      })
    const status = service.approvals.get(id)?.status ?? 'PENDING'
    const decidedAt = status === 'PENDING' ? null : new Date().toISOString()
    const times = { expiresAt: new Date(Date.now() + expiresIn).toISOString(), decidedAt }
    if (!isAsking && status === 'PENDING') await new Promise((resolve) => setTimeout(resolve, 20))
    return new Response(JSON.stringify({ id, status, ...times, decisionReason: null }), {
      status: isAsking ? 201 : 200,
    })
  }
  function client(clientId = 'one', guard: GuardDefaults = {}) {
    const given = { apiKey: 'k', baseUrl: 'http://localhost', clientId, fetch, onDiagnostic: () => undefined }
    const tacho = new Tacho({ ...given, guard: { configurationWaitMs: 60_000, ...guard } })
    t.after(() => tacho.shutdown(0))
    const ran: unknown[] = []
    return { tacho, ran, refund: tacho.guard((input: object) => ran.push(input), { name: 'refund' }) }
  }
  return {
    service,
    client,
    /** A person approves all requests. */
    async decide() {
      isDecided = true
      for (const id of service.approvals.keys())
        await answer(`http://localhost/openapi/v1/firewall-approvals/${id}`, { method: 'GET', headers: {} })
    },
    undecided: () => (isDecided = false),
    expire: (ms: number) => (expiresIn = ms),
    async asked(count = 1) {
      while (polled.size < count) await new Promise((resolve) => setTimeout(resolve, 5))
    },
    reasons: () =>
      service.events
        .filter(({ eventType }) => eventType === 'APPROVAL_WITHDRAWN')
        .map(({ payload }) => payload['reason']),
  }
}

const idOf = (approval: unknown): string => (approval as { id: string }).id

type Client = ReturnType<ReturnType<typeof scene>['client']>

/** Ways to give up. Each leaves one call waiting and returns how the call ended. */
const WAYS: Record<
  string,
  { reason: string; code: string; leave(client: Client, asked: () => Promise<void>): Promise<unknown> }
> = {
  AbortSignal: {
    reason: 'aborted',
    code: 'aborted',
    async leave({ tacho, ran }, asked) {
      const stop = new AbortController()
      const call = { name: 'refund', input: INPUT, signal: stop.signal, call: (input: object) => ran.push(input) }
      const ended = resultOf(tacho.run({ runId: 'r' }, () => tacho.guardedCall(call)))
      await asked()
      stop.abort()
      return ended
    },
  },
  'AbortSignal.timeout': {
    reason: 'timeout',
    code: 'aborted',
    async leave({ tacho, ran }, asked) {
      const stop = new AbortController()
      const call = { name: 'refund', input: INPUT, key: 'call_1', call: (input: object) => ran.push(input) }
      const ended = resultOf(tacho.run({ runId: 'r' }, () => tacho.guardedCall({ ...call, signal: stop.signal })))
      await asked()
      stop.abort(new DOMException('late', 'TimeoutError'))
      return ended
    },
  },
  'a lost race': {
    reason: 'run_ended',
    code: 'caller_gone',
    async leave({ tacho, refund }, asked) {
      let ended: Promise<unknown> | undefined
      await tacho.run({ runId: 'r' }, () => Promise.race([(ended = resultOf(refund(INPUT))), asked()]))
      return ended
    },
  },
  'a run that ended': {
    reason: 'run_ended',
    code: 'caller_gone',
    async leave({ tacho, refund }, asked) {
      const run = tacho.startRun({ runId: 'r' })
      const ended = run.within(() => resultOf(refund(INPUT)))
      await asked()
      run.end()
      return ended
    },
  },
  'a generator that its reader left': {
    reason: 'run_ended',
    code: 'caller_gone',
    async leave({ tacho, refund }, asked) {
      let ended: Promise<unknown> | undefined
      const values = (await tacho.run({ runId: 'r' }, async function* () {
        ended = resultOf(refund(INPUT))
        yield 1
        yield 2
      })) as AsyncGenerator<number>
      for await (const _ of values) {
        await asked()
        break
      }
      return ended
    },
  },
  'the local deadline': {
    reason: 'timeout',
    code: 'approval_timeout',
    async leave({ tacho, ran }) {
      const call = { name: 'refund', input: INPUT, approvalTimeoutMs: 1_000, call: (input: object) => ran.push(input) }
      return resultOf(tacho.run({ runId: 'r' }, () => tacho.guardedCall(call)))
    },
  },
}

for (const [way, { reason, code, leave }] of Object.entries(WAYS)) {
  test(`${way}: the tool does not run when a person approves, and equal calls ask anew, here and in the next process`, async (t) => {
    const { service, client, decide, undecided, asked, reasons } = scene(t)
    const one = client()
    const before = one.tacho.startRun({ runId: 'r' }).toHandle()
    assert.equal(await leave(one, asked), code)
    await decide()
    await new Promise((resolve) => setTimeout(resolve, 100))
    await one.tacho.flush()
    assert.deepEqual([one.ran, reasons()], [[], [reason]])
    if (code !== 'approval_timeout') assert.deepEqual(service.issues, [], 'nothing failed')
    const [first] = service.approvals.values()
    assert.ok(first)
    undecided()
    const call = { name: 'refund', input: INPUT, approvalWaitMs: 0 }
    const again = ({ tacho, ran }: Client, run: Run, key?: string) =>
      resultOf(run.within(() => tacho.guardedCall({ ...call, key, call: (input) => ran.push(input) })))
    // The next process has only a handle from before the call.
    const next = client('one')
    const runs: readonly [Client, Run][] = [
      [one, one.tacho.resume(before)],
      [next, next.tacho.resume(before)],
      [next, next.tacho.startRun({ runId: 'r' })],
    ]
    for (const [who, run] of runs) assert.equal(await again(who, run), 'approval_pending')
    assert.equal(await again(one, one.tacho.resume(before), 'call_1'), 'approval_pending')
    assert.deepEqual([...one.ran, ...next.ran], [])
    assert.equal(first.status, 'APPROVED')
  })
}

test('a call of a run that has ended does not ask', async (t) => {
  const { service, client } = scene(t)
  const { tacho, refund } = client()
  const run = tacho.startRun()
  run.end()
  assert.equal(await resultOf(run.within(() => refund(INPUT))), 'caller_gone')
  assert.equal(service.approvals.size, 0)
})

test('a pending call is not withdrawn, also beside one that waits', async (t) => {
  const { service, client, decide, asked, reasons } = scene(t)
  const { tacho, refund, ran } = client()
  const pending = tacho.guard((input: object) => ran.push(input), { name: 'refund', approvalWaitMs: 0 })
  let waiting: Promise<unknown> | undefined
  let handle: RunHandle | null = null
  await tacho
    .run(async () => {
      waiting = resultOf(refund(INPUT))
      await asked()
      await pending({ order: 8 })
    })
    .catch((error: { toHandle(): RunHandle }) => (handle = error.toHandle()))
  assert.equal(await waiting, 'approval_pending')
  await decide()
  await tacho.flush()
  assert.deepEqual([reasons(), ran], [[], []])
  const next = client('two')
  const run = next.tacho.resume(handle!)
  for (const id of service.approvals.keys()) await run.within(() => next.tacho.continueCall(id, next.refund))
  assert.deepEqual(next.ran, [INPUT, { order: 8 }])
})

test('an approval that is over lets nothing run, also if it was approved in time', async (t) => {
  const { service, client, decide, expire, undecided } = scene(t)
  const { tacho, ran } = client('one', { approvalWaitMs: 0 })
  const call = { name: 'refund', input: INPUT, key: 'call_1', call: (input: object) => ran.push(input) }
  const run = tacho.startRun({ runId: 'r' })
  assert.equal(await resultOf(run.within(() => tacho.guardedCall(call))), 'approval_pending')
  await decide()
  expire(-60_000)
  assert.equal([...service.approvals.values()][0]?.status, 'APPROVED')
  undecided()
  assert.equal(await resultOf(run.within(() => tacho.guardedCall(call))), 'approval_pending')
  assert.deepEqual([ran, service.approvals.size], [[], 2])
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} withdraws what waits, before the outcome of the run`, async () => {
    const child = spawn(process.execPath, [new URL('withdrawn-child.ts', import.meta.url).pathname])
    let text = ''
    child.stdout.on('data', (part: Buffer) => {
      if (!text.includes('waiting') && part.includes('waiting')) child.kill(signal)
      text += String(part)
    })
    await once(child, 'close')
    const types = text.split('\n').filter((line) => /^[A-Z_]+( |$)/.test(line))
    assert.deepEqual(types, ['POLICY_DECISION', 'APPROVAL_WITHDRAWN process_ended', 'SESSION_OUTCOME'], text)
  })
}
