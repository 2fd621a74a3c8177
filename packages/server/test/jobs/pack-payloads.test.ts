import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { packPayloads } from '@tacho/server/jobs/pack-payloads.ts'
import { openSqliteStorage } from '@tacho/server/storage/sqlite/open.ts'
import { eventually } from '../setup/eventually.ts'
import { append, event, newId, NOON, outcome, runOf, timelineOf } from '../storage/suite/sample.ts'

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
