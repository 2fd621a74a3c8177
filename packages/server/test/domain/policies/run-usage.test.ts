import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { runUsages } from '../../../src/domain/policies/recorded-call.ts'

const step = fc.record({
  time: fc.nat(5),
  isModelCall: fc.boolean(),
  tokens: fc.nat(1000),
  cost: fc.nat(1000),
})

test('the usage of a run before a position is the sum of everything earlier, in any batching', () => {
  const property = fc.property(
    fc.array(step, { maxLength: 20 }),
    fc.array(fc.nat(20), { maxLength: 5 }),
    (given, cuts) => {
      const steps = given
        .map(({ time, isModelCall, tokens, cost }, seq) => ({
          time,
          seq,
          tokens,
          cost,
          payload: isModelCall ? JSON.stringify({ cost: cost / 1000, usage: { totalTokens: tokens } }) : null,
        }))
        .toSorted((a, b) => a.time - b.time || a.seq - b.seq)
      const usages = runUsages()
      const places = [...new Set([...cuts, steps.length])].filter((cut) => cut <= steps.length).sort((a, b) => a - b)
      let handed = 0
      for (const cut of places) {
        usages.add('run', steps.slice(handed, cut))
        handed = cut
        // The position after the last given step, or the first position.
        const last = steps[cut - 1]
        const place = last ? { time: last.time, seq: last.seq + 1 } : { time: 0, seq: 0 }
        const before = steps.slice(0, cut)
        const models = before.filter(({ payload }) => payload !== null)
        assert.deepEqual(usages.before('run', place), {
          cost: models.reduce((sum, { cost }) => sum + cost, 0) / 1000,
          totalTokens: models.reduce((sum, { tokens }) => sum + tokens, 0),
          toolCalls: before.length - models.length,
        })
      }
    },
  )
  fc.assert(property)
})

test('a step at the position or after it does not count as before it', () => {
  const usages = runUsages()
  const call = (time: number, seq: number) => ({ time, seq, payload: null })
  usages.add('run', [call(1, 5), call(2, 1), call(2, 2), call(3, 0)])
  assert.equal(usages.before('run', { time: 1, seq: 5 }).toolCalls, 0)
  assert.equal(usages.before('run', { time: 2, seq: 2 }).toolCalls, 2)
  assert.equal(usages.before('another', { time: 9, seq: 9 }).toolCalls, 0)
  usages.forget(['run'])
  assert.equal(usages.before('run', { time: 9, seq: 9 }).toolCalls, 0)
})
