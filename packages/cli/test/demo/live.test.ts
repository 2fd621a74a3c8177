import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventInput } from '@tacho/contract/record/event.ts'
import { playLive, type Outcome } from '../../src/record/demo/live.ts'

/** Plays the live demo until `enough` runs have ended. */
async function played(enough: number, outcome: Outcome) {
  const leaving = new AbortController()
  const runs = new Map<string, EventInput[]>()
  const ended: string[] = []
  const asked: string[] = []
  await playLive(
    {
      seed: 's',
      longestPauseMs: 0,
      async record(events) {
        for (const event of events) runs.set(event.runId, [...(runs.get(event.runId) ?? []), event])
      },
      async ask(runId) {
        asked.push(runId)
        return { id: 'approval', outcome: Promise.resolve(outcome) }
      },
      onEnd({ runId }) {
        ended.push(runId)
        if (ended.length === enough) leaving.abort()
      },
    },
    leaving.signal,
  )
  return { runs, ended, asked }
}

test('agents go on until they are stopped; each run has its own id, unique events and one outcome', async () => {
  const { runs, ended } = await played(40, 'approved')
  assert.ok(runs.size >= 40 && new Set(ended).size === ended.length)
  for (const [runId, events] of runs) {
    assert.equal(new Set(events.map(({ eventId }) => eventId)).size, events.length, runId)
    assert.equal(events.filter(({ eventType }) => eventType === 'SESSION_OUTCOME').length, 1, runId)
    assert.equal(events.at(-1)?.eventType, 'SESSION_OUTCOME', runId)
  }
})

test('a run that asks a person goes on with the decision', async () => {
  for (const [outcome, status] of [
    ['approved', 'COMPLETED'],
    ['rejected', 'CANCELLED'],
  ] as const) {
    const { runs, asked } = await played(30, outcome)
    const [first = ''] = asked
    const events = runs.get(first) ?? []
    const at = events.findIndex(({ eventType }) => eventType === 'POLICY_DECISION')
    assert.deepEqual(events[at]?.payload, {
      ...events[at]?.payload,
      action: 'REQUIRE_APPROVAL',
      approvalId: 'approval',
    })
    assert.deepEqual(events.at(-1)?.payload, { status })
    assert.equal(
      events.some(({ label }, place) => place > at && label === 'refund_payment'),
      outcome === 'approved',
    )
  }
})
