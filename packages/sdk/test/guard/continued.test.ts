/** Calls that outlive their process: the next process finds the approval request, and one approval runs the tool once. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Tacho, ToolBlockedError, type GuardDefaults, type RunHandle } from '../../src/index.ts'
import { createRunState, freeNumber, nextNumber, spendNumber, takeNumber } from '../../src/recording/run-state.ts'
import { FakeService } from '../../src/testing/fake-service.ts'
import { policy, resultOf } from './scene.ts'

const INPUT = { order: '1007', amount: 25 }

/** A service that outlives its clients, which are processes of their own. */
function scene(t: TestContext) {
  const service = new FakeService('approve')
  service.setPolicies([policy('REQUIRE_APPROVAL')])
  let isDecided = false
  function client(clientId: string, guard: GuardDefaults = {}) {
    const fetch: FakeService['fetch'] = async (url, init) => {
      const { pathname } = new URL(url)
      const approve = service.fetch
      const isUndecided = init.method === 'GET' && pathname.includes('/firewall-approvals/') && !isDecided
      if (!isUndecided) return approve(url, init)
      const id = pathname.split('/').at(-1)
      const expiresAt = new Date(Date.now() + 60_000).toISOString()
      const undecided = { id, status: 'PENDING', expiresAt, decidedAt: null, decisionReason: null }
      return new Response(JSON.stringify(undecided), { status: 200 })
    }
    const baseUrl = 'http://localhost'
    const waits = { configurationWaitMs: 60_000, approvalWaitMs: 0, ...guard }
    const tacho = new Tacho({ apiKey: 'k', baseUrl, clientId, fetch, guard: waits, onDiagnostic: () => undefined })
    t.after(() => tacho.shutdown(0))
    const ran: unknown[] = []
    const refund = tacho.guard((input: object) => ran.push(input), { name: 'refund' })
    return { tacho, refund, ran }
  }
  /** A person approves all pending requests. */
  async function decide(): Promise<void> {
    isDecided = true
    const headers = {}
    for (const id of service.approvals.keys()) {
      await service.fetch(`http://localhost/openapi/v1/firewall-approvals/${id}`, { method: 'GET', headers })
    }
  }
  return { service, client, decide }
}

async function pendingOf(act: Promise<unknown>) {
  const error = await act.then(
    () => assert.fail('the tool ran'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof ToolBlockedError && error.pending, String(error))
  const handle = JSON.parse(JSON.stringify(error.toHandle())) as RunHandle
  return { error, pending: error.pending, handle }
}

test('a pending call is plain JSON for a request, and its handle is not shown', async (t) => {
  const { client } = scene(t)
  const { refund } = client('one')
  const { error, pending } = await pendingOf(refund({ ...INPUT, secret: 'hush' }))
  assert.deepEqual(Object.keys(pending), ['status', 'approvalId', 'toolName', 'expiresAt'])
  assert.equal(error.code, 'approval_pending')
  assert.ok(Date.parse(pending.expiresAt ?? '') > 0)
  const { inspect } = await import('node:util')
  assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }) + JSON.stringify(error), /hush/)
})

test('the next process continues the call with its arguments, in the name of the first client', async (t) => {
  const { service, client, decide } = scene(t)
  const { pending, handle } = await pendingOf(client('one').refund(INPUT))
  const next = client('two')
  const run = next.tacho.resume(handle)
  const proceed = () => run.within(() => next.tacho.continueCall(pending.approvalId, next.refund))
  assert.equal(await resultOf(proceed()), 'approval_pending')
  await decide()
  assert.equal(await resultOf(proceed()), 1)
  assert.deepEqual(next.ran, [INPUT])
  assert.equal(await resultOf(proceed()), 'approval_used')
  assert.equal(service.approvals.size, 1)
  assert.deepEqual(service.issues, [])
  run.end()
  await next.tacho.flush()
  const types = service.events.map(({ eventType }) => eventType)
  assert.equal(types.filter((type) => type === 'TOOL_CALL').length, 1)
  assert.equal(types.filter((type) => type === 'SESSION_OUTCOME').length, 1)
})

test('two processes that continue at once run the tool once', async (t) => {
  const { client, decide } = scene(t)
  const { pending, handle } = await pendingOf(client('one').refund(INPUT))
  await decide()
  const both = [client('two'), client('three')]
  const results = await Promise.all(
    both.map(({ tacho, refund }) =>
      resultOf(tacho.resume(handle).within(() => tacho.continueCall(pending.approvalId, refund))),
    ),
  )
  assert.deepEqual(new Set(results), new Set([1, 'approval_used']))
  assert.equal(both.flatMap(({ ran }) => ran).length, 1)
})

