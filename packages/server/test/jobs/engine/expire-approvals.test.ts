import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { expireOverdueApprovals } from '../../../src/jobs/engine/timers.ts'
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'
import { ask, MINUTE } from '../../storage/suite/approvals/approval-sample.ts'
import { NOON } from '../../storage/suite/sample.ts'
import { eventually } from '../../setup/eventually.ts'

let storage: Storage
const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-expire-'))
before(async () => {
  storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble: (error) => assert.fail(error) })
})
after(async () => {
  await storage.close()
  rmSync(directory, { recursive: true })
})

test('every overdue approval in any environment is expired, and nothing else', async () => {
  let now = NOON
  const [one, two] = [randomUUID(), randomUUID()]
  await Promise.all(Array.from({ length: 450 }, () => ask(storage, one)))
  const [overdue, later] = [await ask(storage, two), await ask(storage, two, { expiresAt: NOON + 10 * MINUTE })]
  const job = expireOverdueApprovals({
    applyHeld: async () => undefined,
    storage,
    now: () => now,
    onError: (error) => assert.fail(error as Error),
    intervalMs: 5,
  })
  const expired = async (env: string) =>
    (await storage.listApprovals(env, { status: 'EXPIRED' }, { limit: 1_000, after: null })).rows
  await wait(20)
  assert.deepEqual(await expired(one), [])
  now += 5 * MINUTE
  await eventually(async () => {
    assert.ok((await expired(one)).length >= 450)
    return (await expired(two)).length >= 1
  }, 'overdue approvals to expire')
  assert.equal((await storage.findApproval(two, overdue.id))?.status, 'EXPIRED')
  assert.equal((await storage.findApproval(two, later.id))?.status, 'PENDING')
  await job.stop()
})

test('a failed store call is retried', async () => {
  const errors: unknown[] = []
  const failing = {
    listOverdueEnvironments: () => Promise.reject(new StorageError('storage_unavailable', 'away')),
    expireApprovals: storage.expireApprovals,
  }
  const job = expireOverdueApprovals({
    applyHeld: async () => undefined,
    storage: failing,
    now: () => NOON,
    onError: (error) => errors.push(error),
    intervalMs: 1,
  })
  await eventually(() => errors.length >= 3, 'three failed attempts')
  await job.stop()
})
