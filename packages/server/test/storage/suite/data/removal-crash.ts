/** Kills a process repeatedly while it removes runs. In the end, exactly the right rows are removed. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { KEEP_ALL } from '../../../../src/storage/data/retention.ts'
import { DAY_MS } from '../../../../src/storage/engine/times.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { BUILT_THREADS } from '../../../setup/built-threads.ts'
import { newErasure } from './erasure-sample.ts'
import { auditEntry } from '../issues/issue-sample.ts'
import { batch, event, newId } from '../sample.ts'

export interface CrashStore {
  /** The store that the process opens: a directory or a database address. */
  place: string
  open(): Promise<Storage>
  query(text: string): Promise<Record<string, unknown>[]>
}

const KILLS = 5
/** More events than several slices remove. */
const LARGE = 700
const SMALL = 5

export async function checkKilledRemovals({ place, open, query }: CrashStore): Promise<void> {
  const storage = await open()
  const now = Date.now()
  const workspaceId = newId()
  await storage.createWorkspace({ id: workspaceId, name: workspaceId, createdAt: now }, [])
  const newEnvironment = async () => {
    const id = newId()
    await storage.createEnvironment({ id, workspaceId, name: id, createdAt: now }, [])
    return id
  }
  const record = async (env: string, runId: string, count: number, days: number, sessionId: string | null = null) => {
    const time = now - days * DAY_MS
    for (let start = 0; start < count; start += 100) {
      const size = Math.min(100, count - start)
      const events = Array.from({ length: size }, () => event({ runId, sessionId, time }))
      await storage.appendEvents(batch(env, events, { receivedAt: time }))
    }
  }
  const [retained, erased, deleted] = [await newEnvironment(), await newEnvironment(), await newEnvironment()]
  for (const env of [retained, deleted]) {
    await record(env, 'large', LARGE, 40)
    for (let n = 0; n < 60; n++) await record(env, `old ${n}`, SMALL, 40)
  }
  await record(retained, 'pinned', SMALL, 40)
  await storage.pinRun(retained, 'pinned', now, [])
  await record(retained, 'young', LARGE, 20)
  const settings = { ...KEEP_ALL, runDays: 30 }
  assert.ok(await storage.changeRetention(workspaceId, retained, { before: KEEP_ALL, settings }, now, []))
  await record(erased, 'gone', LARGE, 1, 'session')
  await record(erased, 'gone too', SMALL, 1, 'session')
  await record(erased, 'kept', LARGE, 1, 'other')
  // The request that began the erasure died too, so the job must do all of it.
  const erasure = newErasure(erased, { kind: 'session', subject: 'session', createdAt: now - 60_000 })
  const order = { ...erasure, requestedBy: { ...erasure.requestedBy, workspaceId } }
  await storage.createErasure(order, [])
  await storage.changeEnvironment(deleted, { archivedAt: now }, [])
  await storage.orderDeletion(deleted, now, { ...auditEntry(deleted, 'environment.delete'), workspaceId })
  await storage.close()

  const killed: (string | null)[] = []
  for (let kill = 0; kill < KILLS; kill++) killed.push(await removeUntil(place, 1 + kill))
  assert.ok(killed.includes('SIGKILL'))
  assert.equal(await removeUntil(place, Infinity), null)

  const runs = await query('SELECT number, run_id AS id, event_count AS count FROM runs ORDER BY run_id')
  const expected = [
    ['kept', LARGE],
    ['pinned', SMALL],
    ['young', LARGE],
  ]
  assert.deepEqual(
    runs.map(({ id, count }) => [id, Number(count)]),
    expected,
  )
  const numbers = new Map(runs.map(({ number, id }) => [number, id]))
  const events = await query('SELECT run, COUNT(*) AS count FROM events GROUP BY run')
  const eventsOf = events.map(({ run, count }) => [numbers.get(run) ?? 'no run', Number(count)] as [string, number])
  assert.deepEqual(
    eventsOf.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    expected,
  )
  assert.deepEqual(await query('SELECT number FROM removed_runs'), [])
  const again = await open()
  const done = await again.findErasure(erased, erasure.id)
  assert.deepEqual([done?.status, done?.runs, done?.eventsDeleted], ['DONE', 2, LARGE + SMALL])
  const { progress } = await again.readRetention({ workspaceId, environmentId: retained })
  assert.deepEqual([progress?.total.runs, progress?.total.events], [61, LARGE + 60 * SMALL])
  const { rows } = await again.listAudit(workspaceId, { limit: 10, after: null })
  const receipts = rows.filter(({ action }) => action.endsWith('.finish'))
  assert.deepEqual(receipts.map(({ action }) => action).toSorted(), ['environment.delete.finish', 'erasure.finish'])
  const counted = receipts.map(({ detail }) => JSON.parse(detail) as { rows?: Record<string, number> })
  const rowsOf = counted.flatMap(({ rows: given }) => (given ? [given] : []))
  assert.deepEqual([rowsOf[0]?.['runs'], rowsOf[0]?.['events']], [61, LARGE + 60 * SMALL])
  await again.close()
}

/** Kills the process while it works on a slice. Returns the signal that ended it; null: it finished before. */
async function removeUntil(place: string, slices: number): Promise<string | null> {
  const program = path.join(import.meta.dirname, 'remover.ts')
  const child = spawn(process.execPath, [...BUILT_THREADS, program, place], { stdio: ['ignore', 'pipe', 'inherit'] })
  let told = ''
  child.stdout.on('data', (chunk: Buffer) => {
    told += chunk.toString()
    if (told.split('\n').length > slices) child.kill('SIGKILL')
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  assert.ok(signal === 'SIGKILL' || code === 0, `exit ${code}`)
  return signal
}
