/** One guarded call: what is judged, hashed, shown and recorded is what the tool gets. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { inputHash } from '@tacho/policy/input-hash.ts'
import { snapshot } from '../../src/guard/snapshot.ts'
import { ToolBlockedError, type LocalPolicy } from '../../src/index.ts'
import { fakeTacho, type FakeOptions } from '../../src/testing/fake-tacho.ts'

function policy(action: string, condition = 'tool.name == "refund"', severity = 'HIGH'): LocalPolicy {
  return { policyId: `p-${action.toLowerCase()}`, name: action, version: '1', condition, severity, action }
}

function fake(t: TestContext, options: FakeOptions = {}) {
  const service = fakeTacho({ onDiagnostic: () => undefined, ...options })
  t.after(service.close)
  return service
}

/** The code of the refusal, or what the call returned. */
async function resultOf(act: Promise<unknown>): Promise<unknown> {
  try {
    return await act
  } catch (error) {
    if (error instanceof ToolBlockedError) return error.code
    throw error
  }
}

const typesOf = (events: readonly { eventType: string }[]) => events.map(({ eventType }) => eventType)

test('a tool gets a copy: its changes reach neither the record nor the caller, and those of the caller not the tool', async (t) => {
  const service = fake(t, { approvals: 'approve', deployedPolicies: [policy('REQUIRE_APPROVAL')] })
  const input = { order: { id: '1007', lines: [1, -0] } }
  const got: unknown[] = []
  const refund = service.tacho.guard(
    (given: typeof input) => {
      got.push(structuredClone(given))
      given.order.id = 'changed by the tool'
      return 'done'
    },
    { name: 'refund' },
  )
  await service.tacho.run({}, () => {
    const called = refund(input)
    input.order.id = 'changed by the caller'
    return called
  })
  const judged = { order: { id: '1007', lines: [1, 0] } }
  const hash = inputHash('refund', judged)
  assert.deepEqual(got, [judged])
  assert.equal(input.order.id, 'changed by the caller')
  for (const type of ['POLICY_DECISION', 'TOOL_START', 'TOOL_CALL']) {
    await service.assertEvent(type, { input: judged, inputHash: hash })
  }
  assert.equal((await service.approvals())[0]?.inputHash, hash)
})

