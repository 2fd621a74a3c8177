import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, newId, NOON, runOf } from '../sample.ts'

export function recordedInputSuite(open: OpenStorage) {
  describe('the recorded input of an approval', () => {
    const storage = sharedStorage(open)
    const sought = {
      approvalId: newId(),
      toolName: 'pay',
      inputHash: 'ab',
      until: NOON + 100,
      bounds: { rowsLookedAt: 10, limit: 5, pageBytes: 1_000 },
    }
    const said = { approvalId: sought.approvalId, toolName: 'pay', inputHash: 'AB', input: { to: 'Ada' } }
    const policyDecision = (payload: object, given: Partial<NewEvent> = {}) =>
      event({ eventType: 'POLICY_DECISION', payload: JSON.stringify(payload), ...given })

    async function find(events: NewEvent[], given: Partial<typeof sought> = {}) {
      const env = newId()
      for (const each of events) await append(storage(), env, each)
      const run = await runOf(storage(), env)
      return storage().findRecordedInput(env, run.id, { ...sought, ...given })
    }

    test('comes from the decision in the same run that names the approval, the tool and the hash', async () => {
      const found = policyDecision(said)
      assert.deepEqual(await find([event(), found, event()]), {
        eventId: found.eventId,
        receivedAt: NOON,
        payload: found.payload,
      })
      const { input: _, ...withoutInput } = said
      const others = [
        policyDecision({ ...said, approvalId: newId(), note: sought.approvalId }),
        policyDecision({ ...said, toolName: 'other' }),
        policyDecision({ ...said, inputHash: 'cd' }),
        policyDecision({ ...said, inputHash: null }),
        policyDecision(withoutInput),
        policyDecision(said, { eventType: 'TOOL_CALL' }),
        policyDecision(said, { time: sought.until + 1 }),
      ]
      assert.equal(await find(others), null)
      const env = newId()
      await append(storage(), env, found, event({ runId: 'other' }))
      const other = await runOf(storage(), env, 'other')
      assert.equal(await storage().findRecordedInput(env, other.id, sought), null)
      const run = await runOf(storage(), env)
      assert.equal(await storage().findRecordedInput(newId(), run.id, sought), null)
    })

    test('is the first one stored, whatever is recorded later or dated earlier', async () => {
      const first = policyDecision(said, { time: NOON + 50 })
      const later = [
        policyDecision({ ...said, input: 1 }, { time: NOON }),
        policyDecision({ ...said, input: 2 }, { time: NOON + 99 }),
      ]
      assert.equal((await find([first, ...later]))?.eventId, first.eventId)
    })

    test('is searched within bounds, from the newest event on', async () => {
      const { bounds } = sought
      const steps = (count: number) => Array.from({ length: count }, (_, n) => event({ time: NOON + n + 1 }))
      const decisions = (count: number) => steps(count).map((step) => ({ ...step, eventType: 'POLICY_DECISION' }))
      assert.ok(await find([policyDecision(said), ...steps(bounds.rowsLookedAt - 1)]))
      assert.equal(await find([policyDecision(said), ...steps(bounds.rowsLookedAt)]), null)
      assert.ok(await find([policyDecision(said), ...decisions(bounds.limit - 1)]))
      assert.equal(await find([policyDecision(said), ...decisions(bounds.limit)]), null)
      const large = policyDecision({ note: 'x'.repeat(bounds.pageBytes) }, { time: NOON + 1 })
      assert.equal(await find([policyDecision(said), large]), null)
    })

    const toolUse = { tool: 'pay', problem: 'approval' } as const
    const held = (payload: object, given: Partial<NewEvent> = {}) => policyDecision(payload, { toolUse, ...given })
    const { until: _, bounds: __, ...asked } = sought

    test('is found for a list of requests at once, each in its own run, and in no other environment', async () => {
      const env = newId()
      const other = { ...asked, approvalId: newId() }
      const first = held(said)
      await append(storage(), env, first, held({ ...said, input: 1 }, { time: NOON + 5 }))
      await append(storage(), env, held({ ...said, approvalId: other.approvalId, input: 2 }, { runId: 'second' }))
      const requests = [
        { ...other, runId: 'second' },
        { ...asked, runId: first.runId },
        { ...asked, runId: 'second' },
        { ...asked, toolName: 'other', runId: first.runId },
        { ...asked, runId: 'missing' },
      ]
      const bounds = { perRun: 10, bytes: 1_000 }
      const inputs = async (of: string) =>
        (await storage().findRecordedInputs(of, requests, bounds)).map((payload) => {
          return payload === null ? null : (JSON.parse(payload) as { input: unknown }).input
        })
      assert.deepEqual(await inputs(env), [2, { to: 'Ada' }, null, null, null])
      assert.deepEqual(await inputs(newId()), [null, null, null, null, null])
    })

    test('for a list, is searched within bounds of rows of each run and of bytes of all', async () => {
      const env = newId()
      const one = held(said)
      await append(storage(), env, one, held({ note: 'newer' }, { time: NOON + 1 }))
      const request = { ...asked, runId: one.runId }
      const found = async (perRun: number, bytes: number) =>
        (await storage().findRecordedInputs(env, [request], { perRun, bytes }))[0] !== null
      const bytes = Buffer.byteLength(one.payload) + Buffer.byteLength('{"note":"newer"}')
      assert.equal(await found(2, bytes), true)
      assert.equal(await found(1, bytes), false)
      assert.equal(await found(2, bytes - 1), false)
    })
  })
}
