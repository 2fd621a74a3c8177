/** The store keeps fields that events repeat only once, and returns them with each event. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON, runOf, timelineOf } from '../sample.ts'

const LONG = 'ü'.repeat(1_024)

/** Events whose texts a wrong key could confuse with another text, or with null. */
const sent = fc.record({
  runId: fc.constantFrom('one', 'two'),
  sessionId: fc.constantFrom(null, '', '=', 'a', '=a', 'b', LONG, `${LONG.slice(1)}x`),
  clientId: fc.constantFrom('client', 'client2:x'),
  agentId: fc.constantFrom(null, '', '-', 'x', LONG),
  agentName: fc.constantFrom('', 'x', 'x1:-', '-', LONG),
  schemaVersion: fc.constantFrom(null, '', '-', '1'),
})

const repeated = ({ sessionId, clientId, agentId, agentName, schemaVersion }: Omit<NewEvent, 'eventId'>) => {
  return { sessionId, clientId, agentId, agentName, schemaVersion }
}

export function envelopesSuite(open: OpenStorage) {
  describe('sessions and envelopes', () => {
    const storage = sharedStorage(open)

    test('are read as sent, in any order and batches, and a retry with another one differs', async () => {
      const batches = fc.array(fc.array(sent, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 })
      await fc.assert(
        fc.asyncProperty(batches, async (given) => {
          const env = newId()
          const events = given.map((some) => some.map((one) => event(one)))
          for (const some of events) await append(storage(), env, ...some)
          const all = events.flat()
          for (const runId of new Set(all.map((one) => one.runId))) {
            const ofRun = all.filter((one) => one.runId === runId)
            const found = new Map((await timelineOf(storage(), env, runId)).map((one) => [one.eventId, one]))
            for (const one of ofRun) {
              const read = found.get(one.eventId)
              assert.ok(read)
              assert.deepEqual(repeated({ ...one, ...read }), repeated(one))
            }
            const { sessionId } = await runOf(storage(), env, runId)
            assert.equal(sessionId, ofRun.find((one) => one.sessionId !== null)?.sessionId ?? null)
          }
          assert.deepEqual(new Set(await append(storage(), env, ...all)), new Set(['duplicate']))
          const others = all.map((one) => ({ ...one, sessionId: 'other' }))
          await append(storage(), env, ...others)
          for (const runId of new Set(all.map((one) => one.runId))) {
            const { differingRetries } = await runOf(storage(), env, runId)
            assert.equal(differingRetries, all.filter((one) => one.runId === runId).length)
          }
        }),
        { numRuns: 25 },
      )
    })

    test('that many batches bring at the same time are those of each event', async () => {
      const env = newId()
      const batches = Array.from({ length: 40 }, (_, n) =>
        Array.from({ length: 5 }, (__, m) =>
          event({ runId: `run ${n}`, time: NOON + m, clientId: `client ${(n + m) % 3}`, agentName: `agent ${m}` }),
        ),
      )
      await Promise.all(batches.map((events) => append(storage(), env, ...events)))
      for (const [n, events] of batches.entries()) {
        const read = await timelineOf(storage(), env, `run ${n}`)
        assert.deepEqual(
          read.map(({ clientId, agentName }) => [clientId, agentName]),
          events.map(({ clientId, agentName }) => [clientId, agentName]),
        )
      }
    })

    test('are not those of another environment with the same texts', async () => {
      const [one, other] = [newId(), newId()]
      await append(storage(), one, event({ clientId: 'shared', sessionId: 'of one' }))
      await append(storage(), other, event({ clientId: 'shared', sessionId: 'of other' }), event({ clientId: 'own' }))
      assert.deepEqual(
        (await timelineOf(storage(), one)).map(({ clientId, sessionId }) => [clientId, sessionId]),
        [['shared', 'of one']],
      )
      assert.equal((await timelineOf(storage(), other)).length, 2)
    })
  })
}
