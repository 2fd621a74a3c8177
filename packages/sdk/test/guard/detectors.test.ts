import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createBudgetDetector, createLoopDetector, type Detection } from '../../src/guard/detectors.ts'
import { combineVerdict } from '../../src/guard/verdict.ts'
import type { Decision } from '../../src/policies.ts'

test('a loop is the configured number of calls with the same tool and input in the window', () => {
  const call = fc.record({ tool: fc.constantFrom('a', 'b'), hash: fc.constantFrom('1', '2', '3') })
  fc.assert(
    fc.property(
      fc.array(call, { maxLength: 40 }),
      fc.integer({ min: 2, max: 4 }),
      fc.integer({ min: 4, max: 8 }),
      (calls, times, window) => {
        const detector = createLoopDetector({ calls: times, window, action: 'BLOCK' })
        calls.forEach(({ tool, hash }, at) => {
          const recent = calls.slice(Math.max(0, at + 1 - window), at + 1)
          const same = recent.filter((each) => each.tool === tool && each.hash === hash).length
          assert.equal(detector.observe(tool, hash) !== null, same >= times)
        })
      },
    ),
  )
})

test('a loop needs at least two calls, and is new only once', () => {
  const detector = createLoopDetector({ calls: 0 })
  assert.equal(detector.observe('a', '1'), null)
  assert.equal(detector.observe('a', '1')?.isNew, true)
  assert.equal(detector.observe('a', '1')?.isNew, false)
})

test('each budget allows its limit and not more, including this call', () => {
  const unused = { toolCalls: 0, totalTokens: 0, cost: 0, seconds: 0 }
  for (const [name, within, beyond] of [
    ['toolCalls', 9, 10],
    ['totalTokens', 10, 11],
    ['cost', 10, 10.01],
    ['seconds', 10, 10.001],
  ] as const) {
    const detector = createBudgetDetector({ [name]: 10, action: 'BLOCK' })
    assert.equal(detector.check({ ...unused, [name]: within }), null, name)
    const found = detector.check({ ...unused, [name]: beyond })
    assert.deepEqual([found?.reasonCode, found?.isNew], [name, true])
    assert.equal(detector.check({ ...unused, [name]: beyond })?.isNew, false)
  }
})

const ACTIONS = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK'] as const

test('the strictest policy or detector decides, and a tool that requires policies does not run without them', () => {
  const detection = fc.record({
    type: fc.constantFrom('LOOP_DETECTED' as const, 'BUDGET_EXCEEDED' as const),
    action: fc.constantFrom('WARN' as const, 'REQUIRE_APPROVAL' as const, 'BLOCK' as const),
  })
  fc.assert(
    fc.property(fc.constantFrom(...ACTIONS), fc.array(detection), fc.boolean(), (action, found, isConfigured) => {
      const match = { policyId: 'p', name: 'n', version: '1', severity: 'HIGH', action, effect: action, failed: false }
      const decision: Decision = { action, matched: action === 'ALLOW' ? [] : [match], failures: [] }
      const detections = found.map((each): Detection => ({ ...each, reasonCode: 'r', message: 'm', isNew: true }))
      const verdict = combineVerdict(decision, detections, isConfigured)
      const strictest = Math.max(...[action, ...found.map((each) => each.action)].map((each) => ACTIONS.indexOf(each)))
      assert.equal(verdict.action, isConfigured ? ACTIONS[strictest] : 'BLOCK')
      assert.equal(verdict.cause === null, verdict.action === 'ALLOW')
    }),
  )
})
