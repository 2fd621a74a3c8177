import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { batchBody, batches, type PackedEvent } from '../../src/record/recorder-client.ts'

function events(count: number, bytes: number): PackedEvent[] {
  return Array.from({ length: count }, (_, index) => ({ eventId: `e${index}`, text: `"${'x'.repeat(bytes - 2)}"` }))
}

test('a batch has at most 100 events', () => {
  assert.deepEqual(
    [...batches(events(201, 10))].map((batch) => batch.length),
    [100, 100, 1],
  )
})

test('a batch body has at most 1 MiB: at the limit it is one batch, one byte past it two', () => {
  // Two brackets and a comma are part of the body.
  const first = (LIMITS.batchBytes - 3) / 2
  const fitting = [...events(1, Math.floor(first)), { eventId: 'last', text: 'x'.repeat(Math.ceil(first)) }]
  const [batch] = [...batches(fitting)]
  assert.equal(Buffer.byteLength(batchBody(batch ?? [])), LIMITS.batchBytes)
  const past = [...events(1, Math.floor(first)), { eventId: 'last', text: 'x'.repeat(Math.ceil(first) + 1) }]
  assert.equal([...batches(past)].length, 2)
})

test('batches keep the order and the limits, and have no id twice', () => {
  const event = fc.record({
    eventId: fc.constantFrom('a', 'b', 'c', 'd'),
    text: fc.string({ minLength: 1, maxLength: 200_000 }),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 250 }), (given) => {
      const made = [...batches(given)]
      assert.deepEqual(made.flat(), given)
      for (const batch of made) {
        assert.ok(batch.length <= 100 && new Set(batch.map(({ eventId }) => eventId)).size === batch.length)
        assert.ok(batch.length === 1 || Buffer.byteLength(batchBody(batch)) <= LIMITS.batchBytes)
      }
    }),
    { numRuns: 50 },
  )
})
