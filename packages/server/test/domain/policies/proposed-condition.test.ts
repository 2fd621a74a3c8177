import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proposedCondition, type DecidedCall } from '../../../src/domain/policies/proposed-condition.ts'

const call = (isRejected: boolean, input: DecidedCall['input'], given: Partial<DecidedCall> = {}): DecidedCall => {
  return { toolName: 'pay', isRejected, input, sealed: [], ...given }
}
const approved = (input: DecidedCall['input'], given: Partial<DecidedCall> = {}) => call(false, input, given)
const rejected = (input: DecidedCall['input'], given: Partial<DecidedCall> = {}) => call(true, input, given)
const askedOf = (calls: readonly DecidedCall[], asks: readonly boolean[] = []) =>
  calls.flatMap(({ isRejected }, at) => (!isRejected && asks[at] ? [at] : []))

test('a limit of a number, round, between what was approved and what was rejected', async () => {
  const calls = [10, 80, 230, 412].map((amount) => approved({ amount }))
  calls.push(rejected({ amount: 987 }), rejected({ amount: 5_000 }))
  const found = await proposedCondition(calls)
  assert.equal(found?.addition, 'has(tool.input.amount) && tool.input.amount >= 900')
  assert.deepEqual(askedOf(calls, found.asks), [])
  // Without the rejection of 987, the proposed limit is above 987 and misses it: two rejections are too few.
  assert.deepEqual(found.leftOut, { calls: 2, kept: 1 })
  const below = await proposedCondition([
    ...[-5, -20].map((n) => rejected({ n })),
    ...[3, 9].map((n) => approved({ n })),
  ])
  assert.equal(below?.addition, 'has(tool.input.n) && tool.input.n <= 0')
})

test('lists of texts: first what was never approved, and names of tools', async () => {
  const calls = ['ada', 'ben', 'ada'].map((to) => approved({ order: { to } }))
  calls.push(rejected({ order: { to: 'mallory' } }), rejected({ order: { to: 'eve' } }))
  const found = await proposedCondition(calls)
  assert.equal(
    found?.addition,
    'has(tool.input.order) && has(tool.input.order.to) && !(tool.input.order.to in ["ada", "ben"])',
  )
  assert.deepEqual(found.leftOut, { calls: 2, kept: 2 })
  const tools = [approved({}), approved({}, { toolName: 'read' }), rejected({}, { toolName: 'drop' })]
  assert.equal((await proposedCondition(tools))?.addition, '!(tool.name in ["pay", "read"])')
})

test('a rejected call that was asked again is left out with the first one', async () => {
  const twice = [987, 987, 5_000, 5_000].map((amount) => rejected({ amount }))
  const found = await proposedCondition([...[10, 80, 230, 412].map((amount) => approved({ amount })), ...twice])
  assert.deepEqual([found?.leftOut, found?.differentRejected], [{ calls: 2, kept: 1 }, 2])
})

test('two together only if that asks about fewer', async () => {
  const calls = [
    approved({ amount: 900, to: 'ada' }),
    approved({ amount: 10, to: 'eve' }),
    approved({ amount: 10, to: 'ada' }),
    rejected({ amount: 900, to: 'eve' }),
  ]
  const found = await proposedCondition(calls)
  assert.match(found?.addition ?? '', /tool\.input\.amount >= \d+ && has\(tool\.input\.to\) && /)
  assert.deepEqual(askedOf(calls, found?.asks), [])
})

test('what is not known counts as asked, and never as kept', async () => {
  const known = [approved({ amount: 5 }), rejected({ amount: 50 })]
  const others = [approved(null), approved({ amount: '[masked]' }, { sealed: ['/amount'] }), approved({ amount: 'x' })]
  const found = await proposedCondition([...known, ...others])
  assert.deepEqual(found?.asks, [false, true, true, true, true])
  assert.equal(await proposedCondition([approved({ amount: 5 }), rejected({ amount: 50 }), rejected(null)]), null)
  assert.equal(await proposedCondition([...known, rejected({ amount: 60 }, { sealed: ['/amount'] })]), null)
  // No condition separates calls with equal inputs.
  assert.equal(await proposedCondition([approved({ amount: 50 }), rejected({ amount: 50 })]), null)
})

test('names that a condition cannot write, and texts with quotes', async () => {
  const odd = [approved({ 'a-b': 1, in: 1, to: 'x' }), rejected({ 'a-b': 9, in: 9, to: 'say "hi"\n\\' })]
  const found = await proposedCondition(odd)
  assert.equal(found?.addition, 'has(tool.input.to) && !(tool.input.to in ["x"])')
  const quoted = [approved({ to: 'say "hi"\n\\' }), rejected({ to: 'x' })]
  assert.deepEqual((await proposedCondition(quoted))?.asks, [false, true])
})

test('10,000 decisions take seconds at most, and every rejection is kept, whatever the calls are', async () => {
  const wide = Array.from({ length: 10_000 }, (_, at) => {
    const input = Object.fromEntries(Array.from({ length: 60 }, (__, field) => [`n${field}`, (at * (field + 7)) % 991]))
    return call(at % 100 === 0, input)
  })
  const begun = performance.now()
  await proposedCondition(wide)
  assert.ok(performance.now() - begun < 60_000)
  let seed = 7
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  for (const size of [10_000, ...Array.from({ length: 30 }, () => 1 + random(60))]) {
    const calls = Array.from({ length: size }, () => {
      const fields = Array.from({ length: 12 }, (_, at) => [`f${at}`, at % 2 === 0 ? random(1_000) : `t${random(30)}`])
      const input = Object.fromEntries(fields.filter(() => random(20) > 0)) as Record<string, unknown>
      return call(random(40) === 0 || Number(input['f0']) > 950, input, { toolName: `tool${random(3)}` })
    })
    const started = performance.now()
    const found = await proposedCondition(calls)
    if (found) for (const [at, one] of calls.entries()) assert.ok(!one.isRejected || found.asks[at])
    assert.ok(performance.now() - started < 30_000)
  }
})
