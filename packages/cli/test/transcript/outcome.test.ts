import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldAt, outcomeOf } from '../../src/record/transcript/run-draft.ts'

function statuses(values: unknown[]): unknown[] {
  return [...new Set(values.map((value) => JSON.stringify(outcomeOf(value))))].map(
    (text) => JSON.parse(text) as unknown,
  )
}

test('numbers, booleans and words give the outcome of a run', () => {
  assert.deepEqual(statuses([1, 1.0, true, 'COMPLETED', 'Completed', ' success ', 'passed', '1', 'true']), [
    { kind: 'known', status: 'COMPLETED' },
  ])
  assert.deepEqual(statuses([0, -0, false, 'FAILED', 'failure', 'error', '0']), [{ kind: 'known', status: 'FAILED' }])
  assert.deepEqual(statuses(['CANCELLED', 'canceled']), [{ kind: 'known', status: 'CANCELLED' }])
})

test('null and a missing field give no outcome; any other value is unclear, never guessed', () => {
  assert.deepEqual(statuses([null, undefined]), [{ kind: 'absent' }])
  assert.deepEqual(statuses([0.5, 2, -1, '', 'maybe', {}, [1]]), [{ kind: 'unclear' }])
})

test('a path reads nested objects, and a field with dots in its name wins', () => {
  assert.equal(fieldAt({ info: { result: 1 } }, 'info.result'), 1)
  assert.equal(fieldAt({ info: { result: 1 }, 'info.result': 2 }, 'info.result'), 2)
  assert.equal(fieldAt({ info: [] }, 'info.length.x'), undefined)
  assert.equal(fieldAt({}, 'constructor'), undefined)
})
