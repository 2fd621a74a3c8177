/** One guarded call, from its decision to its record. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ToolBlockedError } from '../../src/index.ts'
import { fake, policy, resultOf } from './scene.ts'

const typesOf = (events: readonly { eventType: string }[]) => events.map(({ eventType }) => eventType)

test('the start of a call is recorded before its tool runs, in the same span, and counts once', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK', 'run.toolCalls > 1')] })
  const seen: string[][] = []
  const refund = service.tacho.guard(
    async (_: object) => {
      seen.push(typesOf(await service.events()))
      service.tacho.record({ type: 'AGENT_STEP', label: 'inside' })
    },
    { name: 'refund' },
  )
  await service.tacho.run(async () => {
    await refund({ amount: 1 })
    await refund({ amount: 2 })
    assert.equal(await resultOf(refund({ amount: 3 })), 'policy')
  })
  assert.deepEqual(seen[0], ['TOOL_START'])
  const [start, inside, call] = await service.events()
  assert.deepEqual(typesOf([start!, inside!, call!]), ['TOOL_START', 'AGENT_STEP', 'TOOL_CALL'])
  assert.equal(start!.spanId, call!.spanId)
  assert.equal(inside!.spanId, call!.spanId)
  assert.equal(typeof call!.parentSpanId, 'string')
})

test('outside a run, a call is a run of its own, with run facts and detectors', async (t) => {
  const condition = 'run.id != "" && tool.input.amount > 100.0'
  const service = fake(t, {
    deployedPolicies: [policy('BLOCK', condition)],
    guard: { budget: { toolCalls: 0, action: 'WARN' } },
  })
  const refund = service.tacho.guard((_: { amount: number }) => 'ran', { name: 'refund' })
  assert.equal(await refund({ amount: 1 }), 'ran')
  assert.equal(await resultOf(refund({ amount: 500 })), 'policy')
  await service.tacho.decide({ toolName: 'refund', input: { amount: 501 } })
  assert.equal(await resultOf(service.tacho.authorize({ toolName: 'refund', input: { amount: 502 } })), 'policy')
  assert.deepEqual(
    (await service.runs()).map(({ status, events }) => [status, typesOf(events)]),
    [
      ['COMPLETED', ['POLICY_DECISION', 'TOOL_START', 'TOOL_CALL', 'SESSION_OUTCOME']],
      ['FAILED', ['POLICY_DECISION', 'SESSION_OUTCOME']],
      ['COMPLETED', ['POLICY_DECISION', 'SESSION_OUTCOME']],
      ['FAILED', ['POLICY_DECISION', 'SESSION_OUTCOME']],
    ],
  )
})

test('outside a run, a decision that leaves no event makes no run', async (t) => {
  const service = fake(t)
  await service.tacho.decide({ toolName: 'refund', input: {} })
  await service.tacho.authorize({ toolName: 'refund', input: {} })
  assert.deepEqual(await service.events(), [])
})

test('a budget of one call binds ten calls in parallel, and authorized calls that are recorded later', async (t) => {
  const service = fake(t, { guard: { budget: { toolCalls: 1, action: 'BLOCK' } } })
  const { tacho } = service
  const ran: unknown[] = []
  const refund = tacho.guard(async (input: { amount: number }) => ran.push(input), { name: 'refund' })
  const ten = [...Array(10).keys()]
  await tacho.run(() => Promise.all(ten.map((amount) => resultOf(refund({ amount })))))
  assert.deepEqual(ran, [{ amount: 0 }])

  await tacho.run(async (run) => {
    const authorize = (amount: number) => tacho.authorize({ toolName: 'refund', input: { amount } })
    const results = await Promise.all(ten.map((amount) => resultOf(authorize(amount))))
    assert.equal(results.filter((result) => result === 'budget_exceeded').length, 9)
    run.toolCall({ toolName: 'refund', input: { amount: 0 } })
    run.toolCall({ toolName: 'refund', input: { amount: 1 } })
  })
  await service.deployPolicies([policy('WARN', 'run.toolCalls == 2')])
  await tacho.run(async (run) => {
    await tacho.authorize({ toolName: 'refund', input: {} })
    run.toolCall({ toolName: 'refund' })
    run.toolCall({ toolName: 'other' })
    assert.equal((await tacho.decide({ toolName: 'refund' })).policyIds[0], 'p-warn')
  })
})

test('a budget binds calls whose input cannot be read', async (t) => {
  const service = fake(t, { guard: { budget: { toolCalls: 1, action: 'BLOCK' } } })
  const refund = service.tacho.guard((_: object) => 'ran', { name: 'refund' })
  const results = await service.tacho.run(async () => [
    await resultOf(refund({ at: new Date() })),
    await resultOf(refund({ at: new Date() })),
  ])
  assert.deepEqual(results, ['ran', 'budget_exceeded'])
})

test('a BLOCK that is deployed while a person decides holds', async (t) => {
  const service = fake(t, {
    deployedPolicies: [policy('REQUIRE_APPROVAL')],
    approvals: async () => {
      service.setPolicies([policy('REQUIRE_APPROVAL'), policy('BLOCK')])
      return 'approve' as const
    },
  })
  const refund = service.tacho.guard((_: object) => assert.fail('the tool ran'), { name: 'refund' })
  const error = await service.tacho.run(() => refund({ amount: 1 }).catch((thrown: unknown) => thrown))
  assert.ok(error instanceof ToolBlockedError)
  const [approval, ...others] = await service.approvals()
  assert.deepEqual([error.code, error.approvalId, others], ['policy', approval?.id, []])
  await service.assertEvent('POLICY_DECISION', { action: 'BLOCK', approvalId: approval?.id })
  await service.assertNoEvent('TOOL_START')
})

test('calls that wait for a person together are counted when they may run', async (t) => {
  const service = fake(t, {
    deployedPolicies: [policy('REQUIRE_APPROVAL')],
    approvals: 'approve',
    guard: { budget: { toolCalls: 1, action: 'BLOCK' } },
  })
  const refund = service.tacho.guard((_: object) => 'ran', { name: 'refund' })
  const results = await service.tacho.run(() => Promise.all([1, 2, 3].map((amount) => resultOf(refund({ amount })))))
  assert.deepEqual(results.map(String).toSorted(), ['budget_exceeded', 'budget_exceeded', 'ran'])
})

test('a guarded method keeps `this`', async (t) => {
  const service = fake(t)
  class Shop {
    name = 'shop'
    refund = service.tacho.guard(
      function (this: Shop, _: object) {
        return this.name
      },
      { name: 'refund' },
    )
  }
  assert.equal(await new Shop().refund({}), 'shop')
})

test("an error that cannot be read is the tool's own error, and is recorded", async (t) => {
  for (const capture of ['full', 'metadata-only'] as const) {
    const service = fake(t, { capture })
    const unreadable = new Proxy(
      {},
      {
        get: () => assert.fail('it was read'),
        getPrototypeOf: () => assert.fail('it was read'),
      },
    )
    const named = Object.defineProperty(new Error('hidden'), 'name', { get: () => assert.fail('it was read') })
    for (const thrown of [unreadable, named]) {
      const tool = service.tacho.guard((): Promise<unknown[]> => Promise.reject(thrown), { name: 'refund' })
      const caught = await service.tacho.run(() => tool()).catch((error: unknown) => [error])
      assert.ok(Object.is(caught[0], thrown))
    }
    const calls = (await service.events()).filter(({ eventType }) => eventType === 'TOOL_CALL')
    const errors = calls.map(({ payload }) => payload['error'])
    assert.deepEqual(
      errors,
      // The second error has a readable message; only its name cannot be read.
      capture === 'full' ? ['unreadable error', 'unreadable error: hidden'] : ['[left out]', 'unreadable error'],
    )
    assert.equal((await service.issues()).filter(({ detectionType }) => detectionType === 'TOOL_FAILED').length, 2)
  }
})

test('a generator: its body runs in the call with the judged input, and its end is the end of the call', async (t) => {
  const service = fake(t)
  const got: number[] = []
  const count = service.tacho.guard(
    async function* (input: { to: number }) {
      got.push(input.to)
      service.tacho.record({ type: 'AGENT_STEP', label: 'inside' })
      for (let n = 1; n <= input.to; n++) yield n
    },
    { name: 'count' },
  )
  const input = { to: 2 }
  const steps = await count(input)
  input.to = 9
  await service.assertEvent('TOOL_START', { input: { to: 2 } })
  await service.assertNoEvent('TOOL_CALL')
  const items: number[] = []
  for await (const item of steps) items.push(item)
  assert.deepEqual([got, items], [[2], [1, 2]])
  await service.assertEvent('TOOL_CALL', { input: { to: 2 }, output: [1, 2] })
  const [run] = await service.runs()
  assert.deepEqual(
    [run?.status, typesOf(run?.events ?? [])],
    ['COMPLETED', ['TOOL_START', 'AGENT_STEP', 'TOOL_CALL', 'SESSION_OUTCOME']],
  )
})

test('a generator that throws records a failure; one that is left early records what it yielded', async (t) => {
  const service = fake(t)
  const fails = service.tacho.guard(
    function* (_: object) {
      yield 1
      throw new RangeError('broken')
    },
    { name: 'fails' },
  )
  await service.tacho.run(async () => {
    const left = await fails({ left: true })
    for (const item of left) {
      assert.equal(item, 1)
      break
    }
    const steps = await fails({})
    assert.throws(() => [...steps], RangeError)
  })
  await service.assertEvent('TOOL_CALL', { input: { left: true }, output: [1] })
  await service.assertEvent('TOOL_CALL', { input: {}, error: 'RangeError: broken' })
  assert.equal((await service.issues()).at(-1)?.payload['reasonCode'], 'RangeError')
})

test('a rejection is an answer: the same call of the run is refused without asking again', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('REQUIRE_APPROVAL')], approvals: 'reject' })
  const refund = service.tacho.guard((_: object) => assert.fail('the tool ran'), { name: 'refund' })
  const call = (amount: number) => resultOf(refund({ amount }))
  const results = await service.tacho.run(async () => [await call(1), await call(1), await call(2)])
  assert.deepEqual(results, Array(3).fill('approval_rejected'))
  assert.equal((await service.approvals()).length, 2)
  await service.tacho.run(() => call(1))
  assert.equal((await service.approvals()).length, 3)
})

test('the end of a call names the event of its start', async (t) => {
  const service = fake(t)
  await service.tacho.guardedCall({ name: 'refund', input: {}, call: () => 'ran' })
  const { eventId } = await service.assertEvent('TOOL_START')
  await service.assertEvent('TOOL_CALL', { startEventId: eventId })
})

test('two prompts in parallel: events and issue records carry the prompt of their own span', async (t) => {
  const service = fake(t, { deployedPrompts: { one: 'One', two: 'Two' }, deployedPolicies: [policy('BLOCK')] })
  const { tacho } = service
  await tacho.configuration.refresh()
  const refund = tacho.guard((_: object) => 'ran', { name: 'refund' })
  let begun = 0
  const both = Promise.withResolvers<void>()
  await tacho.run(async (run) => {
    const use = (name: string) =>
      run.span(name, async () => {
        const { versionId } = tacho.prompt(name, 'fallback')
        if (++begun === 2) both.resolve()
        await both.promise
        await resultOf(refund({ name }))
        run.llmCall({ model: name })
        return versionId
      })
    const [one, two] = await Promise.all([use('one'), use('two')])
    assert.notEqual(one, two)
    for (const [name, promptVersionId] of Object.entries({ one, two })) {
      await service.assertEvent('LLM_CALL', { model: name, promptVersionId })
      await service.assertEvent('POLICY_DECISION', { input: { name }, promptVersionId })
      await service.assertEvent('AGENT_STEP', { promptVersionId })
    }
    const issues = (await service.issues()).map(({ promptVersionId }) => promptVersionId)
    assert.deepEqual(issues, [one, two])
    const { promptVersionId } = (await service.assertEvent('POLICY_DECISION', { input: { name: 'one' } })).payload
    assert.equal(promptVersionId, one)
    run.llmCall({ model: 'around' })
    assert.ok(!('promptVersionId' in (await service.assertEvent('LLM_CALL', { model: 'around' })).payload))
  })
})

test('each event of a call has the id of the model, and its end says how it ended: cancelling is no failure', async (t) => {
  const service = fake(t, {
    deployedPolicies: [policy('REQUIRE_APPROVAL', 'tool.input.order == 4.0')],
    approvals: 'approve',
  })
  const stop = new AbortController()
  const tools: Record<string, () => unknown> = {
    returned: () => 'ran',
    failed: () => assert.fail('broken'),
    cancelled: () => Promise.reject(new DOMException('stop', 'AbortError')),
    'cancelled by the caller': () => {
      stop.abort()
      throw new Error('socket closed')
    },
  }
  await service.tacho.run(async () => {
    for (const [at, call] of Object.values(tools).entries()) {
      const given = { name: 'refund', input: { order: at + 4 }, key: `call_${at}`, signal: stop.signal, call }
      await service.tacho.guardedCall(given).catch(() => undefined)
    }
  })
  const events = (await service.events()).filter(({ eventType }) => eventType !== 'SESSION_OUTCOME')
  const of = (type: string) => events.filter(({ eventType }) => eventType === type).map(({ payload }) => payload)
  assert.deepEqual(
    of('TOOL_CALL').map(({ toolCallId, outcome }) => [toolCallId, outcome]),
    Object.keys(tools).map((outcome, at) => [`call_${at}`, outcome.split(' ')[0]]),
  )
  assert.deepEqual(
    of('TOOL_START').map(({ toolCallId }) => toolCallId),
    ['call_0', 'call_1', 'call_2', 'call_3'],
  )
  const [decision] = of('POLICY_DECISION')
  const policyVersions = { 'p-require_approval': '1' }
  assert.partialDeepStrictEqual(decision, { toolCallId: 'call_0', policyVersions })
  const [asked] = await service.approvals()
  assert.partialDeepStrictEqual(asked, { toolCallId: 'call_0', policyVersion: '1', policyVersions })
  const issues = await service.issues()
  assert.deepEqual(
    issues.map(({ detectionType }) => detectionType),
    ['TOOL_FAILED'],
  )
})
