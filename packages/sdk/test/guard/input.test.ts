/** Policies, the hash, approvals, the record and the tool all get the same input of a guarded call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { snapshot } from '../../src/guard/snapshot.ts'
import { fake, policy, resultOf } from './scene.ts'

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
  await service.tacho.run(() => {
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
      results.push(...(await service.tacho.run(async () => [await act('refund'), await act('other')])))
    }
    const isLarge = name.startsWith('more values')
    // Dates are copied although conditions do not read them. Objects are copied after their getters were read.
    const isRead = name !== 'a getter that throws'
    const [code, other] = isLarge
      ? ['policy', false]
      : ['input_not_json', isRead ? name !== 'date' && name !== 'getter' : 'input_not_json']
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
  await service.tacho.run(() => resultOf(refund({ amount: 5n, note: 'hello' })))
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
  await service.tacho.run(async () => {
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
    const got = await service.tacho.run(() =>
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

test('getters are read once: the record has the values that the tool gets', async (t) => {
  const service = fake(t)
  let reads = 0
  const input = {
    order: 7,
    get amount() {
      return ++reads
    },
    more: [
      {
        get note() {
          return `read ${++reads}`
        },
      },
    ],
  }
  const got: unknown[] = []
  const read = (given: object) => void got.push(JSON.parse(JSON.stringify(given)))
  await service.tacho.run(async () => {
    await service.tacho.guard(read, { name: 'refund' })(input)
    await service.tacho.guardedCall({ name: 'refund', input, call: read })
  })
  const calls = (await service.events()).filter(({ eventType }) => eventType === 'TOOL_CALL')
  assert.deepEqual(
    calls.map(({ payload }) => payload['input']),
    got,
  )
  assert.deepEqual([got[0], reads], [{ order: 7, amount: 1, more: [{ note: 'read 2' }] }, 4])
})
