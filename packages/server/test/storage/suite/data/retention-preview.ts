/** The preview of retention: the counts that a pass would remove. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { DAY_MS } from '../../../../src/storage/engine/times.ts'
import { KEEP_ALL } from '../../../../src/storage/data/retention.ts'
import type { Retaining } from './retention-sample.ts'
import { batch, event, NOON } from '../sample.ts'

export function retentionPreview({ storage, newEnvironment, set, recorded, removeAll }: Retaining) {
  test('a preview counts what a pass then removes', async () => {
    const tenant = await newEnvironment()
    const { environmentId: env } = tenant
    for (const days of [60, 45, 31]) await recorded(env, `run ${days}`, days, { payload: '{"a":1}' }, { payload: '{}' })
    await recorded(env, 'young', 20, { payload: '{"a":1}' })
    const settings = { ...KEEP_ALL, runDays: 30, payloadDays: 14 }
    const preview = await storage().previewRetention(tenant, settings, NOON)
    const oldest = NOON - 60 * DAY_MS
    assert.deepEqual(preview.runs, {
      exact: true,
      runs: 3,
      events: 6,
      bytes: 27,
      oldest,
      newest: NOON - 31 * DAY_MS,
    })
    assert.deepEqual(preview.payloads, {
      exact: true,
      runs: 4,
      events: 7,
      bytes: 34,
      oldest,
      newest: NOON - 20 * DAY_MS,
    })
    const none = await storage().previewRetention(tenant, KEEP_ALL, NOON)
    assert.deepEqual([none.runs.runs, none.payloads.runs, none.issues.count], [0, 0, 0])
    await set(tenant, settings)
    await storage().startRetention(env, NOON)
    assert.equal(await removeAll(env, 'runs'), 6)
  })

  test('a preview of many runs is estimated from the hours of usage', async () => {
    const tenant = await newEnvironment()
    const { environmentId: env } = tenant
    const count = LIMITS.retentionCounted + 200
    for (let start = 0; start < count; start += 200) {
      const events = Array.from({ length: 200 }, (_, index) => {
        return event({ runId: `run ${start + index}`, time: NOON - 50 * DAY_MS + (start + index) * 60_000 })
      })
      await storage().appendEvents(batch(env, events, { receivedAt: NOON - 40 * DAY_MS }))
    }
    const settings = { ...KEEP_ALL, runDays: 30 }
    const { runs } = await storage().previewRetention(tenant, settings, NOON)
    assert.deepEqual([runs.exact, runs.runs, runs.events], [false, count, count])
    assert.equal(runs.bytes, 2 * count)
  })
}
