import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { anyCharacter } from '../../../contract/test/any-character.ts'
import { fitPayload } from '../../src/record/transcript/shortened-payload.ts'

/** A payload whose JSON has exactly this many bytes. */
function payloadOf(bytes: number): Record<string, unknown> {
  return { text: 'x'.repeat(bytes - '{"text":""}'.length) }
}

test('a payload of 256 KiB is unchanged, and one byte more is shortened and marked', () => {
  const fitting = payloadOf(LIMITS.payloadBytes)
  assert.deepEqual(fitPayload(fitting), { payload: fitting, shortened: false })
  const { payload, shortened } = fitPayload(payloadOf(LIMITS.payloadBytes + 1))
  assert.ok(shortened && size(payload) <= LIMITS.payloadBytes)
  assert.deepEqual(payload['shortened'], { originalBytes: LIMITS.payloadBytes + 1 })
  assert.match(String(payload['text']), /^x+… \[\d+ more characters\]$/)
})

test('small values stay complete beside shortened ones', () => {
  const usage = { promptTokens: 12 }
  const { payload } = fitPayload({ usage, status: 'FAILED', output: { content: 'é'.repeat(400_000) } })
  assert.deepEqual(payload['usage'], usage)
  assert.equal(payload['status'], 'FAILED')
})

test('a payload of 200 levels is kept, and a deeper one is cut', () => {
  const nested = (levels: number): Record<string, unknown> => {
    let value: Record<string, unknown> = {}
    for (let level = 1; level < levels; level++) value = { inner: value }
    return value
  }
  assert.equal(fitPayload(nested(LIMITS.payloadDepthLevels)).shortened, false)
  assert.equal(fitPayload(nested(LIMITS.payloadDepthLevels + 1)).shortened, true)
  // Nested too deep to encode.
  const { payload, shortened } = fitPayload(nested(200_000))
  assert.ok(shortened && size(payload) < LIMITS.payloadBytes)
})

test('every payload can be shortened to fit', () => {
  const large = fc.oneof(
    fc.array(fc.nat(), { minLength: 60_000, maxLength: 60_100 }),
    fc.string({ minLength: 262_144, maxLength: 263_000, unit: anyCharacter }),
    fc.constant(Object.fromEntries(Array.from({ length: 30_000 }, (_, index) => [`key-${index}`, null]))),
    fc.constant({ ['k'.repeat(300_000)]: 1 }),
  )
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'c'), large, { minKeys: 1 }), (payload) => {
      const fitted = fitPayload(payload)
      assert.ok(fitted.shortened && size(fitted.payload) <= LIMITS.payloadBytes)
    }),
    { numRuns: 10 },
  )
})

function size(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
