import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { demoRuns, LONG_RUN_EVENTS, versionRuns } from '../../src/record/demo/demo-runs.ts'
import { systemPrompt } from '../../src/record/demo/shop.ts'

const NOW = Date.UTC(2026, 10, 20)

test('the same seed and time give the same runs, another seed gives others', () => {
  assert.deepEqual(demoRuns('a', NOW), demoRuns('a', NOW))
  const ids = [...demoRuns('a', NOW), ...demoRuns('b', NOW)].map(({ runId }) => runId)
  assert.equal(new Set(ids).size, ids.length)
})

test('sixteen runs of two agents: ended in every way, some still running, several in a session, one long', () => {
  const runs = demoRuns('a', NOW)
  const outcomes = runs.map(
    ({ events }) => events.find(({ eventType }) => eventType === 'SESSION_OUTCOME')?.payload?.['status'],
  )
  assert.equal(runs.length, 16)
  assert.deepEqual(new Set(outcomes), new Set(['CANCELLED', 'COMPLETED', 'FAILED', undefined]))
  assert.equal(new Set(runs.map(({ events }) => events[0]?.agentId)).size, 2)
  assert.equal(runs.filter(({ events }) => events[0]?.sessionId).length, 3)
  assert.ok(runs.some(({ events }) => events.length === LONG_RUN_EVENTS))
})

test('the runs of a prompt version record the text of that version', () => {
  for (const { about, events } of versionRuns('a', NOW, ['first', 'second'])) {
    const version = about === 'prompt version 1' ? 0 : 1
    const step = events.find(({ label }) => label === 'System prompt')
    assert.equal(step?.payload?.['promptVersionId'], version === 0 ? 'first' : 'second')
    assert.equal(step?.payload?.['text'], systemPrompt(version))
  }
  assert.notEqual(systemPrompt(0), systemPrompt(1))
})

test('every event is in the past, in order, with a unique id', () => {
  const events = demoRuns('a', NOW).flatMap(({ events: some }) => some)
  assert.equal(new Set(events.map(({ eventId }) => eventId)).size, events.length)
  for (const { events: some } of demoRuns('a', NOW)) {
    assert.ok(some.every(({ timestamp }, index) => index === 0 || timestamp >= (some[index - 1]?.timestamp ?? 0)))
    assert.ok(some.every(({ timestamp }) => timestamp <= NOW && timestamp > NOW - LIMITS.eventPastMs))
  }
})
