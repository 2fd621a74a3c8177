/** Scores of runs: the fields that are sent or omitted, also with metadata only. The conformance kit tests the other rules. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeTacho } from '../src/testing/fake-tacho.ts'

test('metadata-only keeps what a score says, without its comment, and the same keys of no other event', async (t) => {
  const fake = fakeTacho({ capture: 'metadata-only' })
  t.after(() => fake.close())
  const run = fake.tacho.startRun()
  run.score('helpful', true, { comment: 'a secret', author: 'user-1', eventId: 'step' })
  run.step('step', { name: 'Ada', value: 7, author: 'Ada' })
  const [score, step] = await fake.events()
  assert.deepEqual(score?.payload, { name: 'helpful', value: true, targetEventId: 'step', author: 'user-1' })
  assert.deepEqual(step?.payload, {})
})

test('scores of runs that sampling leaves out are recorded', async (t) => {
  const fake = fakeTacho({ sampleRate: 0 })
  t.after(() => fake.close())
  fake.tacho.score('elsewhere', 'helpful', 1)
  const run = fake.tacho.startRun()
  run.step('not recorded')
  run.score('helpful', 0)
  assert.deepEqual(
    (await fake.events()).map(({ eventType, payload }) => [eventType, payload['value']]),
    [
      ['SCORE', 1],
      ['SCORE', 0],
    ],
  )
})

test('no host value makes a score call throw, and what is no score is left out and reported once', async (t) => {
  const codes: string[] = []
  const fake = fakeTacho({ onDiagnostic: ({ code }) => codes.push(code) })
  t.after(() => fake.close())
  const run = fake.tacho.startRun()
  const hostile = new Proxy({}, { get: () => assert.fail('read'), ownKeys: () => assert.fail('read') })
  const score = run.score.bind(run) as (...given: unknown[]) => string | undefined
  const late = fake.tacho.score.bind(fake.tacho) as (...given: unknown[]) => string | undefined
  for (const value of [Number.NaN, Infinity, 1e308, null, undefined, {}, [], '', Symbol('x'), 5n]) {
    assert.equal(score('x', value), undefined)
  }
  for (const name of ['', ' x', 'x ', 'a<b', 'x'.repeat(65), 7, null]) assert.equal(score(name, 1), undefined)
  for (const runId of [undefined, null, 7, {}, hostile]) assert.equal(late(runId, 'x', 1), undefined)
  assert.ok(score('__proto__', 1, hostile))
  assert.ok(score('constructor', 'toString', { comment: 7, author: '' }))
  assert.ok(late({ runId: 'other', agentName: 'bot' }, 'x', 1, 'a comment'))
  const [first, second, third] = await fake.events()
  assert.deepEqual(first?.payload, { name: '__proto__', value: 1 })
  assert.deepEqual(second?.payload, { name: 'constructor', value: 'toString' })
  assert.deepEqual([third?.runId, third?.agentName, third?.payload['comment']], ['other', 'bot', 'a comment'])
  assert.deepEqual(new Set(codes), new Set(['invalid_score']))
})