test('the start of a call is recorded before its tool runs, in the same span, and counts once', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK', 'run.toolCalls > 1')] })
  const seen: string[][] = []
  const refund = service.tacho.guard(
    async (_: object) => {
      seen.push(typesOf(await service.events()))
      service.tacho.record('AGENT_STEP', 'inside')
    },
    { name: 'refund' },
  )
  await service.tacho.run({}, async () => {
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
  await tacho.run({}, () => Promise.all(ten.map((amount) => resultOf(refund({ amount })))))
  assert.deepEqual(ran, [{ amount: 0 }])

  await tacho.run({}, async (run) => {
    const authorize = (amount: number) => tacho.authorize({ toolName: 'refund', input: { amount } })
    const results = await Promise.all(ten.map((amount) => resultOf(authorize(amount))))
    assert.equal(results.filter((result) => result === 'budget_exceeded').length, 9)
    run.toolCall({ toolName: 'refund', input: { amount: 0 } })
    run.toolCall({ toolName: 'refund', input: { amount: 1 } })
  })
  await service.deployPolicies([policy('WARN', 'run.toolCalls == 2')])
  await tacho.run({}, async (run) => {
    await tacho.authorize({ toolName: 'refund', input: {} })
    run.toolCall({ toolName: 'refund' })
    run.toolCall({ toolName: 'other' })
    assert.equal((await tacho.decide({ toolName: 'refund' })).policyIds[0], 'p-warn')
  })
})

test('a budget binds calls whose input cannot be read', async (t) => {
  const service = fake(t, { guard: { budget: { toolCalls: 1, action: 'BLOCK' } } })
  const refund = service.tacho.guard((_: object) => 'ran', { name: 'refund' })
  const results = await service.tacho.run({}, async () => [
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
  const error = await service.tacho.run({}, () => refund({ amount: 1 }).catch((thrown: unknown) => thrown))
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
  const results = await service.tacho.run({}, () =>
    Promise.all([1, 2, 3].map((amount) => resultOf(refund({ amount })))),
  )
  assert.deepEqual(results.map(String).toSorted(), ['budget_exceeded', 'budget_exceeded', 'ran'])
})

class Account {
  amount = 500
}
const cyclic: { self?: unknown } = {}
cyclic.self = cyclic
const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])

class Rootless {
  get amount() {
    return 500
  }
}
Object.setPrototypeOf(Rootless.prototype, null)

const UNREADABLE: Record<string, unknown> = {
  date: { amount: new Date(0) },
  map: { amount: new Map([[1, 500]]) },
  class: new Account(),
  bigint: { amount: 500n },
  NaN: { amount: NaN },
  infinity: { amount: Infinity },
  hole: { amount: [, 500] }, // oxlint-disable-line no-sparse-arrays
  'undefined in a list': { amount: [undefined] },
  getter: {
    get amount() {
      return 500
    },
  },
  'prototype with fields': Object.create(Object.assign(Object.create(null), { amount: 500 })),
  'class without Object': Object.create(Rootless.prototype),
  toJSON: { amount: 1, toJSON: () => ({ amount: 500 }) },
  'a getter that throws': Object.defineProperty({}, 'amount', {
    enumerable: true,
    get: () => assert.fail('it was read'),
  }),
  'half a surrogate pair': { amount: '\ud800' },
  function: { amount: () => 500 },
  cycle: cyclic,
  'too deep': { amount: deep(200) },
  'too many values': { amount: Array(65_537).fill(1) },
  'too long': { amount: 'a'.repeat(16_777_217) },
  'more values than a condition reads': { amount: Array(10_000).fill(1) },
}

for (const [name, input] of Object.entries(UNREADABLE)) {
  test(`an input that cannot be read (${name}) is blocked at every severity by a policy that reads it`, async (t) => {
    const service = fake(t)
    const results: unknown[] = []
    for (const severity of ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL']) {
      const reads = 'tool.name == "refund" && has(tool.input.amount) && tool.input.amount == 500.0'
      await service.deployPolicies([policy('BLOCK', reads, severity)])
      const act = (toolName: string) =>
        resultOf(service.tacho.guardedCall({ name: toolName, input, call: (given) => given === input }))
      results.push(...(await service.tacho.run({}, async () => [await act('refund'), await act('other')])))
    }
    const isLarge = name.startsWith('more values')
    // A Date is copied, although conditions do not read it.
    const isRead = name !== 'a getter that throws'
    const [code, other] = isLarge ? ['policy', false] : ['input_not_json', isRead ? name !== 'date' : 'input_not_json']
    assert.deepEqual(results, [code, other, code, other, code, other, code, other])
  })
}

test('an object that answers differently each time is read once: the tool gets the copy', async (t) => {
  for (const failures of [0, 1, 2]) {
    const service = fake(t, { deployedPolicies: [policy('BLOCK', 'tool.input.amount > 100.0', 'LOW')] })
    let reads = 0
    const input = new Proxy({ amount: 1 } as { amount: number }, {
      ownKeys(target) {
        if (reads++ < failures) throw new Error('busy')
        return Reflect.ownKeys(target)
      },
      get: () => 500,
    })
    const got: unknown[] = []
    const call = (given: { amount: number }) => got.push(given.amount)
    const result = await resultOf(service.tacho.guardedCall({ name: 'refund', input, call }))
    assert.deepEqual([result, got], failures < 2 ? [1, [1]] : ['input_not_json', []])
  }
})

test('without a hash, arguments that change after the decision stop the tool', async (t) => {
  const service = fake(t)
  let amount = 1
  const act = service.tacho.guard((_: object) => 'ran', { name: 'half \ud800', input: () => ({ amount: amount++ }) })
  assert.equal(await resultOf(act({})), 'input_changed')
})

test('what JSON cannot hold is compared too, at every place', () => {
  const list = Object.assign([1, , 3], { note: 'a' }) // oxlint-disable-line no-sparse-arrays
  const held = {
    map: new Map([['amount', { value: 1 }]]),
    set: new Set([1]),
    date: new Date(0),
    list,
    text: '1',
    zero: 0,
  }
  const before = snapshot(held)
  assert.equal(snapshot(held), before)
  const changes: [change: () => void, back: () => void][] = [
    [() => void (held.map.get('amount')!.value = 2), () => void (held.map.get('amount')!.value = 1)],
    [() => void held.set.add(2), () => void held.set.delete(2)],
    [() => void held.date.setTime(1), () => void held.date.setTime(0)],
    [() => void (list.note = 'b'), () => void (list.note = 'a')],
    [() => void (list[1] = 2), () => Reflect.deleteProperty(list, 1)],
    [() => void (list[2] = 4), () => void (list[2] = 3)],
    [() => void list.push(4), () => void list.pop()],
    [() => void Object.assign(held, { text: 1 }), () => void Object.assign(held, { text: '1' })],
    [() => void (held.zero = -0), () => void (held.zero = 0)],
  ]
  for (const [change, back] of changes) {
    change()
    assert.notEqual(snapshot(held), before, String(change))
    back()
    assert.equal(snapshot(held), before, String(back))
  }
})

test('an input that cannot be read is recorded as far as possible, with the problem', async (t) => {
  const service = fake(t, { deployedPolicies: [policy('BLOCK', 'tool.input.amount == 1.0', 'LOW')] })
  const refund = service.tacho.guard((_: object) => 'ran', { name: 'refund' })
  await service.tacho.run({}, () => resultOf(refund({ amount: 5n, note: 'hello' })))
  const { payload } = await service.assertEvent('POLICY_DECISION', { action: 'BLOCK' })
  assert.deepEqual([payload['input'], payload['inputProblem']], [{ amount: '5', note: 'hello' }, 'holds a bigint'])
})

test('with hasDates, a Date is judged and recorded as its text, and the tool gets a new Date made of it', async (t) => {
  const service = fake(t, {
    approvals: 'approve',
    deployedPolicies: [policy('REQUIRE_APPROVAL', 'timestamp(tool.input.days[1]) > timestamp("2026-06-01T00:00:00Z")')],
  })
  const days = [new Date('2026-01-01'), new Date('2026-11-23T10:00:00.123Z')]
  const got: unknown[] = []
  await service.tacho.run({}, async () => {
    const call = service.tacho.guardedCall({
      name: 'refund',
      input: { days },
      hasDates: true,
      call: (input) => got.push(input),
    })
    days[1]?.setFullYear(1999)
    await call
  })
  const texts = ['2026-01-01T00:00:00.000Z', '2026-11-23T10:00:00.123Z']
  assert.deepEqual(got, [{ days: texts.map((text) => new Date(text)) }])
  await service.assertEvent('TOOL_CALL', { input: { days: texts }, inputHash: inputHash('refund', { days: texts }) })
  const invalid = service.tacho.guardedCall({
    name: 'refund',
    input: { days: [new Date(NaN)] },
    hasDates: true,
    call: () => assert.fail('the tool ran'),
  })
  assert.equal(await resultOf(invalid), 'input_not_json')
})

test('a text, a number, a list and nothing are judged under a name, and the tool gets them as they are', async (t) => {
  const service = fake(t)
  for (const [input, judged] of [
    ['{"amount":500}', { input: '{"amount":500}' }],
    [5, { input: 5 }],
    [[1], { input: [1] }],
    [undefined, {}],
    [null, {}],
  ] as const) {
    const got = await service.tacho.run({}, () =>
      service.tacho.guardedCall({ name: 'text', input: input as unknown, call: (given) => ({ given }) }),
    )
    assert.deepEqual(got, { given: input })
    await service.assertEvent('TOOL_CALL', { input: judged, inputHash: inputHash('text', judged) })
  }
})

test('a key named __proto__ is a key, for the policy, the record and the tool', async (t) => {
  const service = fake(t, {
    deployedPolicies: [policy('BLOCK', '"__proto__" in tool.input && tool.input.amount > 1.0')],
  })
  const input = JSON.parse('{"__proto__":{"amount":500},"amount":1}') as { amount: number }
  const got = await service.tacho.guardedCall({ name: 'refund', input, call: (given) => given })
  assert.deepEqual([Object.keys(got), got.amount], [['__proto__', 'amount'], 1])
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
      const caught = await service.tacho.run({}, () => tool()).catch((error: unknown) => [error])
      assert.ok(Object.is(caught[0], thrown))
    }
    const calls = (await service.events()).filter(({ eventType }) => eventType === 'TOOL_CALL')
    const errors = calls.map(({ payload }) => payload['error'])
    assert.deepEqual(
      errors,
      capture === 'full' ? ['unreadable error', 'unreadable error'] : ['[left out]', 'unreadable error'],
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
      service.tacho.record('AGENT_STEP', 'inside')
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
  await service.tacho.run({}, async () => {
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
  const results = await service.tacho.run({}, async () => [await call(1), await call(1), await call(2)])
  assert.deepEqual(results, Array(3).fill('approval_rejected'))
  assert.equal((await service.approvals()).length, 2)
  await service.tacho.run({}, () => call(1))
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
  await tacho.run({}, async (run) => {
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