test('a process that makes the same call again finds the first request', async (t) => {
  const { service, client, decide } = scene(t)
  // The first process was killed, so the handle was made before the call.
  const first = client('one')
  const run = first.tacho.startRun()
  const handle = run.toHandle()
  await pendingOf(run.within(() => first.refund(INPUT)))
  await decide()
  const next = client('two')
  const resumed = next.tacho.resume(handle)
  assert.equal(await resultOf(resumed.within(() => next.refund(INPUT))), 1)
  assert.equal(service.approvals.size, 1)
  // A further call needs its own approval, here and after the next handover.
  assert.equal(await resultOf(resumed.within(() => next.refund(INPUT))), 'approval_pending')
  assert.equal(service.approvals.size, 2)
  const third = client('three')
  const last = third.tacho.resume(resumed.toHandle())
  assert.equal(await resultOf(last.within(() => third.refund(INPUT))), 'approval_pending')
  assert.equal(service.approvals.size, 2)
})

test('an approval counts only for the policy version that required it', async (t) => {
  const { service, client, decide } = scene(t)
  const { pending, handle } = await pendingOf(client('one').refund(INPUT))
  await decide()
  service.setPolicies([{ ...policy('REQUIRE_APPROVAL'), version: '2' }])
  const next = client('two')
  const run = next.tacho.resume(handle)
  const again = await pendingOf(run.within(() => next.tacho.continueCall(pending.approvalId, next.refund)))
  assert.notEqual(again.pending.approvalId, pending.approvalId)
  assert.deepEqual(next.ran, [])
  service.setPolicies([policy('BLOCK')])
  const last = client('three')
  const result = last.tacho
    .resume(again.handle)
    .within(() => last.tacho.continueCall(again.pending.approvalId, last.refund))
  assert.equal(await resultOf(result), 'policy')
})

test('with a key of the caller, the approval of a call is never asked for twice', async (t) => {
  const { service, client, decide } = scene(t)
  const call = ({ tacho, ran }: ReturnType<typeof client>, key: string) =>
    resultOf(
      tacho
        .resume({ runId: 'r', agentName: 'a', parentSpanId: 's', clientId: 'one' })
        .within(() => tacho.guardedCall({ name: 'refund', input: INPUT, key, call: (input) => ran.push(input) })),
    )
  assert.equal(await call(client('one'), 'call-1'), 'approval_pending')
  await decide()
  assert.equal(await call(client('two'), 'call-1'), 1)
  assert.equal(await call(client('three'), 'call-1'), 'approval_used')
  assert.equal(await call(client('three'), 'call-2'), 'approval_pending')
  assert.equal(service.approvals.size, 2)
})

test('in the process that used an approval, the next call with its key asks anew, as does one that got its handle', async (t) => {
  const { service, client, decide } = scene(t)
  const handle = { runId: 'r', agentName: 'a', parentSpanId: 's', clientId: 'one' }
  const call = (run: ReturnType<Tacho['resume']>, { tacho, ran }: ReturnType<typeof client>) =>
    resultOf(
      run.within(() =>
        tacho.guardedCall({ name: 'refund', input: INPUT, key: 'id', call: (input) => ran.push(input) }),
      ),
    )
  const one = client('one')
  const first = one.tacho.resume(handle)
  assert.equal(await call(first, one), 'approval_pending')
  await decide()
  assert.equal(await call(first, one), 1)
  // A second call with the same key, for example from a tool that pauses after its approval, or a model that repeats an id.
  assert.deepEqual([await call(first, one), service.approvals.size], ['approval_pending', 2])
  await decide()
  assert.equal(await call(first, one), 2)
  const two = client('two')
  assert.equal(await call(two.tacho.resume(first.toHandle()), two), 'approval_pending')
  // This process has a handle from before the calls, so it cannot know that this is a further call.
  const three = client('three')
  assert.equal(await call(three.tacho.resume(handle), three), 'approval_used')
  assert.equal(service.approvals.size, 3)
})

test('no text is the key that the SDK makes of another one, and a number or an empty text is no number of a call', async (t) => {
  const { service, client, decide } = scene(t)
  await decide()
  const { tacho, ran } = client('one', { approvalWaitMs: 60_000 })
  const run = tacho.startRun()
  const keys: unknown[] = ['x', 'x', 'x (2)', 'x', 'x,1', '["x",1]', '__proto__', '', '', undefined, 0, 1, 1, '1', null]
  for (const key of keys) {
    const call = { name: 'refund', input: INPUT, key: key as string, call: () => ran.push(key) }
    assert.notEqual(await resultOf(run.within(() => tacho.guardedCall(call))), 'approval_used', String(key))
  }
  assert.deepEqual([ran, service.approvals.size], [keys, keys.length])
})

