/** Retention: settings, passes, removal and preview. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { KEEP_ALL } from '../../../../src/storage/data/retention.ts'
import { ownStorage, type OpenStorage } from '../open.ts'
import { retentionPreview } from './retention-preview.ts'
import { retentionRemoval } from './retention-removal.ts'
import { retaining } from './retention-sample.ts'
import { HOUR, NOON } from '../sample.ts'

export function retentionSuite(open: OpenStorage) {
  describe('retention', () => {
    const storage = ownStorage(open)
    const retained = retaining(storage)
    const { newEnvironment, changeSettings, set } = retained

    test('is off until it is set; an environment follows its workspace until it has settings of its own', async () => {
      const tenant = await newEnvironment()
      const { workspaceId, environmentId } = tenant
      const settings = async () => {
        const { settings: current, source } = await storage().readRetention(tenant)
        return [current.runDays, source]
      }
      assert.deepEqual(await storage().readRetention(tenant), { settings: KEEP_ALL, source: 'none', progress: null })
      assert.equal(await storage().readWorkspaceRetention(workspaceId), null)
      assert.equal(await storage().startRetention(environmentId, NOON), null)
      await set({ workspaceId, environmentId: null }, { runDays: 90 })
      assert.deepEqual(await settings(), [90, 'workspace'])
      await set(tenant, { runDays: 7, keepOpenIssueRuns: false })
      assert.deepEqual(await settings(), [7, 'environment'])
      assert.equal((await storage().readRetention(tenant)).settings.keepOpenIssueRuns, false)
      assert.equal((await storage().readWorkspaceRetention(workspaceId))?.settings.runDays, 90)
      const other = await newEnvironment()
      assert.equal((await storage().readRetention(other)).source, 'none')
      await changeSettings(tenant, null)
      assert.deepEqual(await settings(), [90, 'workspace'])
    })

    test('of changes at once, one is made; the others followed from settings that count no longer', async () => {
      const tenant = await newEnvironment()
      const { workspaceId, environmentId } = tenant
      for (const [place, days] of [
        [null, [10, 20, 30]],
        [environmentId, [11, 21, 31]],
      ] as const) {
        const { settings: before } = await storage().readRetention(tenant)
        const made = await Promise.all(
          days.map((runDays) => {
            const settings = { ...before, runDays }
            return storage().changeRetention(workspaceId, place, { before, settings }, NOON, [])
          }),
        )
        assert.equal(made.filter((isMade) => isMade).length, 1)
        assert.equal((await storage().readRetention(tenant)).settings.runDays, days[made.indexOf(true)])
      }
    })

    test('passes are queued an hour after the last one, for environments with settings only', async () => {
      const [tenant, unset] = [await newEnvironment({ runDays: 30 }), await newEnvironment()]
      const followed = await newEnvironment()
      await set({ ...followed, environmentId: null }, { runDays: 30 })
      const claimed = async (now: number) => {
        await storage().queueRetention(now, now - HOUR)
        await storage().queueRetention(now, now - HOUR)
        const items = await storage().claimWork({ kind: 'retain', owner: 'a', now, leaseUntil: now + HOUR, limit: 100 })
        const subjectIds = items.map(({ subjectId }) => subjectId)
        await storage().finishWork({ kind: 'retain', owner: 'a', items })
        return [tenant, unset, followed].map(
          ({ environmentId }) => subjectIds.filter((id) => id === environmentId).length,
        )
      }
      // The change of the settings queued the pass again, but it is in the queue only once.
      assert.deepEqual(await claimed(NOON), [1, 0, 1])
      await storage().startRetention(tenant.environmentId, NOON)
      // The pass did not end, so it is due again.
      assert.deepEqual(await claimed(NOON), [1, 0, 1])
      await storage().endRetention(tenant.environmentId, NOON)
      assert.deepEqual(await claimed(NOON + HOUR), [0, 0, 1])
      assert.deepEqual(await claimed(NOON + HOUR + 1), [1, 0, 1])
    })

    test('settings that change during a pass start another one', async () => {
      const { environmentId, ...tenant } = await newEnvironment({ runDays: 30 })
      const claim = { kind: 'retain', owner: 'a', now: NOON, leaseUntil: NOON + HOUR, limit: 100 } as const
      const claimed = async () =>
        (await storage().claimWork(claim)).some(({ subjectId }) => subjectId === environmentId)
      assert.ok(await claimed())
      assert.ok(!(await claimed()), 'a pass is under way')
      await set({ ...tenant, environmentId }, { runDays: 20 })
      // The pass ends, but it used the previous settings.
      const items = [{ environmentId, subjectId: environmentId }]
      await storage().finishWork({ kind: 'retain', owner: 'a', items })
      assert.ok(await claimed())
    })

    retentionRemoval(retained)
    retentionPreview(retained)
  })
}
