import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { packPayloads } from '@tacho/server/jobs/data/pack-payloads.ts'
import { openSqliteStorage } from '@tacho/server/storage/sqlite/open.ts'
import { eventually } from '../../setup/eventually.ts'
import { append, event, newId, NOON, outcome, runOf, timelineOf } from '../../storage/suite/sample.ts'

const HOUR = 3_600_000

test('closed runs are packed when they are idle, open ones a day later, and one that fails stops no other', async (t) => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-pack-'))
  const storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble: (error) => assert.fail(error) })
  t.after(async () => {
    await storage.close()
    rmSync(directory, { recursive: true })
  })
  const workspaceId = newId()
  await storage.createWorkspace({ id: workspaceId, name: 'w', createdAt: NOON }, [])
  const environments = [newId(), newId()]
  const payload = `{"text":"${'closed '.repeat(100)}"}`
  for (const id of environments) {
    await storage.createEnvironment({ id, workspaceId, name: id, createdAt: NOON }, [])
    await append(storage, id, event({ runId: 'broken', payload }), outcome('COMPLETED', { runId: 'broken' }))
    await append(storage, id, event({ runId: 'closed', payload }), outcome('FAILED', { runId: 'closed' }))
    await append(storage, id, event({ runId: 'open', payload }))
  }
  const broken = new Set(await Promise.all(environments.map(async (id) => (await runOf(storage, id, 'broken')).id)))
  const unpacked = async () => {
    const lists = await Promise.all(environments.map((id) => storage.listUnpackedRuns(id, 0, 100)))
    return lists.map((runs) => runs.map(({ runId }) => runId))
  }

  let [now, passes, failures] = [NOON + 10 * 60_000, 0, 0]
  const job = packPayloads({
    storage: {
      ...storage,
      async listWorkspaces(page) {
        passes++
        return storage.listWorkspaces(page)
      },
      async readUnpacked(environmentId, run, ...rest) {
        if (broken.has(run)) throw new Error('A disk error')
        return storage.readUnpacked(environmentId, run, ...rest)
      },
    },
    now: () => now,
    onError: () => failures++,
    intervalMs: 10,
  })
  await eventually(() => passes > 1, 'a pass')
  assert.deepEqual(await unpacked(), Array(2).fill(['broken', 'closed', 'open']))
  now++
  await eventually(async () => (await unpacked()).flat().length === 4, 'closed runs are packed')
  assert.deepEqual(await unpacked(), Array(2).fill(['broken', 'open']))
  const all = passes
  await eventually(() => passes > all + 1, 'a pass')
  assert.deepEqual(await unpacked(), Array(2).fill(['broken', 'open']))
  now = NOON + 24 * HOUR + 1
  await eventually(async () => (await unpacked()).flat().length === 2, 'open runs are packed')
  assert.ok(failures > 0)
  await job.stop()
  for (const id of environments) assert.equal((await timelineOf(storage, id, 'closed'))[0]?.payload, payload)
})

test('an embedded store is left with full pages, whatever the sizes of its payloads', async (t) => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-pack-'))
  const storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble: (error) => assert.fail(error) })
  t.after(async () => {
    await storage.close()
    rmSync(directory, { recursive: true })
  })
  const [workspaceId, env] = [newId(), newId()]
  await storage.createWorkspace({ id: workspaceId, name: 'w', createdAt: NOON }, [])
  await storage.createEnvironment({ id: env, workspaceId, name: 'e', createdAt: NOON }, [])
  let seed = 1
  const random = (most: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % most
  const words = (count: number) => Array.from({ length: count }, () => random(1e6).toString(36)).join(' ')
  for (let run = 0; run < 150; run++) {
    const events = Array.from({ length: 20 + random(20) }, (_, n) => {
      const [label, payload] = [words(1 + random(14)), `{"text":"${words(random(120))}"}`]
      return event({ runId: `run ${run}`, label, payload, time: NOON + n })
    })
    await append(storage, env, ...events)
  }
  const job = packPayloads({ storage, now: () => NOON + 25 * HOUR, onError: (error) => assert.fail(String(error)) })
  await eventually(async () => (await storage.listUnpackedRuns(env, 0, 1)).length === 0, 'all runs are packed')
  await job.stop()
  const db = new Database(path.join(directory, 'tacho.db'), { readonly: true })
  const unused = db.prepare<[string], { part: number }>(
    'SELECT 1.0 * SUM(unused) / SUM(pgsize) AS part FROM dbstat WHERE name = ?',
  )
  const parts = ['events', 'payload_blocks'].map((table) => unused.get(table)?.part ?? 1)
  db.close()
  assert.ok(
    parts.every((part) => part < 0.12),
    parts.join(' '),
  )
})
