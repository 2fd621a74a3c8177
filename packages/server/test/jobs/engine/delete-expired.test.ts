import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { deleteExpired } from '@tacho/server/jobs/engine/timers.ts'
import { IDEMPOTENCY_KEPT_MS } from '@tacho/server/storage/engine/work.ts'
import { openSqliteStorage } from '@tacho/server/storage/sqlite/open.ts'
import { eventually } from '../../setup/eventually.ts'
import { NOON } from '../../storage/suite/sample.ts'

test('idempotency keys are deleted when their time is over, however many there are, and not before', async (t) => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-expired-'))
  const storage = await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble: (error) => assert.fail(error) })
  t.after(async () => {
    await storage.close()
    rmSync(directory, { recursive: true })
  })
  const claim = (name: string, now: number) =>
    storage.claimIdempotencyKey(
      { actorKind: 'token', actorId: 'a', key: name },
      { fingerprint: 'f', now, freeUntil: 0, deadUntil: 0 },
    )
  await Promise.all(Array.from({ length: 501 }, (_, n) => claim(`old ${n}`, NOON - 1)))
  await claim('young', NOON)
  let runs = 0
  const job = deleteExpired({
    storage: {
      deleteOldIdempotencyKeys: storage.deleteOldIdempotencyKeys,
      async deleteExpiredSignIns(now) {
        runs += 1
        return storage.deleteExpiredSignIns(now)
      },
    },
    now: () => NOON + IDEMPOTENCY_KEPT_MS,
    onError: (error) => assert.fail(String(error)),
  })
  await eventually(() => runs > 0, 'a run')
  await job.stop()
  assert.equal(await claim('young', NOON), 'running')
  assert.equal(await storage.deleteOldIdempotencyKeys(NOON, 9), 0)
})
