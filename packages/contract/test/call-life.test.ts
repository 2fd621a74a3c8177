/** The life of a tool call, read from the events of its run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askedCalls, callLife, callOutcome, isFailedCall, outcomeText, unusualEnd } from '../src/runs/call-life.ts'
import { failureLine, failureOf, isErrorEvent } from '../src/issues/failure.ts'
import { problemOf } from '../src/runs/problem.ts'

test('an outcome says how a call ended; without one, an error is a failure', () => {
  const cases: [Record<string, unknown>, string, boolean][] = [
    [{ output: 1 }, 'returned', false],
    [{ error: 'no' }, 'failed', true],
    [{ exception: { type: 'KeyError' } }, 'failed', true],
    [{ outcome: 'returned' }, 'returned', false],
    [{ outcome: 'failed' }, 'failed', true],
    [{ outcome: 'cancelled', error: { message: 'aborted' } }, 'cancelled', false],
    [{ outcome: 'did_not_report', error: 'gone' }, 'did not report back', false],
    [{ outcome: 'never_ran', reasonCode: 'declined', error: { message: 'no' } }, 'never ran: declined', false],
    [{ outcome: 'never_ran', reasonCode: 'cut' }, 'never ran: the answer of the model was cut', true],
    [{ outcome: 'never_ran', reasonCode: 'unknown_tool' }, 'never ran: unknown tool', true],
    [{ outcome: 'never_ran', reasonCode: 'constructor' }, 'never ran', true],
    [{ outcome: 'toString', error: 'no' }, 'failed', true],
  ]
  for (const [payload, text, isFailed] of cases) {
    assert.equal(outcomeText(payload), text)
    assert.equal(isFailedCall(payload), isFailed, text)
    assert.equal(isErrorEvent('TOOL_CALL', payload), isFailed, text)
    assert.equal(failureOf({ eventType: 'TOOL_CALL', label: 'refund', payload }) !== null, isFailed, text)
    assert.equal(problemOf({ eventType: 'TOOL_CALL', label: 'refund', payload }) !== null, isFailed, text)
    const isUsual = ['returned', 'failed'].includes(callOutcome(payload))
    assert.equal(unusualEnd('TOOL_CALL', payload), isUsual ? null : text)
  }
})

test('a call that never ran fails with its reason code, and is told in words', () => {
  const payload = {
    outcome: 'never_ran',
    reasonCode: 'unfit',
    toolName: 'refund',
    arguments: '{"order":"seven"}',
    error: { message: 'order must be a whole number', type: 'ValidationError' },
  }
  const event = { eventType: 'TOOL_CALL', label: 'refund', payload }
  const failure = failureOf(event)
  assert.deepEqual([failure?.errorClass, failure?.place], ['unfit', { kind: 'tool', name: 'refund' }])
  assert.equal(failure && failureLine(failure, failure.place), 'unfit in refund: order must be a whole number')
  assert.equal(problemOf(event)?.why, 'its arguments do not fit the tool: order must be a whole number')
})

test('calls that a model asked for, as received', () => {
  const toolCalls = [{ id: 'a', name: 'refund', arguments: '{"amount": 5', problem: 'cut' }, 7, { name: 'find' }]
  assert.deepEqual(askedCalls({ toolCalls }), [
    { id: 'a', name: 'refund', arguments: '{"amount": 5', problem: 'cut' },
    { id: null, name: 'find', arguments: null, problem: null },
  ])
  assert.deepEqual(askedCalls({ toolCalls: 'none' }), [])
})

test('the states of a call, from the nearest model call that asked for its id', () => {
  const asks = (eventId: string, id: string) => ({
    eventId,
    eventType: 'LLM_CALL',
    payload: { toolCalls: [{ id, name: 'refund' }] },
  })
  const of = (eventId: string, eventType: string, more: Record<string, unknown> = {}) => ({
    eventId,
    eventType,
    payload: { toolCallId: '1', ...more },
  })
  const events = [
    of('stray', 'TOOL_CALL'),
    asks('m1', '1'),
    asks('m-other', '2'),
    of('p1', 'POLICY_DECISION', { action: 'REQUIRE_APPROVAL' }),
    of('w1', 'APPROVAL_WITHDRAWN', { reason: 'timeout' }),
    asks('m2', '1'),
    of('p2', 'POLICY_DECISION', { action: 'ALLOW' }),
    of('s2', 'TOOL_START'),
    of('other', 'TOOL_CALL', { toolCallId: '2' }),
    of('c2', 'TOOL_CALL', { outcome: 'cancelled' }),
  ]
  const life = (eventId: string) =>
    callLife(events, '1', eventId).map(({ event, state }) => `${event.eventId} ${state}`)
  assert.deepEqual(life('p1'), ['m1 asked', 'p1 held', 'w1 withdrawn'])
  assert.deepEqual(life('c2'), ['m2 asked', 'p2 judged', 's2 running', 'c2 cancelled'])
  assert.deepEqual(life('m2'), life('s2'))
  assert.deepEqual(life('stray'), ['stray returned'])
  assert.deepEqual(life('other'), [])
})
