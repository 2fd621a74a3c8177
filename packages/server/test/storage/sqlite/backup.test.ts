import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import { restoreSqlite, verifyBackup } from '../../../src/storage/sqlite/backup.ts'
import { StoreRefused } from '../../../src/storage/engine/store.ts'
import { append, event, newId, runOf, timelineOf } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

const refused = (message: RegExp) => (error: unknown) => error instanceof StoreRefused && message.test(error.message)

/** A backup of a store with one run, which has one event. */
async function backedUp(t: TestContext) {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  const env = newId()
  await append(storage, env, event({ payload: '{"kept":true}' }))
  const file = path.join(directory, 'backup.db')
  const result = await storage.backup(file)
  assert.deepEqual(result, { ok: true, bytes: statSync(file).size })
  return { storage, env, file, directory }
}

test('a backup taken during writes is a consistent snapshot', async (t) => {
  const { storage, env, directory } = await backedUp(t)
  let writing = true
  const writes = (async () => {
    while (writing) await append(storage, env, event({ runId: 'busy' }), event({ runId: 'busy' }))
  })()
  const file = path.join(directory, 'busy.db')
  await storage.backup(file)
  writing = false
  await writes
  const target = temporaryDirectory(t)
  restoreSqlite({ from: file, directory: target })
  const restored = await openStore(t, { directory: target })
  const run = await restored.findRun(env, 'busy')
  const events = run === null ? [] : await timelineOf(restored, env, 'busy')
  assert.equal(events.length, run?.eventCount ?? 0)
  assert.equal(events.length % 2, 0)
  assert.ok((await restored.inspect()).every(({ ok }) => ok))
})

test('a backup never touches a file that exists', async (t) => {
  const { storage, directory } = await backedUp(t)
  for (const content of ['', 'mine']) {
    const file = path.join(directory, `file ${content}`)
    writeFileSync(file, content)
    assert.deepEqual(await storage.backup(file), { ok: false, reason: 'exists' })
    assert.equal(readFileSync(file, 'utf8'), content)
  }
})

test('a backup that fails leaves no file', async (t) => {
  const { storage, directory } = await backedUp(t)
  const file = path.join(directory, 'no', 'such', 'folder', 'backup.db')
  await assert.rejects(storage.backup(file))
  assert.equal(existsSync(file), false)
})

test('a restored store has the data of the backup and accepts new events', async (t) => {
  const { env, file } = await backedUp(t)
  const directory = path.join(temporaryDirectory(t), 'new')
  const { storeBytes: bytes, sha256, counts } = verifyBackup(file)
  assert.deepEqual(restoreSqlite({ from: file, directory }), { bytes, replaced: null, sha256, counts })
  assert.deepEqual(counts, { runs: 1, events: 1, policies: 0, people: 0 })
  const restored = await openStore(t, { directory })
  assert.equal((await timelineOf(restored, env))[0]?.payload, '{"kept":true}')
  await append(restored, env, event())
  assert.equal((await runOf(restored, env)).eventCount, 2)
})

test('an existing store is replaced only on request, and then kept as a whole under another name', async (t) => {
  const { storage, env, file, directory } = await backedUp(t)
  await append(storage, env, event())
  assert.throws(() => restoreSqlite({ from: file, directory, replace: true }), refused(/open in another process/))
  await storage.close()
  assert.throws(() => restoreSqlite({ from: file, directory }), refused(/ already contains a store/))
  const { replaced } = restoreSqlite({ from: file, directory, replace: true })
  assert.ok(replaced !== null && existsSync(replaced))
  const restored = await openStore(t, { directory })
  assert.equal((await runOf(restored, env)).eventCount, 1)
  const aside = new Database(replaced, { readonly: true })
  assert.equal(aside.prepare('SELECT event_count FROM runs').pluck().get(), 2)
  aside.close()
})

test('a damaged backup, or one with an unknown schema, is refused and nothing changes', async (t) => {
  const { file } = await backedUp(t)
  const directory = temporaryDirectory(t)
  const refuse = (from: string, message: RegExp) => {
    assert.throws(() => restoreSqlite({ from, directory }), refused(message))
    assert.deepEqual(readdirSync(directory), [])
  }
  const folder = temporaryDirectory(t)
  const changed = (name: string, change: (db: Database.Database) => void) => {
    const copy = path.join(folder, name)
    writeFileSync(copy, readFileSync(file))
    const db = new Database(copy)
    change(db)
    db.close()
    return copy
  }
  refuse(path.join(folder, 'missing.db'), /File .* does not exist/)
  const text = path.join(folder, 'text')
  writeFileSync(text, 'no database at all, but longer than a header '.repeat(100))
  refuse(text, /cannot be read as a Tacho store/)
  refuse(
    changed('theirs', (db) => db.pragma('application_id = 1')),
    /is not a backup of a Tacho store/,
  )
  refuse(
    changed('newer', (db) => db.exec("INSERT INTO migrations VALUES (999, 'x', 'y', 1)")),
    /has schema 999/,
  )
  const cut = changed('cut', () => undefined)
  truncateSync(cut, Math.floor(statSync(cut).size / 2 / 4096) * 4096)
  refuse(cut, /is damaged|cannot be read/)
  const inUse = changed('in use', () => undefined)
  writeFileSync(`${inUse}-wal`, '')
  refuse(inUse, /a store in use, not a backup/)
})

test('a backup with one changed bit, without its last byte, or with more behind it is refused before anything is replaced', async (t) => {
  const { storage, file, directory } = await backedUp(t)
  await storage.close()
  const whole = readFileSync(file)
  const before = readFileSync(path.join(directory, 'tacho.db'))
  const flipped = (at: number) => {
    const copy = Buffer.from(whole)
    copy[at] = (copy[at] ?? 0) ^ 1
    return copy
  }
  // Some of these places are in the counts and in the checksum itself.
  const places = Array.from({ length: 24 }, (_, n) => Math.floor(((n + 0.5) * whole.length) / 24))
  const damaged = [...places, whole.length - 1, whole.length - 20, whole.length - 300].map(flipped)
  damaged.push(
    whole.subarray(0, -1),
    Buffer.concat([whole, Buffer.alloc(4_096)]),
    Buffer.concat([whole, Buffer.from([0])]),
  )
  const copy = path.join(temporaryDirectory(t), 'damaged.db')
  for (const bytes of damaged) {
    writeFileSync(copy, bytes)
    assert.throws(() => verifyBackup(copy), StoreRefused)
    assert.throws(() => restoreSqlite({ from: copy, directory, replace: true }), StoreRefused)
  }
  assert.ok(readFileSync(path.join(directory, 'tacho.db')).equals(before))
  assert.ok(!readdirSync(directory).some((name) => /restoring|replaced/.test(name)))
})

test('a backup of a build before checksums is restored only on request', async (t) => {
  const { env, file } = await backedUp(t)
  truncateSync(file, verifyBackup(file).storeBytes)
  const directory = temporaryDirectory(t)
  assert.throws(() => restoreSqlite({ from: file, directory }), refused(/has no checksum .* --unverified/))
  assert.equal(restoreSqlite({ from: file, directory, unverified: true }).sha256, null)
  assert.equal((await runOf(await openStore(t, { directory }), env)).eventCount, 1)
})
