import assert from 'node:assert/strict'
import { test } from 'node:test'
import { neverEnded, STALLED_MS } from '../src/runs/run-activity.ts'

const row = (eventType: string, eventId: string, spanId: string | null) => ({ eventType, eventId, spanId })
const ROWS = [
  row('TOOL_START', 'lost', 'a'),
  row('TOOL_START', 'whole', 'b'),
  row('POLICY_DECISION', 'decision', 'a'),
  row('TOOL_CALL', 'end', 'b'),
  row('TOOL_CALL', 'plain', null),
  row('TOOL_START', 'unknown', null),
]
const time = new Date(0).toISOString()
const running = { status: 'RUNNING', startedAt: time, endedAt: null, lastEventAt: time } as const

test('a start without a call in its span never ended, once the run has ended or is stalled', () => {
  const ended = { ...running, status: 'FAILED', endedAt: time } as const
  assert.deepEqual([...neverEnded(ROWS, ended, 0)], ['lost'])
  assert.deepEqual([...neverEnded(ROWS, running, STALLED_MS)], [])
  assert.deepEqual([...neverEnded(ROWS, running, STALLED_MS + 1)], ['lost'])
  // A run that waits for an approval is not stalled.
  assert.deepEqual([...neverEnded(ROWS, { ...running, activity: 'WAITING_FOR_APPROVAL' }, STALLED_MS + 1)], [])
})
