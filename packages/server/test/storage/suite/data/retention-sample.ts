/** Environments with retention, and what a pass does in them. Days are counted back from NOON, which is when a pass runs. */
import assert from 'node:assert/strict'
import type { RetentionSettings } from '@tacho/contract/data/retention.ts'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import { DAY_MS } from '../../../../src/storage/engine/times.ts'
import { KEEP_ALL, type RetainedRuns } from '../../../../src/storage/data/retention.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { batch, event, newId, NOON } from '../sample.ts'

const ALL_RUNS = { limit: 1_000, after: null }

export type Retaining = ReturnType<typeof retaining>

export function retaining(storage: () => Storage) {
  async function newEnvironment(settings: Partial<RetentionSettings> | null = null) {
    const [workspaceId, environmentId] = [newId(), newId()]
    await storage().createWorkspace({ id: workspaceId, name: workspaceId, createdAt: NOON }, [])
    await storage().createEnvironment({ id: environmentId, workspaceId, name: 'production', createdAt: NOON }, [])
    const tenant = { workspaceId, environmentId }
    if (settings) await set(tenant, settings)
    return tenant
  }

  const changeSettings = async (
    { workspaceId, environmentId }: { workspaceId: string; environmentId: string | null },
    settings: RetentionSettings | null,
  ) => {
    const before =
      environmentId === null
        ? ((await storage().readWorkspaceRetention(workspaceId))?.settings ?? KEEP_ALL)
        : (await storage().readRetention({ workspaceId, environmentId })).settings
    assert.ok(await storage().changeRetention(workspaceId, environmentId, { before, settings }, NOON, []))
  }
  const set = (tenant: { workspaceId: string; environmentId: string | null }, settings: Partial<RetentionSettings>) =>
    changeSettings(tenant, { ...KEEP_ALL, ...settings })

  /** Stores events of a run as they arrived `days` ago. */
  async function recorded(env: string, runId: string, days: number, ...events: Partial<NewEvent>[]) {
    const time = NOON - days * DAY_MS
    const all = (events.length > 0 ? events : [{}]).map((given) => event({ runId, time, ...given }))
    await storage().appendEvents(batch(env, all, { receivedAt: time }))
  }

  const runIds = async (env: string) => {
    const { rows } = await storage().listRuns(env, {}, ALL_RUNS)
    return rows.map(({ runId }) => runId).toSorted()
  }

  /** Returns the number of removed events or payloads. */
  async function removeAll(env: string, what: RetainedRuns, most = 1_000): Promise<number> {
    let events = 0
    for (let after = null as { startedAt: number; id: string } | null; ;) {
      const found = await storage().listExpiredRuns(env, what, NOON, after)
      let ids = found.runs.map(({ id }) => id)
      if (what === 'runs') {
        const removed = await storage().removeExpiredRuns(env, NOON, { ids, most, reachedAt: NOON })
        assert.ok(removed.events <= most, `${removed.events} events of at most ${most}`)
        events += removed.events + (removed.runsLeft ? await deleteAll(env, most) : 0)
        ids = []
      }
      while (ids.length > 0) {
        const removed = await storage().removeExpiredPayloads(env, NOON, { ids, most, reachedAt: NOON })
        assert.ok(removed.events <= most, `${removed.events} events of at most ${most}`)
        assert.ok(removed.rest.length === 0 || removed.events > 0, 'a slice makes progress')
        events += removed.events
        ids = removed.rest
      }
      if (found.after === null) return events
      after = found.after
    }
  }

  async function deleteAll(env: string, most: number): Promise<number> {
    for (let events = 0; ;) {
      const deleted = await storage().deleteExpiredEvents(env, NOON, most)
      assert.ok(deleted.events <= most, `${deleted.events} events of at most ${most}`)
      events += deleted.events
      if (!deleted.runsLeft) return events
      assert.ok(deleted.events > 0, 'a slice makes progress')
    }
  }

  return { storage, newEnvironment, changeSettings, set, recorded, runIds, removeAll, deleteAll }
}
