import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import fc from 'fast-check'
import { draftRun, needsBase, timedEvents, timesOf, type RunDraft } from '../../src/record/transcript/run-draft.ts'
import { anyLine, draftOf, OPTIONS, transcriptOf } from './chats.ts'

const NOW = Date.UTC(2026, 10, 20, 15, 30)
const HOUR = 3_600_000

function eventsOf(
  run: RunDraft,
  now = NOW,
  stored: Parameters<typeof timesOf>[2] = null,
): ReturnType<typeof timedEvents> {
  return timedEvents(run, timesOf(run, now, stored), OPTIONS)
}

test('any transcript: each message has one event, in order, with a unique id and an increasing time', () => {
  fc.assert(
    fc.property(anyLine, (line) => {
      const events = eventsOf(draftOf(line))
      const numbers = events
        .map(({ eventId }) => Number(/^[0-9a-f]{32}-(\d+)$/.exec(eventId)?.[1]))
        .filter(Number.isInteger)
      assert.deepEqual(
        numbers,
        line.messages.map((_, index) => index + 1),
      )
      assert.equal(new Set(events.map(({ eventId }) => eventId)).size, events.length)
      events.forEach(({ timestamp }, index) => {
        assert.ok(timestamp <= NOW && timestamp > Date.UTC(1999, 11, 31))
        assert.ok(index === 0 || timestamp > (events[index - 1]?.timestamp ?? 0))
      })
    }),
  )
})

test('any transcript: importing it again gives the same events', () => {
  fc.assert(
    fc.property(anyLine, (line) => {
      assert.deepEqual(eventsOf(draftOf(line)), eventsOf(draftOf(line)))
    }),
  )
})

test('any transcript: the server accepts every event', () => {
  fc.assert(
    fc.property(anyLine, (line) => {
      for (const { eventId, runId, label, eventType, payload } of eventsOf(draftOf(line))) {
        assert.ok(eventId.length <= LIMITS.eventIdChars && runId.length <= LIMITS.runIdChars)
        assert.ok(Array.from(label).length <= LIMITS.labelChars && eventType.length <= LIMITS.eventTypeChars)
        assert.ok(label.isWellFormed() && !label.includes('\0'))
        assert.ok(Buffer.byteLength(JSON.stringify(payload)) <= LIMITS.payloadBytes)
      }
    }),
  )
})

test('any transcript: an import continued days later uses the stored times', () => {
  fc.assert(
    fc.property(anyLine, fc.nat(), fc.integer({ min: 1, max: 20 * 24 }), (line, pick, hours) => {
      const run = draftOf(line)
      const first = eventsOf(run)
      fc.pre(needsBase(run, NOW) && needsBase(run, NOW + hours * HOUR))
      const stored = first[pick % first.length]
      const place = stored && { eventId: stored.eventId, time: stored.timestamp }
      assert.deepEqual(eventsOf(run, NOW + hours * HOUR, place ?? null), first)
    }),
  )
})

test('adding outcomes to an earlier import changes no time', () => {
  fc.assert(
    fc.property(anyLine, (line) => {
      const without = eventsOf(draftRun(transcriptOf(line), { ...OPTIONS, outcomeField: null }))
      const messages = line.messages.length
      if (needsBase(draftOf(line), NOW))
        assert.deepEqual(eventsOf(draftOf(line)).slice(0, messages).map(timeOf), without.slice(0, messages).map(timeOf))
    }),
  )
})

test('a stored outcome alone is enough to restore the times', () => {
  const line = { messages: [{ role: 'user', content: 'x' }], reward: 1 }
  const [first, outcome] = eventsOf(draftOf(line))
  const place = { eventId: outcome?.eventId ?? '', time: outcome?.timestamp ?? 0 }
  for (const outcomeField of ['reward', null]) {
    assert.equal(timesOf(draftOf(line, { outcomeField }), NOW + 50 * HOUR, place)[0], first?.timestamp)
  }
})

test('events of other clients under the run id change no time', () => {
  const run = draftOf({ messages: [{ role: 'user', content: 'x' }] })
  assert.deepEqual(timesOf(run, NOW, { eventId: 'theirs', time: 5 }), timesOf(run, NOW, null))
})

test('message times are used, however old they are', () => {
  const message = (timestamp: number): object => ({ role: 'user', content: 'x', timestamp })
  const run = draftOf({ messages: [message(NOW - 5_000), message(NOW - 2_000)], reward: 0 })
  assert.equal(needsBase(run, NOW), false)
  assert.deepEqual(timesOf(run, NOW, null), [NOW - 5_000, NOW - 2_000, NOW - 1_999])
  assert.equal(needsBase(run, NOW + 40 * 24 * HOUR), false)
})

test('a session id is a text or a number; any other value is reported', () => {
  const line = (user: unknown): object => ({ messages: [{ role: 'user', content: 'x' }], user: { id: user } })
  const sessionOf = (user: unknown): unknown => draftOf(line(user), { sessionField: 'user.id' }).sessionId
  assert.deepEqual([sessionOf('s1'), sessionOf(7), sessionOf(null), sessionOf('')], ['s1', '7', null, null])
  assert.deepEqual(draftOf(line({}), { sessionField: 'user.id' }).problems, [
    'its user.id is not usable as a session id',
  ])
})

test('a payload that is too large is shortened and reported', () => {
  const run = draftOf({ messages: [{ role: 'user', content: 'x'.repeat(LIMITS.payloadBytes) }] })
  assert.match(run.problems.join(), /is over 256 KiB .* it was shortened/)
})

function timeOf({ timestamp }: { timestamp: number }): number {
  return timestamp
}
