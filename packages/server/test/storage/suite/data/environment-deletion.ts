/** An archived environment is deleted with everything in it at its set time, unless it is restored before. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ask } from '../approvals/approval-sample.ts'
import { auditEntry, issueRecord, reviewed } from '../issues/issue-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, HOUR, llmCall, newId, NOON } from '../sample.ts'

const LATER = NOON + 30 * 24 * HOUR

export function environmentDeletionSuite(open: OpenStorage) {
  describe('the deletion of an environment', () => {
    const storage = sharedStorage(open)

    async function newHome(workspaceId = newId()) {
      await storage().createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
      const id = newId()
      await storage().createEnvironment({ id, workspaceId, name: 'staging', createdAt: NOON }, [])
      return { workspaceId, id }
    }

    const archive = (id: string, archivedAt: number | null = NOON) =>
      storage().changeEnvironment(id, { archivedAt }, [])
    const asked = (id: string, workspaceId: string) => ({ ...auditEntry(id, 'environment.delete'), workspaceId })
    const order = (id: string, workspaceId: string) => storage().orderDeletion(id, LATER, asked(id, workspaceId))
    const isQueued = async (id: string) => {
      const claim = { kind: 'delete_environment', owner: newId(), now: LATER, leaseUntil: LATER, limit: 1_000 } as const
      return (await storage().claimWork(claim)).some(({ subjectId }) => subjectId === id)
    }

    test('is ordered of an archived one only, stands as it is, and is cancelled by restoring it', async () => {
      const { id, workspaceId } = await newHome()
      assert.equal(await order(newId(), workspaceId), null)
      assert.equal(await order(id, workspaceId), 'in_use')
      assert.equal(await isQueued(id), false)
      await archive(id)
      const ordered = await order(id, workspaceId)
      assert.ok(ordered && ordered !== 'in_use')
      assert.deepEqual([ordered.archivedAt, ordered.deleteAt], [NOON, LATER])
      assert.deepEqual(await storage().orderDeletion(id, LATER + 1, asked(id, workspaceId)), ordered)
      assert.deepEqual(await storage().findEnvironment(id), ordered)
      assert.equal(await isQueued(id), true)
      const restored = await archive(id, null)
      assert.deepEqual(restored, { ...ordered, archivedAt: null, deleteAt: null })
      assert.deepEqual(await storage().findEnvironment(id), restored)
      assert.equal(await isQueued(id), false)
      assert.equal(await storage().deleteFromEnvironment(id, { table: 0, most: 100 }, LATER), null)
      assert.deepEqual(await storage().findEnvironment(id), restored)
    })

    test('leaves nothing but a receipt, in bounded slices; not a millisecond early', async () => {
      const { id, workspaceId } = await newHome()
      const { id: other } = await newHome()
      for (const env of [id, other]) {
        for (let run = 0; run < 3; run++) {
          const events = Array.from({ length: 20 }, () => llmCall({ totalTokens: 1 }, { runId: `run ${run}` }))
          await append(storage(), env, ...events)
        }
        await ask(storage(), env, { runId: 'run 1' })
        await reviewed(storage(), issueRecord(env, { runId: 'run 1' }))
      }
      await archive(id)
      await order(id, workspaceId)
      assert.equal(await storage().deleteFromEnvironment(id, { table: 0, most: 7 }, LATER - 1), null)
      assert.notEqual(await storage().findEnvironment(id), null)

      let slices = 0
      for (let table: number | null = 0; table !== null; slices++) {
        table = await storage().deleteFromEnvironment(id, { table, most: 7 }, LATER)
        // After the first slice, no reader finds the environment, its name is free, and it cannot be restored.
        assert.equal(await storage().findEnvironment(id), null)
        assert.equal(await archive(id, null), null)
        const page = { limit: 10, after: null }
        assert.deepEqual((await storage().listEnvironments(workspaceId, page, true)).rows, [])
      }
      assert.ok(slices > 9, `${slices} slices`)
      const next = { id: newId(), workspaceId, name: 'staging', createdAt: LATER }
      assert.equal(await storage().createEnvironment(next, []), 'created')
      assert.equal(await isQueued(id), false)
      const page = { limit: 10, after: null }
      assert.deepEqual((await storage().listRuns(id, {}, page)).rows, [])
      assert.deepEqual((await storage().readUsage(id, 0, LATER, page)).rows, [])
      assert.deepEqual((await storage().listApprovals(id, {}, page)).rows, [])
      const { rows } = await storage().listAudit(workspaceId, page)
      const receipt = rows.find(({ action }) => action === 'environment.delete.finish')
      const detail = JSON.parse(receipt?.detail ?? '{}') as { rows: Record<string, number> }
      const { runs, events, approvals, issue_records: records } = detail.rows
      assert.deepEqual([receipt?.at, runs, events, approvals, records], [LATER, 3, 60, 1, 1])

      assert.equal((await storage().listRuns(other, {}, page)).rows.length, 3)
      assert.equal((await storage().listApprovals(other, {}, page)).rows.length, 1)
      assert.deepEqual(await append(storage(), other, event({ runId: 'run 1' })), ['stored'])
    })

    test('goes on from the start after a crash', async () => {
      const { id, workspaceId } = await newHome()
      await append(storage(), id, event({ runId: 'one' }), event({ runId: 'two' }))
      await archive(id)
      await order(id, workspaceId)
      assert.equal(await storage().deleteFromEnvironment(id, { table: 0, most: 1 }, LATER), 0)
      // A crash: the next process starts from the first table again.
      for (let table: number | null = 0; table !== null;) {
        table = await storage().deleteFromEnvironment(id, { table: 0, most: 1_000 }, LATER)
      }
      assert.equal(await storage().findEnvironment(id), null)
    })
  })
}