test('a key that was continued after its first approval was used is used up again', async (t) => {
  const { service, client, decide } = scene(t)
  const keyed = ({ tacho, ran }: ReturnType<typeof client>) => {
    const name = 'refund'
    return tacho.guard((input: object) => ran.push(input), { name, key: () => 'id' })
  }
  const one = client('one')
  const run = one.tacho.startRun()
  const refund = keyed(one)
  await pendingOf(run.within(() => refund(INPUT)))
  await decide()
  assert.equal(await run.within(() => refund(INPUT)), 1)
  const { pending, handle } = await pendingOf(run.within(() => refund(INPUT)))
  await decide()
  const two = client('two')
  const resumed = two.tacho.resume(handle)
  // This tool sets no key: the waiting call has it.
  assert.equal(await resumed.within(() => two.tacho.continueCall(pending.approvalId, two.refund)), 1)
  assert.equal(await resultOf(resumed.within(() => keyed(two)(INPUT))), 'approval_pending')
  assert.equal(service.approvals.size, 3)
})

test('a waiting call whose key looks like a number hides no spent approval from the next process', async (t) => {
  const { client, decide } = scene(t)
  await decide()
  const { tacho, refund, ran } = client('one')
  const run = tacho.startRun()
  await pendingOf(run.within(() => refund(INPUT)))
  await decide()
  assert.equal(await run.within(() => refund(INPUT)), 1)
  const call = (input: unknown) => ran.push(input)
  await pendingOf(run.within(() => tacho.guardedCall({ name: 'refund', input: INPUT, key: '0', call })))
  assert.deepEqual(Object.values(run.toHandle().spentApprovals ?? {}), [1])
})

test('a run with many approvals of one input keeps their count, and what was spent out of order', () => {
  const state = createRunState()
  takeNumber(state, 'slot', 0)
  for (let calls = 0; calls < 1_000; calls++) spendNumber(state, 'slot', nextNumber(state, 'slot'))
  freeNumber(state, 'slot', 0)
  for (let calls = 0; calls < 100_000; calls++) spendNumber(state, 'slot', nextNumber(state, 'slot'))
  const { waiting, spent, spentLater } = state.numbers.get('slot') ?? assert.fail()
  assert.deepEqual([waiting.size, spent, spentLater.size], [0, 101_000, 0])
})

test('after a call was continued, an equal call asks for itself', async (t) => {
  const { service, client, decide } = scene(t)
  const { pending, handle } = await pendingOf(client('one').refund(INPUT))
  await decide()
  const { tacho, refund } = client('two')
  const run = tacho.resume(handle)
  assert.equal(await run.within(() => tacho.continueCall(pending.approvalId, refund)), 1)
  assert.deepEqual([await resultOf(run.within(() => refund(INPUT))), service.approvals.size], ['approval_pending', 2])
})

test('a rejection holds in the next process', async (t) => {
  const { service, client, decide } = scene(t)
  const { pending, handle } = await pendingOf(client('one').refund(INPUT))
  service.approver = 'reject'
  await decide()
  const next = client('two')
  const run = next.tacho.resume(handle)
  assert.equal(await resultOf(run.within(() => next.refund(INPUT))), 'approval_rejected')
  const proceed = run.within(() => next.tacho.continueCall(pending.approvalId, next.refund))
  await assert.rejects(proceed, ToolBlockedError)
  assert.equal(service.approvals.size, 1)
})

test('if the service does not say that the record is new, the tool does not run', async (t) => {
  for (const answer of [{ recordId: 'r', status: 'RECEIVED' }, { recordId: 'r', isNew: 'true' }, {}, null]) {
    const { service, client, decide } = scene(t)
    const { pending, handle } = await pendingOf(client('one').refund(INPUT))
    await decide()
    const { fetch } = service
    const odd: typeof fetch = (url, init) =>
      url.endsWith('/issue-records')
        ? Promise.resolve(new Response(JSON.stringify(answer), { status: 202 }))
        : fetch(url, init)
    Object.assign(service, { fetch: odd })
    const tacho = new Tacho({ apiKey: 'k', baseUrl: 'http://localhost', fetch: odd, onDiagnostic: () => undefined })
    t.after(() => tacho.shutdown(0))
    const refund = tacho.guard(() => assert.fail('the tool ran'), { name: 'refund', configurationWaitMs: 60_000 })
    const result = tacho.resume(handle).within(() => tacho.continueCall(pending.approvalId, refund))
    assert.match(String(await resultOf(result)), /^approval_(used|unavailable)$/)
  }
})

/** The service stores each issue record, but its first answer is lost. @param isOld its answers have no `isSame`. */
function loseReceipts(service: FakeService, { isOld = false } = {}): void {
  const { fetch } = service
  const lost = new Set<unknown>()
  const lossy: typeof fetch = async (url, init) => {
    const reply = await fetch(url, init)
    if (!url.endsWith('/issue-records')) return reply
    const { clientRecordId } = JSON.parse(String(init.body)) as { clientRecordId: string }
    if (!lost.has(clientRecordId)) throw (lost.add(clientRecordId), new TypeError('fetch failed'))
    const { isSame, ...receipt } = (await (reply as Response).json()) as Record<string, unknown>
    return new Response(JSON.stringify(isOld ? receipt : { ...receipt, isSame }), { status: 202 })
  }
  Object.assign(service, { fetch: lossy })
}

