import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toOperatorRun, toRun } from '../../../src/domain/runs/run.ts'
import type { RunRow } from '../../../src/storage/runs/runs.ts'

const ESTIMATOR = { ofCalls: () => ({ estimatedCost: null, priceTable: null, unpricedCalls: 0 }) }

const row: RunRow = {
  id: '00000000-0000-7000-8000-000000000001',
  runId: 'run',
  sessionId: null,
  userId: null,
  status: 'FAILED',
  startedAt: 0,
  endedAt: 5,
  agentId: '00000000-0000-7000-8000-000000000002',
  agentExternalId: null,
  agentName: 'a',
  agentDisplayName: null,
  promptTokens: 0,
  completionTokens: 0,
  totalTokens: 0,
  costNanos: 0,
  eventCount: 1,
  differingRetries: 0,
  errorCount: 1,
  traits: '\n',
  recorders: null,
  uncosted: null,
  failure: JSON.stringify(['e1', 3, 0, 'TimeoutError', 'tool', 'get_order']),
  failureMessage: 'no answer',
  said: JSON.stringify([1, [3, 'e0', 'Where is it?'], [4, 'e2', 'Here.']]),
  lastEventAt: 5,
  receivedAt: 6,
  pinnedAt: null,
  ruleClosedAt: 9,
  payloadsRemoved: 0,
}

test('a run that the stalled rule closed is RUNNING in the interface, and FAILED for operators', () => {
  const { status, endedAt } = toRun(row)
  assert.deepEqual([status, endedAt], ['RUNNING', null])
  const run = toOperatorRun(row, ESTIMATOR)
  assert.deepEqual([run.status, run.endedAt], ['FAILED', new Date(5).toISOString()])
  assert.equal(run.closedByRuleAt, new Date(9).toISOString())
  assert.equal(toRun({ ...row, ruleClosedAt: null }).status, 'FAILED')
})

test('operators see the error of a run', () => {
  const failure = { errorClass: 'TimeoutError', message: 'no answer', place: 'tool', name: 'get_order', eventId: 'e1' }
  assert.deepEqual(toOperatorRun(row, ESTIMATOR).failure, failure)
  assert.deepEqual(toOperatorRun({ ...row, failureMessage: null }, ESTIMATOR).failure, { ...failure, message: null })
  assert.equal(toOperatorRun({ ...row, failure: null }, ESTIMATOR).failure, null)
})

test('operators see what it was asked and what it answered, while its payloads are kept', () => {
  const { title, answer } = toOperatorRun(row, ESTIMATOR)
  assert.deepEqual([title, answer], ['Where is it?', 'Here.'])
  const removed = toOperatorRun({ ...row, said: null }, ESTIMATOR)
  assert.deepEqual([removed.title, removed.answer], [null, null])
})

test('of a cancelled run they see what its end says, not what failed before', () => {
  const { failure } = row
  const cancelled = (isFinal: 0 | 1) => {
    const text = JSON.stringify((JSON.parse(failure ?? '') as unknown[]).with(2, isFinal))
    return toOperatorRun({ ...row, status: 'CANCELLED', ruleClosedAt: null, failure: text }, ESTIMATOR).failure
  }
  assert.equal(cancelled(1)?.message, 'no answer')
  assert.equal(cancelled(0), null)
})
