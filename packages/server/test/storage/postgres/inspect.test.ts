/** A node reports facts about its database, and enforces settings. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPayloadSlices } from '../../../src/storage/engine/store-checks.ts'
import { append, event, newEnvironment, newId, NOON, runOf } from '../suite/sample.ts'
import { useTestDatabase } from './store-trouble.ts'

const { query, url, withStorage } = useTestDatabase()

test('commits are durable whatever the settings of the database', async () => {
  const name = new URL(url()).pathname.slice(1)
  await query(`ALTER DATABASE ${name} SET synchronous_commit = off`)
  await withStorage({}, async (storage) => {
    const durability = (await storage.inspect()).find((check) => check.name === 'durability')
    assert.match(durability?.detail ?? '', /synchronous_commit on/)
  })
  await query(`ALTER DATABASE ${name} RESET synchronous_commit`)
})

test('the checks report a setting that may lose data, and too few connections', async () => {
  await withStorage({ poolSize: 10_000 }, async (storage) => {
    const checks = Object.fromEntries((await storage.inspect()).map(({ name, ok, detail }) => [name, { ok, detail }]))
    const { rows } = await query("SELECT current_setting('fsync') = 'on' AS safe")
    assert.equal(checks['durability']?.ok, rows[0]?.safe)
    assert.deepEqual([checks['connections']?.ok, checks['clock']?.ok, checks['schema']?.ok], [false, true, true])
    assert.match(checks['database']?.detail ?? '', /^PostgreSQL \d+/)
  })
})

test('the payloads of a large database are checked in slices, one with each doctor', async () => {
  await withStorage({ slices: createPayloadSlices({ largeBytes: 0, budgetMs: 0 }) }, async (storage) => {
    const env = await newEnvironment(storage)
    await append(
      storage,
      env,
      ...Array.from({ length: 150 }, (_, n) => event({ eventId: `e${n}`, payload: '{"a":1}' })),
    )
    const details: string[] = []
    for (let n = 0; n < 20 && !details.at(-1)?.startsWith('All'); n++) {
      details.push((await storage.inspect()).find(({ name }) => name === 'payloads')?.detail ?? '')
    }
    assert.match(details[0] ?? '', /^The first 100 payloads match their checksums so far/)
    assert.match(details.at(-1) ?? '', /^All \d+ payloads match their checksums$/)
  })
})

test('the gauges count commits, bytes and the time of other writes; backups are unsupported', async () => {
  await withStorage({}, async (storage) => {
    await append(storage, newId(), event(), event())
    const { commits, committedEvents, actMs, storeBytes, diskFreeBytes } = storage.gauges()
    assert.deepEqual([commits, committedEvents, actMs, diskFreeBytes], [1, 2, 0, null])
    await storage.secret('name', 'value')
    assert.ok(storage.gauges().actMs > 0)
    assert.ok((storeBytes ?? 0) > 1_000_000)
    assert.deepEqual(await storage.backup('/nowhere'), { ok: false, reason: 'unsupported' })
  })
})

test('texts too long for an index are stored and found', async () => {
  await withStorage({}, async (storage) => {
    const env = newId()
    const long = 'x'.repeat(200_000)
    const sent = event({ sessionId: long, agentId: long, agentName: long, schemaVersion: long })
    assert.deepEqual(await append(storage, env, sent, event({ runId: 'other', agentName: `${long}y` })), [
      'stored',
      'stored',
    ])
    assert.deepEqual(await append(storage, env, { ...sent, agentName: `${long}z` }), ['duplicate'])
    const run = await runOf(storage, env)
    assert.deepEqual([run.sessionId, run.agentName, run.differingRetries], [long, long, 1])
    assert.deepEqual((await storage.listRuns(env, { session: long }, { limit: 2, after: null })).rows, [run])
    const [hour] = (await storage.readUsage(env, 0, 2 * NOON, { limit: 9, after: null })).rows
    assert.ok(hour)
  })
})
