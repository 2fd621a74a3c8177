import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runLength, STALLED_MS, stalledMs } from '../src/runs/run-activity.ts'

const startedAt = new Date(0).toISOString()
const lastEventAt = new Date(60_000).toISOString()
const running = { status: 'RUNNING', startedAt, endedAt: null, lastEventAt } as const
const at = (sinceLastEvent: number) => 60_000 + sinceLastEvent

test('a running run is stalled after more than 15 minutes without an event', () => {
  assert.equal(stalledMs(running, at(STALLED_MS)), null)
  assert.equal(stalledMs(running, at(STALLED_MS + 1)), STALLED_MS + 1)
  assert.equal(stalledMs({ ...running, status: 'FAILED', endedAt: lastEventAt }, at(STALLED_MS + 1)), null)
})

test('a stalled run was as long as it had events; a running one lasts until now', () => {
  assert.equal(runLength(running, at(STALLED_MS)), at(STALLED_MS))
  assert.equal(runLength(running, at(STALLED_MS + 1)), 60_000)
  assert.equal(runLength({ ...running, status: 'COMPLETED', endedAt: new Date(7).toISOString() }, at(1)), 7)
  // The clock of a client may be ahead of the server's.
  assert.equal(runLength(running, -5), 0)
})
