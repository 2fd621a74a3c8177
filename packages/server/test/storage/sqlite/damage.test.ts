/** A file whose bytes changed on disk. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import type { Storage } from '../../../src/storage/storage.ts'
import { StoreDamaged } from '../../../src/storage/store.ts'
import { append, event, newEnvironment, runOf, timelineOf } from '../suite/sample.ts'
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

/** Where the first page of a table or index is in the file. */
function pageOf(file: string, name: string): { start: number; end: number } {
  const db = new Database(file)
  const page = db.prepare<[string], number>('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(name) ?? 0
  const size = db.pragma('page_size', { simple: true }) as number
  db.close()
  return { start: (page - 1) * size, end: page * size }
}
