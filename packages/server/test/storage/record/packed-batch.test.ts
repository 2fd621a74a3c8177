import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../contract/test/any-character.ts'
import { payloadText, type EventBatchRows, type NewEvent } from '../../../src/storage/record/events.ts'
import { packedBuffers, packBatch, unpackBatch } from '../../../src/storage/record/packed-batch.ts'
import { partsOf } from '../../../src/storage/runs/usage.ts'

/** Few values, so that neighbours are often equal, in every width a string may have. */
const text = fc.oneof(fc.constantFrom('', 'a', 'agent', 'ä', '😀', '\ud83d', '\0'), fc.string({ unit: anyCharacter }))
const optional = fc.option(text, { nil: null })
const sum = fc.oneof(fc.nat(10), fc.constantFrom(0, Number.MAX_SAFE_INTEGER))

const count = fc.nat(1e9)
const tokens = fc
  .record({ context: count, input: fc.integer({ min: 1, max: 1e9 }), cacheRead: count, cacheWrite: count })
  .chain((some) =>
    fc
      .record({ cacheWrite1h: count, output: count, reasoning: count, media: count })
      .map(({ media, ...more }) => ({ ...partsOf(() => media), ...some, ...more })),
  )

const event: fc.Arbitrary<NewEvent> = fc
  .record({
    eventId: text,
    clientId: text,
    runId: text,
    sessionId: optional,
    agentId: optional,
    agentName: text,
    eventType: text,
    label: text,
    time: fc.oneof(fc.integer(), fc.constantFrom(Number.MAX_SAFE_INTEGER, 0.5)),
    payload: text,
    spanId: optional,
    parentSpanId: optional,
    schemaVersion: optional,
    outcome: fc.constantFrom('COMPLETED', 'FAILED', 'CANCELLED', null),
    usage: fc.option(
      fc.record({
        model: text,
        promptTokens: sum,
        completionTokens: sum,
        totalTokens: sum,
        costNanos: sum,
        uncosted: fc.option(tokens),
      }),
      { nil: null },
    ),
    latencyMs: fc.option(fc.oneof(fc.nat(), fc.double({ min: 0, max: 1e6, noNaN: true })), { nil: null }),
    promptUse: fc.option(
      fc.record({ versionId: text, problem: fc.constantFrom('error', 'blocked', 'approval', null) }),
      { nil: null },
    ),
    toolUse: fc.option(fc.record({ tool: text, problem: fc.constantFrom('error', 'blocked', 'approval', null) }), {
      nil: null,
    }),
    failure: fc.option(
      fc.record({
        errorClass: optional,
        message: optional,
        place: fc.record({ kind: fc.constantFrom('tool', 'run'), name: optional }),
      }),
    ),
    said: fc.option(
      fc.oneof(
        fc.record({ question: text, answer: optional }),
        fc.record({ question: fc.constant(null), answer: text }),
      ),
      { nil: null },
    ),
    traits: optional,
    userId: optional,
    callKey: optional,
    approval: fc.option(
      fc.record({
        approvalId: text,
        kind: fc.constantFrom('input', 'withdrawn', 'ran'),
        toolName: optional,
        inputHash: optional,
        policyVersions: fc.option(fc.dictionary(text, text), { nil: null }),
        reason: fc.constantFrom('timeout', null),
        status: fc.constantFrom('started', null),
      }),
      { nil: null },
    ),
    score: fc.option(
      fc.record({
        name: text,
        kind: fc.constantFrom('NUMBER', 'CATEGORY'),
        number: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)),
        category: optional,
        comment: optional,
        author: text,
        target: optional,
      }),
    ),
    number: optional,
    drops: optional,
    onlyIfStored: fc.boolean(),
  })
  .map(({ usage, failure, said, promptUse, toolUse, score, approval, ...rest }) => {
    return {
      ...rest,
      usage: usage && { ...usage, uncosted: usage.uncosted && { ...usage.uncosted } },
      failure: failure && { ...failure, place: { ...failure.place } },
      said: said && { ...said },
      promptUse: promptUse && { ...promptUse },
      toolUse: toolUse && { ...toolUse },
      score: score && { ...score },
      approval: approval && { ...approval, policyVersions: approval.policyVersions && { ...approval.policyVersions } },
    }
  })

test('payloads that lie in the body of the request move with it, in any order, beside texts', () => {
  const body = new TextEncoder().encode('[{"a":"ä😀"},{"b":1}] {}')
  const payloads = [body.subarray(16, 23), 'a text', body.subarray(1, 15), Buffer.from('{"of":"another buffer"}')]
  const [sample] = fc.sample(event, 1)
  const events = payloads.map((payload, index) => ({ ...sample!, eventId: `event ${index}`, payload }))
  const batch: EventBatchRows = { environmentId: 'e', receivedAt: 0, events, body, rejections: [] }
  const packed = packBatch(batch, 0)
  const transfer = packedBuffers(packed)
  const unpacked = unpackBatch(structuredClone(packed, { transfer }))
  assert.deepEqual(
    unpacked.events.map(({ payload }) => payloadText(payload)),
    ['{"b":1}', 'a text', '{"a":"ä😀"}', '{"of":"another buffer"}'],
  )
  assert.equal(body.length, 0, 'moved, not copied')
})

test('a batch reaches the writer unchanged', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), fc.integer(), (events, receivedAt) => {
      const rejections = [{ runId: 'run', eventId: 'event', code: 'empty' as const, rejectedAt: receivedAt }]
      const batch: EventBatchRows = { environmentId: 'environment', receivedAt, events, rejections }
      // Copy the batch as a message between threads is copied.
      assert.deepEqual(unpackBatch(structuredClone(packBatch(batch, 0))), batch)
    }),
  )
})
