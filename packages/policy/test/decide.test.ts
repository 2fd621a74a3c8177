import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compiled } from '../src/compiled.ts'
import { ACTIONS, decide, type Policy, SEVERITIES } from '../src/decide.ts'
import { POLICY_LIMITS } from '../src/limits.ts'

const facts = { tool: { name: 'refund', input: { amount: 1500 } }, now: 0 }
const MATCHING = 'tool.name == "refund"'
const OTHER = 'tool.name == "other"'
const FAILING = 'tool.input.missing == 1'
const BROKEN = 'tool.name =='

let count = 0
function policy(condition: string, action: string, severity = 'LOW'): Policy {
  return { policyId: `policy-${++count}`, name: 'a policy', version: '1', condition, action, severity }
}

test('the strictest match wins: BLOCK, REQUIRE_APPROVAL, WARN, ALLOW', () => {
  assert.deepEqual(ACTIONS, ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK'])
  for (const [index, action] of ACTIONS.entries()) {
    const laxer = ACTIONS.slice(0, index + 1).map((one) => policy(MATCHING, one))
    const { action: decided, matched, failures } = decide([...laxer, policy(OTHER, 'BLOCK')], facts)
    assert.equal(decided, action)
    assert.deepEqual(
      matched.map(({ effect }) => effect),
      ACTIONS.slice(0, index + 1).toReversed(),
    )
    assert.deepEqual(failures, [])
  }
})

test('without a match the action is ALLOW', () => {
  assert.deepEqual(decide([], facts), { action: 'ALLOW', matched: [], failures: [] })
  assert.deepEqual(decide([policy(OTHER, 'BLOCK', 'CRITICAL')], facts), { action: 'ALLOW', matched: [], failures: [] })
})

test('a failing condition counts as matched if CRITICAL or HIGH, as not matched if MEDIUM or LOW, and is listed', () => {
  for (const condition of [FAILING, BROKEN, '', 'tool.newThing == "x"']) {
    for (const severity of SEVERITIES) {
      const closes = severity === 'CRITICAL' || severity === 'HIGH'
      const failing = policy(condition, 'REQUIRE_APPROVAL', severity)
      const { action, matched, failures } = decide([failing], facts)
      assert.equal(action, closes ? 'REQUIRE_APPROVAL' : 'ALLOW')
      assert.equal(matched.length, closes ? 1 : 0)
      assert.ok(matched.every(({ failed }) => failed))
      assert.equal(failures.length, 1)
      assert.equal(failures[0]?.policyId, failing.policyId)
      assert.equal(failures[0]?.countedAsMatched, closes)
      assert.match(failures[0]?.message ?? '', /^line 1, column \d+: ./)
    }
  }
})

test('onError says what a failing condition counts as, whatever the severity', () => {
  for (const condition of [FAILING, BROKEN, 'tool.newThing == "x"']) {
    for (const severity of [...SEVERITIES, 'SEVERE']) {
      for (const [onError, action] of [
        ['act', 'BLOCK'],
        ['ignore', 'ALLOW'],
        ['later', 'BLOCK'],
        ['', 'BLOCK'],
        [null, decide([policy(condition, 'BLOCK', severity)], facts).action],
        [undefined, decide([policy(condition, 'BLOCK', severity)], facts).action],
      ] as const) {
        const decision = decide([{ ...policy(condition, 'BLOCK', severity), onError }], facts)
        assert.equal(decision.action, action, `${severity} ${String(onError)}`)
        assert.equal(decision.failures[0]?.countedAsMatched, action === 'BLOCK')
      }
    }
  }
  const misspelled = 'tool.input.amout > 500.0'
  assert.equal(decide([{ ...policy(misspelled, 'BLOCK', 'MEDIUM'), onError: 'act' }], facts).action, 'BLOCK')
  assert.equal(decide([{ ...policy(OTHER, 'BLOCK', 'HIGH'), onError: 'act' }], facts).action, 'ALLOW')
  assert.equal(decide([{ ...policy(MATCHING, 'BLOCK', 'LOW'), onError: 'ignore' }], facts).action, 'BLOCK')
})

test('a match by failure says why, without its place in the condition', () => {
  const { matched } = decide([{ ...policy('true &&\n tool.input.amout > 5.0', 'BLOCK'), onError: 'act' }], facts)
  assert.equal(matched[0]?.failure, 'missing key "amout"')
  assert.ok(!('failure' in (decide([policy(MATCHING, 'BLOCK')], facts).matched[0] ?? {})))
})

test('unknown values fail closed: unknown actions block, unknown severities are CRITICAL', () => {
  for (const action of ['QUARANTINE', 'block', '', 'toString', 'constructor', '__proto__']) {
    const { action: decided, matched } = decide([policy(MATCHING, action)], facts)
    assert.equal(decided, 'BLOCK')
    assert.equal(matched[0]?.action, action)
    assert.equal(matched[0]?.effect, 'BLOCK')
    assert.equal(decide([policy(OTHER, action)], facts).action, 'ALLOW')
  }
  for (const severity of ['SEVERE', 'low', '', 'constructor', '__proto__']) {
    assert.equal(decide([policy(FAILING, 'WARN', severity)], facts).action, 'WARN')
    assert.equal(decide([policy(OTHER, 'WARN', severity)], facts).action, 'ALLOW')
  }
})

test('a match names its policy', () => {
  const one = { ...policy(MATCHING, 'BLOCK', 'HIGH'), description: 'not repeated' }
  const { policyId, name, version } = one
  const expected = { policyId, name, version, severity: 'HIGH', action: 'BLOCK', effect: 'BLOCK', failed: false }
  assert.deepEqual(decide([one], facts).matched, [expected])
})

const policies = fc.array(
  fc.record({
    policyId: fc.constantFrom('a', 'b', 'c', 'd'),
    name: fc.constantFrom('m', 'n'),
    version: fc.constantFrom('1', '2', '10'),
    condition: fc.constantFrom(MATCHING, OTHER, FAILING, BROKEN),
    severity: fc.constantFrom(...SEVERITIES, 'SEVERE'),
    action: fc.constantFrom(...ACTIONS, 'QUARANTINE'),
    onError: fc.constantFrom(undefined, 'act', 'ignore', 'later'),
  }),
  { maxLength: 8 },
)

test('the order of policies does not matter', () => {
  fc.assert(
    fc.property(
      policies.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
      ([all, shuffled]) => {
        const [one, other] = [decide(all, facts), decide(shuffled, facts)]
        assert.equal(one.action, other.action)
        const strictness = (decision: typeof one) =>
          decision.matched.map(({ effect, policyId, version, name }) => [effect, policyId, version, name])
        assert.deepEqual(strictness(one), strictness(other))
        assert.deepEqual(
          one.failures.map(({ policyId, version, name }) => [policyId, version, name]),
          other.failures.map(({ policyId, version, name }) => [policyId, version, name]),
        )
      },
    ),
  )
})

test('an additional policy never makes a decision less strict', () => {
  fc.assert(
    fc.property(policies, policies, (some, more) => {
      const [before, after] = [decide(some, facts), decide([...some, ...more], facts)]
      assert.ok(ACTIONS.indexOf(after.action) >= ACTIONS.indexOf(before.action))
      assert.ok(after.matched.length >= before.matched.length && after.failures.length >= before.failures.length)
    }),
  )
})

test('a condition is compiled once, until the cache is full', () => {
  const source = 'tool.name == "remembered"'
  const first = compiled(source)
  assert.equal(compiled(source), first)
  for (let i = 0; i < POLICY_LIMITS.cachedConditions - 1; i++) compiled(`${i} > 1`)
  assert.equal(compiled(source), first)
  compiled('1 > 1000000')
  assert.notEqual(compiled(source), first)
})

test('more conditions than the cache holds are decided correctly', () => {
  const many = Array.from({ length: POLICY_LIMITS.cachedConditions + 5 }, (_, i) =>
    policy(`tool.input.amount > ${i}.0`, 'WARN'),
  )
  for (let round = 0; round < 2; round++) {
    const { action, matched } = decide(many, facts)
    assert.equal(action, 'WARN')
    assert.equal(matched.length, many.length)
  }
})

for (const severity of ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL']) {
  const decided = (condition: string, input: unknown) =>
    decide([{ policyId: 'p', name: 'p', version: '1', condition, severity, action: 'BLOCK', onError: 'ignore' }], {
      ...facts,
      tool: { name: 'refund', input: input as Record<string, unknown> },
    }).action

  test(`an input that cannot be read, or that uses up all steps, is blocked by a ${severity} policy that reads it`, () => {
    const large = { list: Array(POLICY_LIMITS.inputValues).fill(1) }
    for (const input of [large, { at: new Date() }]) {
      assert.equal(decided('tool.name == "refund" && has(tool.input.amount)', input), 'BLOCK')
      assert.equal(decided('tool.name == "other" && has(tool.input.amount)', input), 'ALLOW')
    }
    const padded = { list: Array(POLICY_LIMITS.inputValues - 2).fill(1) }
    assert.equal(decided('tool.input.list.exists(a, tool.input.list.exists(b, a + b > 9.0))', padded), 'BLOCK')
  })
}
