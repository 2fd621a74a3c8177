/** Opening a store reports that acknowledged writes are missing. */
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { restoreSqlite } from '../../../src/storage/sqlite/backup.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { append, event, newEnvironment } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

const FILES = ['tacho.db', 'tacho.db-wal', 'tacho.db-acknowledged']

/** The files of a store as kill -9 leaves them, with 20 events in the log. */
async function killedStore(t: TestContext): Promise<string> {
  const [directory, copy] = [temporaryDirectory(t), temporaryDirectory(t)]
  const first = await openStore(t, { directory })
  const env = await newEnvironment(first)
  await first.close()
  const storage = await openStore(t, { directory })
  for (let n = 0; n < 2; n++) await append(storage, env, ...Array.from({ length: 10 }, () => event()))
  for (const file of FILES) copyFileSync(path.join(directory, file), path.join(copy, file))
  return copy
}

async function opened(t: TestContext, directory: string): Promise<{ storage: Storage; warnings: string[] }> {
  const warnings: string[] = []
  const onWarning = (what: string, error: unknown) => warnings.push(`${what}: ${(error as Error).message}`)
  return { storage: await openStore(t, { directory, onWarning }), warnings }
}

async function missing(t: TestContext, directory: string): Promise<number> {
  const { storage, warnings } = await opened(t, directory)
  const check = (await storage.inspect()).find(({ name }) => name === 'acknowledged')
  await storage.close()
  assert.equal(check?.ok, warnings.length === 0)
  if (warnings.length === 0) return 0
  assert.match(warnings.join(), /^the store is older than its last acknowledgement: Up to \d+ acknowledged events/)
  return Number(/Up to (\d+)/.exec(check.detail)?.[1])
}

test('a killed store has all that it acknowledged', async (t) => {
  assert.equal(await missing(t, await killedStore(t)), 0)
})

test('a start says how many changes went with the write-ahead log, until there are new ones', async (t) => {
  const directory = await killedStore(t)
  rmSync(path.join(directory, 'tacho.db-wal'))
  assert.ok((await missing(t, directory)) >= 20)
  const { storage } = await opened(t, directory)
  await append(storage, await newEnvironment(storage), event())
  await storage.close()
  assert.equal(await missing(t, directory), 0)
})

test('a start says how many changes went with the end of the log, or with a changed byte of it', async (t) => {
  for (const damage of [cut, flip]) {
    const directory = await killedStore(t)
    damage(path.join(directory, 'tacho.db-wal'))
    assert.equal(await missing(t, directory), 10, damage.name)
  }
})

test('an emptied or missing store is refused, until the number beside it is removed', async (t) => {
  for (const empty of [(file: string) => truncateSync(file), rmSync]) {
    const directory = await killedStore(t)
    rmSync(path.join(directory, 'tacho.db-wal'))
    empty(path.join(directory, 'tacho.db'))
    const refused =
      /tacho\.db is empty, although \d+ changes of it were acknowledged\. Restore a backup \(tacho restore\)/
    await assert.rejects(openStore(t, { directory }), refused)
    await assert.rejects(openStore(t, { directory }), refused)
    rmSync(path.join(directory, 'tacho.db-acknowledged'))
    assert.equal(await missing(t, directory), 0)
  }
})

test('a truncated store is refused with a sentence that says what to do', async (t) => {
  const whole = readFileSync(path.join(await killedStore(t), 'tacho.db')).length
  for (const length of [60, 100, 4_096, whole / 2 + 77, whole - 4_096]) {
    const directory = await killedStore(t)
    rmSync(path.join(directory, 'tacho.db-wal'))
    truncateSync(path.join(directory, 'tacho.db'), length)
    await assert.rejects(
      openStore(t, { directory }),
      /^StoreRefused: The store in .* is damaged.* use tacho restore\.$/,
    )
  }
})

test('an older copy in place of the store is noticed, and a restored backup is not', async (t) => {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  const env = await newEnvironment(storage)
  const backup = path.join(temporaryDirectory(t), 'backup.db')
  assert.ok((await storage.backup(backup)).ok)
  await append(storage, env, event(), event())
  await storage.close()
  restoreSqlite({ from: backup, directory, replace: true })
  assert.equal(existsSync(path.join(directory, 'tacho.db-acknowledged')), false)
  assert.equal(await missing(t, directory), 0)
  const other = await killedStore(t)
  rmSync(path.join(other, 'tacho.db-wal'))
  copyFileSync(backup, path.join(other, 'tacho.db'))
  assert.ok((await missing(t, other)) >= 20)
})

test('a store without the number, or with a damaged one, opens', async (t) => {
  for (const text of ['', 'x']) {
    const directory = await killedStore(t)
    writeFileSync(path.join(directory, 'tacho.db-acknowledged'), text)
    assert.equal(await missing(t, directory), 0)
  }
})

function cut(log: string): void {
  truncateSync(log, readFileSync(log).length - 1)
}

/** Changes a bit in the last frame of the log. */
function flip(log: string): void {
  const bytes = readFileSync(log)
  const at = bytes.length - 100
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(log, bytes)
}
