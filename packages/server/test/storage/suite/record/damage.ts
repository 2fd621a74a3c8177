/** Damaged payloads are never returned as data, and do not affect other payloads. */
import { eventEnvironment } from '../../../../src/storage/sql/engine/sql.ts'
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { StoredEvent } from '../../../../src/storage/record/events.ts'
import { changeShared, closeShared, sharedStorage, type OpenStorage } from '../open.ts'
import { packRun } from '../data/packing.ts'
import { append, event, newEnvironment, NOON, runOf, timelineOf } from '../sample.ts'

const PAYLOADS = ['{"amount":100}', '{"amount":900}', '{"amount":"ümläut"}']
const read = (rows: StoredEvent[]) => rows.map(({ payload, payloadDamaged }) => [payload, payloadDamaged ?? false])
const DAMAGED = [['{}', true], ...PAYLOADS.slice(1).map((payload) => [payload, false])]

export function damageSuite(open: OpenStorage) {
  describe('damage', () => {
    // A separate store, because the checks see all environments.
    const own: OpenStorage = () => open()
    after(() => closeShared(own))
    const storage = sharedStorage(own)

    /** Changes rows of events without their checksums. */
    async function flip(env: string, change: string, which: string): Promise<void> {
      const ofEnvironment = `environment_id = ${eventEnvironment({ dialect: storage().engine }, '?')}`
      await changeShared(own, `UPDATE events SET ${change} WHERE ${ofEnvironment} AND ${which}`, env)
    }

    /** Removes the checksums of damaged events, so that the checks of other tests do not find them. */
    const forget = (env: string) => flip(env, 'payload_sum = NULL, block = NULL, payload_bytes = NULL', 'true')

    async function filled(): Promise<string> {
      const env = await newEnvironment(storage())
      const events = PAYLOADS.map((payload, n) => event({ eventId: `e${n}`, payload, time: NOON + n }))
      await append(storage(), env, ...events)
      return env
    }

    async function assertDamaged(env: string, expected: unknown[]): Promise<void> {
      const run = await runOf(storage(), env)
      const before = storage().gauges().damagedPayloads
      assert.deepEqual(read(await timelineOf(storage(), env)), expected)
      const damaged = expected.filter((one) => Array.isArray(one) && one[1] === true).length
      assert.equal(storage().gauges().damagedPayloads, before + damaged)
      const page = { after: null, limit: 10, pageBytes: 1_000_000 }
      assert.deepEqual(read((await storage().listEvents(env, run.id, page)).rows), expected)
      const arrived = await storage().readArrived(env, run.id, { ...page, after: 0 })
      assert.deepEqual(read(arrived.rows), expected)
      const one = await storage().findEvent(env, 'run', 'e0')
      assert.deepEqual(read([one!.event]), expected.slice(0, 1))
      const check = (await storage().inspect()).find(({ name }) => name === 'payloads')
      assert.equal(check?.ok, false)
      assert.match(check.detail, /"e0" in run "\w+" of environment/)
      assert.equal(storage().damage(), null)
    }

    test('of a row is found when it is read', async () => {
      const env = await filled()
      const intact = (await storage().inspect()).find(({ name }) => name === 'payloads')
      assert.deepEqual(intact, { name: 'payloads', ok: true, detail: 'All 3 payloads match their checksums' })
      await flip(env, `payload = replace(payload, '100', '900')`, `event_id = 'e0'`)
      await assertDamaged(env, DAMAGED)
      await forget(env)
    })

    test('of a checksum counts as damage too', async () => {
      const env = await filled()
      await flip(env, 'payload_sum = payload_sum + 1', `event_id = 'e0'`)
      await assertDamaged(env, DAMAGED)
      await forget(env)
    })

    test('survives packing, and then neighbours in the block are still read', async () => {
      const env = await filled()
      await flip(env, `payload = replace(payload, '100', '900')`, `event_id = 'e0'`)
      await packRun(storage(), env)
      await assertDamaged(env, DAMAGED)
      await forget(env)
    })

    test('of the place in a block is found', async () => {
      const env = await filled()
      await packRun(storage(), env)
      await flip(env, 'block_at = block_at + 14', `event_id = 'e0'`)
      await assertDamaged(env, DAMAGED)
      await forget(env)
    })

    test('of a block is found for each of its events, and stops no other run', async () => {
      const env = await filled()
      await packRun(storage(), env)
      await append(storage(), env, event({ runId: 'other', payload: '{"whole":true}' }))
      const bytes = storage().engine === 'postgres' ? "convert_to('damaged', 'UTF8')" : "CAST('damaged' AS BLOB)"
      await changeShared(own, `UPDATE payload_blocks SET packed = ${bytes} WHERE environment_id = ?`, env)
      await assertDamaged(
        env,
        PAYLOADS.map(() => ['{}', true]),
      )
      assert.deepEqual(read(await timelineOf(storage(), env, 'other')), [['{"whole":true}', false]])
      await forget(env)
    })

    test('goes with retention of payloads, which leaves nothing to be damaged', async () => {
      const env = await filled()
      const removed = `payload = '', payload_bytes = 0, payload_sum = NULL`
      await flip(env, removed, 'true')
      assert.deepEqual(
        read(await timelineOf(storage(), env)),
        PAYLOADS.map(() => ['{}', false]),
      )
    })
  })
}
