import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCurrentApprovals } from '../../../src/http/approvals/approval-reader.ts'
import type { ApprovalRow } from '../../../src/storage/approvals/approvals.ts'
import { StorageError } from '../../../src/storage/engine/store.ts'

/** Rows that are PENDING until the store is asked to expire them. Counts how often that happens. */
function open(count: number, given: { fail?: boolean } = {}) {
  const rows = Array.from(
    { length: count },
    (_, n) => ({ id: `${n}`, status: 'PENDING', expiresAt: 1_000 }) as ApprovalRow,
  )
  const asked: number[] = []
  const clock = { now: 1_000 }
  let changes = 0
  const current = createCurrentApprovals({
    storage: {
      findApproval: async (_env, id) => rows.find((row) => row.id === id) ?? null,
      async expireApprovals(_env, now, limit) {
        if (given.fail) throw new StorageError('storage_unavailable', 'away')
        await new Promise(setImmediate)
        const overdue = rows.filter((row) => row.status === 'PENDING' && row.expiresAt <= now).slice(0, limit)
        for (const row of overdue) row.status = 'EXPIRED'
        asked.push(overdue.length)
        return overdue.length
      },
    },
    now: () => clock.now,
    onChange: () => (changes += 1),
  })
  return { rows, asked, clock, current, changes: () => changes }
}

test('a thousand concurrent reads share the acts that expire overdue approvals', async () => {
  const { asked, current, changes } = open(1_000)
  const found = await Promise.all(Array.from({ length: 1_000 }, (_, n) => current.find('env', `${n}`)))
  assert.ok(found.every((row) => row?.status === 'EXPIRED'))
  // Five full rounds and one that finds nothing more. Reads that arrive meanwhile may cause a second pass.
  assert.ok(asked.length <= 8, asked.join())
  assert.equal(changes(), 5)
})

test('an approval that is not overdue or does not exist costs no act', async () => {
  const { asked, clock, current } = open(1)
  clock.now = 999
  assert.equal((await current.find('env', '0'))?.status, 'PENDING')
  assert.equal(await current.find('env', '1'), null)
  assert.deepEqual(asked, [])
})

test('no read returns PENDING or EXPIRED when the store cannot tell which', async () => {
  const { current } = open(1, { fail: true })
  for (let n = 0; n < 2; n++) await assert.rejects(current.find('env', '0'), StorageError)
})

test('an approval that one reading of the clock finds overdue expires, however far the clock goes back after it', async () => {
  const { clock, current } = open(1)
  let reading = 1_000
  Object.defineProperty(clock, 'now', { get: () => reading-- })
  assert.equal((await current.find('env', '0'))?.status, 'EXPIRED')
})

test('a clock that jumps does not cause an endless loop', async () => {
  const { current, rows } = open(0)
  rows.push({ id: 'x', status: 'PENDING', expiresAt: 1_000 } as ApprovalRow)
  let reads = 0
  const neverEnding = current.read('env', async () => {
    reads += 1
    return { rows: [{ id: `${reads}`, status: 'PENDING', expiresAt: 0 } as ApprovalRow], more: false }
  })
  await assert.rejects(neverEnding, { code: 'overloaded' })
  assert.equal(reads, 5)
})
