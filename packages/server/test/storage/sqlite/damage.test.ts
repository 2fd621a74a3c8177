/** A file whose bytes changed on disk. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import type { Storage } from '../../../src/storage/storage.ts'
import { createPayloadSlices } from '../../../src/storage/engine/store-checks.ts'
import { StoreDamaged } from '../../../src/storage/engine/store.ts'
import { deploy, newHome, policyVersion } from '../suite/policies/configuration-sample.ts'
import { append, event, newEnvironment, NOON, runOf, timelineOf } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

const check = async (storage: Storage, name: string) => (await storage.inspect()).find((one) => one.name === name)

/** A closed store with two events of one run. */
async function closedStore(t: TestContext) {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  const env = await newEnvironment(storage)
  const events = ['first', 'second'].map((eventId, n) => event({ eventId, payload: `{"amount":${(n + 1) * 100}}` }))
  await append(storage, env, ...events)
  await storage.close()
  return { directory, env, file: path.join(directory, 'tacho.db') }
}

test('one changed byte of a payload is not answered as data, and doctor names its event', async (t) => {
  const { directory, env, file } = await closedStore(t)
  const bytes = readFileSync(file)
  bytes.write('9', bytes.indexOf('{"amount":100}') + '{"amount":'.length)
  writeFileSync(file, bytes)
  const warnings: string[] = []
  const storage = await openStore(t, {
    directory,
    onWarning: (what, error) => warnings.push(`${what}: ${String(error)}`),
  })
  const rows = await timelineOf(storage, env)
  assert.deepEqual(
    rows.map(({ eventId, payload, payloadDamaged }) => [eventId, payload, payloadDamaged]),
    [
      ['first', '{}', true],
      ['second', '{"amount":200}', undefined],
    ],
  )
  assert.deepEqual(warnings, [`a stored payload is damaged: Error: Event "first" of environment ${env}`])
  assert.equal((await check(storage, 'integrity'))?.ok, true)
  const found = await check(storage, 'payloads')
  assert.equal(found?.ok, false)
  assert.match(found.detail, /^1 of 2 payloads are damaged, the first of event "first"/)
})

test('a policy whose bytes changed wherever they lie is not served after a restart, and doctor names it', async (t) => {
  const directory = temporaryDirectory(t)
  const first = await openStore(t, { directory })
  const { workspaceId, production } = await newHome(first)
  const condition = 'tool.input.amount > 1000.0'
  await first.createPolicy({ id: 'large', workspaceId, createdAt: NOON }, policyVersion({ condition }), [])
  await deploy(first, production, ['policy', 'large', 1])
  await first.close()
  const file = path.join(directory, 'tacho.db')
  const changed = readFileSync(file, 'latin1').replaceAll('> 1000.0', '> 9000.0')
  writeFileSync(file, changed, 'latin1')
  const storage = await openStore(t, { directory })
  await assert.rejects(storage.readConfiguration(production, null), { code: 'configuration_damaged' })
  assert.equal((await storage.findPolicy(workspaceId, 'large'))?.newest.condition, '')
  const found = await check(storage, 'configuration')
  assert.equal(found?.ok, false)
  assert.match(found.detail, /^Damaged: version 1 of policy "large" \(\S+\); configuration in force/)
})

test('the payloads of a large store are checked in slices, one with each doctor', async (t) => {
  const slices = createPayloadSlices({ largeBytes: 0, budgetMs: 0 })
  const storage = await openStore(t, { slices })
  const env = await newEnvironment(storage)
  const events = Array.from({ length: 250 }, (_, n) => event({ eventId: `e${n}`, payload: `{"amount":${n}}` }))
  await append(storage, env, ...events)
  const details: string[] = []
  for (let n = 0; n < 4; n++) details.push((await check(storage, 'payloads'))?.detail ?? '')
  assert.match(details[0] ?? '', /^The first 100 payloads match their checksums so far/)
  assert.match(details[1] ?? '', /^The first 200 payloads/)
  assert.equal(details[2], 'All 250 payloads match their checksums')
  assert.match(details[3] ?? '', /^The first 100 /)
  assert.match((await check(storage, 'integrity'))?.detail ?? '', /rows are read in slices/)
})

test('a damaged page ends readiness and refuses events, and the reason is logged once', async (t) => {
  const { directory, env, file } = await closedStore(t)
  const bytes = readFileSync(file)
  const { start, end } = pageOf(file, 'events')
  bytes.fill(0xff, start, end)
  writeFileSync(file, bytes)
  const warnings: string[] = []
  const storage = await openStore(t, { directory, onWarning: (what) => warnings.push(what) })
  const run = await runOf(storage, env)
  assert.equal(storage.damage(), null)
  const page = { after: null, limit: 10, pageBytes: 1_000_000 }
  for (let tries = 0; tries < 2; tries++) {
    await assert.rejects(storage.listEvents(env, run.id, page), StoreDamaged)
  }
  assert.match(storage.damage() ?? '', /^The store is damaged: .* \(SQLITE_CORRUPT\w*\)\. Restore a backup$/)
  assert.equal(storage.writesRefused(), 'storage_unavailable')
  await assert.rejects(append(storage, env, event()), { code: 'storage_unavailable' })
  assert.deepEqual(warnings, ['the store is damaged: events are refused'])
  assert.equal((await check(storage, 'integrity'))?.ok, false)
})

test('doctor finds an entry of an index that its table does not have', async (t) => {
  const { directory, file } = await closedStore(t)
  const bytes = readFileSync(file)
  const { start, end } = pageOf(file, 'sqlite_autoindex_events_1')
  const at = bytes.indexOf('first', start)
  assert.ok(at > start && at < end)
  bytes.write('g', at)
  writeFileSync(file, bytes)
  const storage = await openStore(t, { directory })
  const found = await check(storage, 'integrity')
  assert.equal(found?.ok, false)
  assert.match(found.detail, /missing from index/)
})

test('doctor says that the store is damaged, if its file can no longer be opened while the service runs', async (t) => {
  const { directory, file } = await closedStore(t)
  const bytes = readFileSync(file)
  const storage = await openStore(t, { directory })
  writeFileSync(file, Buffer.alloc(bytes.length, 0xff))
  const found = await check(storage, 'integrity')
  writeFileSync(file, bytes)
  assert.deepEqual(found, {
    name: 'integrity',
    ok: false,
    detail: 'The store is damaged: file is not a database (SQLITE_NOTADB). Restore a backup',
  })
})

/** Place of the first page of a table or index in the file. */
function pageOf(file: string, name: string): { start: number; end: number } {
  const db = new Database(file)
  const page = db.prepare<[string], number>('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(name) ?? 0
  const size = db.pragma('page_size', { simple: true }) as number
  db.close()
  return { start: (page - 1) * size, end: page * size }
}
