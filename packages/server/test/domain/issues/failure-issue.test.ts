import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  failureGrouping,
  failureTitle,
  kindTitle,
  placeTitle,
  type SeenFailure,
} from '../../../src/domain/issues/failure-issue.ts'
import { qualityOf } from './grouping/quality.ts'
import { recordedFailures } from './grouping/recorded-failures.ts'
import { sentryGroup } from './grouping/sentry-rule.ts'

const NO_ERROR = { type: null, message: null, stack: null, causes: [] }

function failure(change: Partial<SeenFailure>): SeenFailure {
  return { kind: 'TOOL_FAILED', agent: 'shop-1', toolName: null, model: null, error: NO_ERROR, ...change }
}

const titleOf = (change: Partial<SeenFailure>) => failureTitle(failureGrouping(failure(change)).facts, 'shop')
const timeout = { ...NO_ERROR, type: 'TimeoutError', message: 'no answer after 3000 ms' }

test('a title says what failed, where and why', () => {
  assert.equal(titleOf({ toolName: 'get_order', error: timeout }), 'TimeoutError in get_order: no answer after …')
  assert.equal(
    titleOf({ toolName: 'get_order', error: { ...NO_ERROR, type: 'TimeoutError' } }),
    'TimeoutError in get_order',
  )
  assert.equal(
    titleOf({ toolName: 'get_order', error: { ...timeout, type: null } }),
    'get_order failed: no answer after …',
  )
  assert.equal(titleOf({ toolName: 'get_order' }), 'get_order failed')
  const exit = { ...NO_ERROR, type: 'SystemExit', message: '3' }
  assert.equal(titleOf({ kind: 'RUN_FAILED', error: exit }), 'SystemExit')
  const missing = { ...timeout, causes: [{ type: 'KeyError', message: "'status'" }] }
  assert.equal(
    titleOf({ toolName: 'get_order', error: missing }),
    'TimeoutError in get_order: no answer after … (KeyError)',
  )
  assert.equal(
    titleOf({ kind: 'MODEL_FAILED', model: 'gpt-5', error: { ...timeout, type: 'openai.APITimeoutError' } }),
    'APITimeoutError from gpt-5: no answer after …',
  )
  const stack = 'TypeError: x\n    at sum (/app/tools/order.ts:1:1)'
  assert.equal(
    titleOf({ kind: 'RUN_FAILED', error: { type: 'TypeError', message: 'x is undefined', stack, causes: [] } }),
    'TypeError in sum (tools/order.ts): x is undefined',
  )
  const causes = [{ type: 'Error', message: 'connect ECONNREFUSED 10.0.0.1:80' }]
  assert.equal(
    titleOf({ toolName: 'pay', error: { ...NO_ERROR, type: 'TypeError', message: 'fetch failed', causes } }),
    'TypeError in pay: fetch failed (Error: connect ECONNREFUSED …)',
  )
  assert.equal(titleOf({ kind: 'RUN_FAILED' }), 'shop failed without an error')
  assert.equal(titleOf({ kind: 'RUN_STALLED' }), 'shop went silent: no event and no end')
})

test('each fact makes another issue; what varies does not', () => {
  const base = failure({ toolName: 'get_order', error: timeout })
  const same = failure({ toolName: 'get_order', agent: 'other', error: { ...timeout, message: 'no answer after 9 s' } })
  assert.equal(failureGrouping(base).fingerprint, failureGrouping(same).fingerprint)
  const others = [
    { ...base, kind: 'ERROR_RECORDED' as const },
    { ...base, toolName: 'get_orders' },
    { ...base, model: 'gpt-5' },
    { ...base, error: { ...timeout, type: 'Error' } },
    { ...base, error: { ...timeout, message: 'no reply' } },
    { ...base, error: { ...timeout, stack: 'Error\n    at f (/app/a.ts:1:1)' } },
    { ...base, error: { ...timeout, causes: [{ type: 'Error', message: 'x' }] } },
  ]
  const prints = new Set([base, ...others].map((one) => failureGrouping(one).fingerprint))
  assert.equal(prints.size, others.length + 1)
  assert.match([...prints][0] ?? '', /^v3:[0-9a-f]{16}:[0-9a-f]{64}$/)
})

test('a failure has a place, whatever its message and causes are, and a kind', () => {
  const base = failureGrouping(failure({ toolName: 'get_order', error: timeout }))
  const causes = [{ type: 'Error', message: 'x' }]
  const same = failure({ toolName: 'get_order', agent: 'other', error: { ...timeout, message: 'no reply', causes } })
  assert.deepEqual(failureGrouping(same).place, base.place)
  for (const { fingerprint } of [base, base.place]) assert.ok(fingerprint.startsWith(base.family))
  assert.equal(placeTitle(base, 'shop'), 'TimeoutError in get_order: many different messages')
  const elsewhere = [
    failure({ toolName: 'pay', error: timeout }),
    failure({ toolName: 'get_order', error: { ...timeout, type: 'Error' } }),
    failure({ model: 'gpt-5', error: timeout }),
    failure({ error: timeout }),
    failure({ agent: 'other', error: timeout }),
  ].map(failureGrouping)
  assert.equal(new Set([base, ...elsewhere].map(({ family }) => family)).size, 6)
  assert.equal(new Set([base, ...elsewhere].map((one) => one.kind.fingerprint)).size, 1)
  const anywhere = elsewhere.at(-1)
  assert.ok(anywhere)
  assert.equal(placeTitle(anywhere, 'shop'), 'TimeoutError in shop: many different messages')
  const plain = failureGrouping(failure({ kind: 'ERROR_RECORDED', error: { ...NO_ERROR, message: 'x' } }))
  assert.equal(placeTitle(plain, 'shop'), 'Error in shop: many different messages')
  assert.equal(kindTitle('TOOL_FAILED'), 'Many different failures of tools')
})

test('facts and titles are bounded', () => {
  const long = 'x y '.repeat(10_000)
  const causes = [{ type: long, message: long }]
  const { facts } = failureGrouping(
    failure({ toolName: long, model: long, agent: long, error: { type: long, message: long, stack: long, causes } }),
  )
  for (const value of Object.values(facts)) assert.ok(String(value).length <= 200)
  assert.ok(failureTitle(facts, long).length <= 200)
})

test('on 200 failures with known causes: groups, purity and completeness, beside the rule of Sentry', () => {
  const all = recordedFailures()
  assert.equal(all.length, 200)
  assert.equal(new Set(all.map(({ cause }) => cause)).size, 46)
  const quality = (group: (failure: (typeof all)[number]) => string) =>
    qualityOf(all.map((one) => ({ cause: one.cause, group: group(one) })))
  const figures = {
    tacho: quality(({ failure: one }) => failureGrouping(one).fingerprint),
    sentry: quality(sentryGroup),
  }
  assert.deepEqual(figures, {
    tacho: { groups: 49, purity: 0.98, completeness: 0.965 },
    sentry: { groups: 67, purity: 0.87, completeness: 0.835 },
  })
})
