import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import type { Storage } from '../../../src/storage/storage.ts'
import { append, event, newId, timelineOf } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

const MIB = 1_048_576
/** From 80 MiB on the writer waits for readers; a running commit may exceed that. */
const BOUND = 90 * MIB
const payload = JSON.stringify({ text: 'x'.repeat(20_000) })

const logBytes = (directory: string) =>
  statSync(path.join(directory, 'tacho.db-wal'), { throwIfNoEntry: false })?.size ?? 0

async function write(storage: Storage, mib: number, watch: () => void = () => undefined) {
  const env = newId()
  for (let written = 0; written < mib * MIB; written += 50 * payload.length) {
    await append(storage, env, ...Array.from({ length: 50 }, () => event({ payload })))
    watch()
  }
  return env
}

test('the log stays bounded under constant writes and short reads', async (t) => {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  let largest = 0
  let writing = true
  const reading = (async () => {
    const env = await write(storage, 1)
    while (writing) await timelineOf(storage, env)
  })()
  await write(storage, 120, () => {
    largest = Math.max(largest, logBytes(directory))
  })
  writing = false
  await reading
  assert.ok(largest < BOUND, `${largest} bytes`)
})

test('the log grows during a long read and shrinks after it', async (t) => {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  await write(storage, 1)
  const reader = new Database(path.join(directory, 'tacho.db'), { readonly: true })
  reader.exec('BEGIN')
  const seen = reader.prepare<[], number>('SELECT count(*) FROM events').pluck()
  const before = seen.get()
  await write(storage, 100)
  assert.equal(seen.get(), before)
  assert.ok(logBytes(directory) > 90 * MIB)
  reader.exec('COMMIT')
  await write(storage, 70)
  assert.ok(logBytes(directory) < BOUND, `${logBytes(directory)} bytes`)
  reader.close()
})

test('a closed store has no log', async (t) => {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  const env = await write(storage, 2)
  assert.ok(logBytes(directory) > 0)
  await storage.close()
  assert.equal(logBytes(directory), 0)
  const again = await openStore(t, { directory })
  assert.ok((await timelineOf(again, env)).length > 0)
})