test('a claim whose answer was lost is its own: the tool runs, once', async (t) => {
  const { service, client, decide } = scene(t)
  const { pending, handle } = await pendingOf(client('one').refund(INPUT))
  await decide()
  loseReceipts(service)
  const [next, last] = [client('two'), client('three')]
  const proceed = ({ tacho, refund }: typeof next) =>
    resultOf(tacho.resume(handle).within(() => tacho.continueCall(pending.approvalId, refund)))
  assert.equal(await proceed(next), 1)
  assert.equal(await proceed(last), 'approval_used', "another's claim is not")
  assert.deepEqual([next.ran, last.ran], [[INPUT], []])
})

test('if the service cannot say whose claim it has, the tool does not run, and the model is told no lie', async (t) => {
  const { service, client, decide } = scene(t)
  const { pending, handle } = await pendingOf(client('one').refund(INPUT))
  await decide()
  loseReceipts(service, { isOld: true })
  const next = client('two')
  const call = next.tacho.resume(handle).within(() => next.tacho.continueCall(pending.approvalId, next.refund))
  await assert.rejects(call, ({ code, modelText }: ToolBlockedError) => {
    assert.equal(code, 'approval_used')
    assert.match(modelText, /it ran already with these arguments, or may have/)
    return true
  })
  assert.deepEqual(next.ran, [])
})

test('what a run used travels in its handle, and resumes of one process count together', async (t) => {
  const { service, client } = scene(t)
  service.setPolicies([])
  const budget = { toolCalls: 2, action: 'BLOCK' } as const
  const first = client('one', { budget })
  const run = first.tacho.startRun()
  run.llmCall({ usage: { totalTokens: 7 }, cost: 0.5 })
  await run.within(() => first.refund(INPUT))
  const handle = JSON.parse(JSON.stringify(run.toHandle())) as RunHandle
  const { toolCalls, totalTokens, cost } = handle.used ?? {}
  assert.deepEqual({ toolCalls, totalTokens, cost }, { toolCalls: 1, totalTokens: 7, cost: 0.5 })
  const next = client('two', { budget })
  const results: unknown[] = []
  for (let resumes = 0; resumes < 3; resumes++) {
    const resumed = next.tacho.resume(handle)
    results.push(await resultOf(resumed.within(() => next.refund(INPUT))))
  }
  assert.deepEqual(results, [1, 'budget_exceeded', 'budget_exceeded'])
})

test('a loop that spans processes is found', async (t) => {
  const { service, client } = scene(t)
  service.setPolicies([])
  let handle: RunHandle = { runId: 'loop', agentName: 'a', parentSpanId: 's' }
  const results: unknown[] = []
  for (let number = 0; number < 4; number++) {
    const { tacho, refund } = client(`${number}`, { loop: { calls: 4, action: 'BLOCK' } })
    const run = tacho.resume(handle)
    results.push(await resultOf(run.within(() => refund(INPUT))))
    handle = run.toHandle()
  }
  assert.deepEqual(results, [1, 1, 1, 'loop_detected'])
})

test('a handle of another shape does no harm', async (t) => {
  const { client } = scene(t)
  const hash = 'a'.repeat(64)
  const waiting = { approvalId: 'a', toolName: 'refund', inputHash: hash, expiresAt: null, args: [] }
  const odd = {
    clientId: 5,
    used: { toolCalls: 'x' },
    recentCalls: 7,
    spentApprovals: { a: 1, b: 'c', [hash]: -1, ['b'.repeat(64)]: 1e308, ['c'.repeat(64)]: 0.5 },
    approvals: [
      null,
      3,
      {},
      ...[-1, 1e308, 0.5, '', [0], null].map((key) => ({ ...waiting, key })),
      ...[-1, 1e308, '1', null].map((spent) => ({ ...waiting, key: 'x', spent })),
      { ...waiting, key: 0, inputHash: [hash] },
    ],
  }
  const { tacho, refund } = client('one')
  const run = tacho.resume({ runId: 'r', agentName: 'a', parentSpanId: 's', ...odd } as unknown as RunHandle)
  assert.equal(await resultOf(run.within(() => refund(INPUT))), 'approval_pending')
  await assert.rejects(async () => run.within(() => tacho.continueCall('unknown', refund)), TypeError)
  await assert.rejects(async () => run.within(() => tacho.continueCall('a', refund)), TypeError)
  assert.equal(run.toHandle().spentApprovals, undefined)
})
