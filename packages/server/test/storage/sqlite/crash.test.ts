import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { BUILT_THREADS } from '../../setup/built-threads.ts'
import { checkKilledRemovals } from '../suite/data/removal-crash.ts'
import { newId, NOON, runOf, timelineOf } from '../suite/sample.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

const KILLS = 20
const RULE = 'whenever the process is killed, what it acknowledged is there once, and sums fit the events'
const RUNS = [0, 1, 2, 3, 4].map((n) => `run ${n}`)

/** Runs a writing process, kills it after some acknowledgements, and returns the ids it printed. */
async function writeAndKill(directory: string, environmentId: string, lines: number): Promise<string[]> {
  const program = path.join(import.meta.dirname, 'crash-writer.ts')
  const args = [...BUILT_THREADS, program, directory, environmentId]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let told = ''
  child.stdout.on('data', (chunk: Buffer) => {
    told += chunk.toString()
    if (told.split('\n').length > lines) child.kill('SIGKILL')
  })
  const [, signal] = (await once(child, 'close')) as [number | null, string | null]
  assert.equal(signal, 'SIGKILL')
  // The last line may be cut off.
  return told.slice(0, told.lastIndexOf('\n')).split('\n')
}

test(RULE, { timeout: 900_000 }, async (t) => {
  const directory = temporaryDirectory(t)
  const environmentId = newId()
  const acknowledged: string[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    acknowledged.push(...(await writeAndKill(directory, environmentId, 20 + kill * 15)))
  }
  const storage = await openStore(t, { directory })
  const stored: string[] = []
  for (const runId of RUNS) {
    const run = await runOf(storage, environmentId, runId)
    const events = await timelineOf(storage, environmentId, runId)
    stored.push(...events.map(({ eventId }) => `${runId}\t${eventId}`))
    const sums = [run.eventCount, run.promptTokens, run.completionTokens, run.totalTokens, run.costNanos]
    assert.deepEqual(
      sums,
      [1, 1, 2, 3, 4].map((each) => each * events.length),
    )
  }
  const all = new Set(stored)
  assert.equal(all.size, stored.length)
  assert.deepEqual(
    acknowledged.filter((event) => !all.has(event)),
    [],
  )
  const [hour] = (await storage.readUsage(environmentId, NOON, NOON + 3_600_000, { limit: 9, after: null })).rows
  assert.deepEqual([hour?.events, hour?.totalTokens], [stored.length, 3 * stored.length])
  assert.ok((await storage.inspect()).every(({ ok }) => ok))
})

test('kill -9 in the middle of removals keeps nothing that should go and removes nothing that should stay', async (t) => {
  const directory = temporaryDirectory(t)
  await checkKilledRemovals({
    place: directory,
    open: () => openStore(t, { directory, readers: 1 }),
    async query(text) {
      const db = new Database(path.join(directory, 'tacho.db'), { readonly: true })
      const rows = db.prepare<[], Record<string, unknown>>(text).all()
      db.close()
      return rows
    },
  })
})
