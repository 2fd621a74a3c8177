import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { bucketOf, IN_SKETCH, latencyAt } from '../../../src/storage/runs/usage.ts'

const latency = fc.double({ min: 0.001, max: LIMITS.latencyMs, noNaN: true })
const offBy = (shown: number, exact: number): number => Math.abs(shown / exact - 1)

test('a bucket shows each of its latencies with an error of at most 0.9 %, and keeps their order', () => {
  fc.assert(
    fc.property(latency, latency, (one, other) => {
      assert.ok(offBy(latencyAt(bucketOf(one)), one) <= 0.009 + 1e-9, String(one))
      if (one < other) assert.ok(bucketOf(one) <= bucketOf(other))
    }),
    { numRuns: 2_000 },
  )
  assert.equal(latencyAt(bucketOf(0)), 0)
})

test('a percentile of the buckets of any parts, added up, is as close to the exact one', () => {
  const part = fc.array(latency, { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 100 }), (parts, percent) => {
      const at = (of: readonly number[]) => of.toSorted((a, b) => a - b)[Math.ceil((of.length * percent) / 100) - 1]!
      const all = parts.flat()
      assert.ok(offBy(latencyAt(at(all.map(bucketOf))), at(all)) <= 0.009 + 1e-9)
    }),
  )
})

test('a bucket of an earlier version counts where its middle is', () => {
  const db = new Database(':memory:')
  const sketched = db.prepare<[number], number>(`SELECT ${IN_SKETCH} FROM (SELECT ? AS bucket)`).pluck()
  assert.equal(latencyAt(sketched.get(0)!), 0)
  for (let bucket = 1; bucket < 110; bucket++) {
    assert.ok(offBy(latencyAt(sketched.get(bucket)!), 2 ** ((bucket - 0.5) / 4)) <= 0.0095, String(bucket))
  }
  assert.equal(sketched.get(bucketOf(42)), bucketOf(42))
})
