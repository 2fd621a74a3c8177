import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addExactly, meanOf, type ExactSum } from '../../../src/storage/runs/scores.ts'

const NUMBERS = fc.double({ noNaN: true, noDefaultInfinity: true })
/** Numbers that often cancel each other, or whose sum is halfway between two doubles. */
const CLOSE = fc.tuple(fc.integer({ min: -4, max: 4 }), fc.integer({ min: -60, max: 60 })).map(([m, e]) => m * 2 ** e)
const LISTS = fc.oneof(fc.array(NUMBERS, { maxLength: 30 }), fc.array(CLOSE, { maxLength: 60 }))

const sumOf = (numbers: readonly number[]): ExactSum => numbers.reduce<ExactSum>(addExactly, [])

/** Sums are whole multiples of 2^-1074, the smallest double. */
const DIGITS = 1_074n
function exactly(number: number): bigint {
  const bits = new BigUint64Array(new Float64Array([number]).buffer)[0] ?? 0n
  const exponent = (bits >> 52n) & 0x7ffn
  const mantissa = (bits & 0xfffffffffffffn) | (exponent === 0n ? 0n : 1n << 52n)
  return (bits >> 63n === 1n ? -mantissa : mantissa) << (exponent === 0n ? 0n : exponent - 1n)
}
/** The nearest double, rounded as ECMAScript rounds a BigInt. */
function nearest(sum: bigint): number {
  const [size, sign] = sum < 0n ? [-sum, -1] : [sum, 1]
  const shift = BigInt(Math.max(0, size.toString(2).length - 1_000))
  // If any bit that is cut off is set, set the lowest bit: rounding needs no more of them.
  const kept = (size >> shift) | (size & ((1n << shift) - 1n) ? 1n : 0n)
  return sign * Number(kept) * 2 ** Number(shift - DIGITS / 2n) * 2 ** Number(-DIGITS / 2n)
}

test('a sum is rounded once, whatever its numbers and their order', () => {
  fc.assert(
    fc.property(LISTS, (numbers) => {
      const sum = numbers.reduce((total, number) => total + exactly(number), 0n)
      // Skip numbers that lose digits by scaling, and sums that are too large for a double.
      fc.pre(
        numbers.every((number) => number === 0 || Math.abs(number) > 2 ** -960) && Math.abs(nearest(sum)) < 2 ** 1_000,
      )
      fc.pre(sum === 0n || Math.abs(nearest(sum)) > 2 ** -960)
      assert.equal(meanOf(sumOf(numbers), 1) + 0, nearest(sum) + 0)
      assert.equal(meanOf(sumOf(numbers.toReversed()), 1) + 0, nearest(sum) + 0)
    }),
    { numRuns: 2_000 },
  )
})

test('a number that is taken away leaves nothing', () => {
  fc.assert(
    fc.property(LISTS, LISTS, (kept, taken) => {
      const sum = [...taken, ...kept].reduce<ExactSum>(addExactly, [])
      const left = taken.reduce<ExactSum>((rest, number) => addExactly(rest, -number), sum)
      assert.equal(meanOf(left, 3) + 0, meanOf(sumOf(kept), 3) + 0)
      assert.deepEqual(JSON.parse(JSON.stringify(left)), left)
    }),
    { numRuns: 2_000 },
  )
})

test('a thousand of the largest numbers have a mean', () => {
  const most = Number.MAX_VALUE
  assert.equal(meanOf(sumOf(Array.from({ length: 1_000 }, () => most)), 1_000), most)
  assert.equal(meanOf([], 1), 0)
  assert.equal(meanOf(sumOf([0.1, 0.2, 0.3]), 3), 0.6 / 3)
})
