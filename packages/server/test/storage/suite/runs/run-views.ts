import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RunViewRow } from '../../../../src/storage/runs/runs.ts'
import { auditEntry } from '../issues/issue-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newEnvironment, newId, NOON } from '../sample.ts'

function viewOf(environmentId: string, name: string, given: Partial<RunViewRow> = {}): RunViewRow {
  return { id: newId(), environmentId, name, query: {}, lastHours: null, columns: [], createdAt: NOON, ...given }
}

export function runViewsSuite(open: OpenStorage) {
  const all = { limit: 1_000, after: null }

  describe('a view of runs', () => {
    const storage = sharedStorage(open)

    test('is stored whole, changed in part, and found within its environment only', async () => {
      const env = await newEnvironment(storage())
      const query = { status: 'FAILED', tool: 'é'.repeat(255), minCost: '0.25', hasErrors: 'true' } as const
      const view = viewOf(env, '𝄞'.repeat(80), { query, lastHours: 24, columns: ['status', 'run'] })
      assert.equal(await storage().createRunView(view, [auditEntry(env, 'run_view.create')]), 'created')
      assert.deepEqual((await storage().listRunViews(env, all)).rows, [view])
      assert.deepEqual((await storage().listRunViews(newId(), all)).rows, [])

      const renamed = { ...view, name: 'Failed' }
      assert.deepEqual(await storage().changeRunView(env, view.id, { name: 'Failed' }, []), renamed)
      const other = { query: { q: 'order' }, lastHours: null, columns: [] }
      assert.deepEqual(await storage().changeRunView(env, view.id, other, []), { ...renamed, ...other })
      assert.deepEqual((await storage().listRunViews(env, all)).rows, [{ ...renamed, ...other }])
      assert.equal(await storage().changeRunView(newId(), view.id, { name: 'x' }, []), null)
      assert.equal(await storage().removeRunView(newId(), view.id, []), null)
      assert.deepEqual(await storage().removeRunView(env, view.id, []), { ...renamed, ...other })
      assert.equal(await storage().removeRunView(env, view.id, []), null)
      assert.deepEqual((await storage().listRunViews(env, all)).rows, [])
    })

    test('has a name of its own in its environment', async () => {
      const [env, other] = [await newEnvironment(storage()), await newEnvironment(storage())]
      const [first, second] = [viewOf(env, 'Failed'), viewOf(env, 'failed')]
      for (const view of [first, second, viewOf(other, 'Failed')]) {
        assert.equal(await storage().createRunView(view, []), 'created')
      }
      assert.equal(await storage().createRunView(viewOf(env, 'Failed'), []), 'name_taken')
      assert.equal(await storage().changeRunView(env, second.id, { name: 'Failed' }, []), 'name_taken')
      // A view can be saved with its own name.
      const kept = await storage().changeRunView(env, first.id, { name: 'Failed', lastHours: 1 }, [])
      assert.deepEqual(kept, { ...first, lastHours: 1 })
      const listed = (await storage().listRunViews(env, all)).rows.toSorted((a, b) => (a.name < b.name ? -1 : 1))
      assert.deepEqual(listed, [{ ...first, lastHours: 1 }, second])
    })

    test('is limited in an environment, and has one name, also when many are created at once', async () => {
      const env = await newEnvironment(storage())
      const create = (name: string) => storage().createRunView(viewOf(env, name), [])
      const same = await Promise.all(Array.from({ length: 10 }, () => create('same')))
      assert.deepEqual(same.toSorted(), ['created', ...Array.from({ length: 9 }, () => 'name_taken')])
      const outcomes = await Promise.all(Array.from({ length: LIMITS.runViews + 5 }, (_, index) => create(`${index}`)))
      assert.equal(outcomes.filter((outcome) => outcome === 'created').length, LIMITS.runViews - 1)
      assert.equal(outcomes.filter((outcome) => outcome === 'too_many').length, 6)
      assert.equal((await storage().listRunViews(env, all)).rows.length, LIMITS.runViews)
      const page = (await storage().listRunViews(env, { limit: 60, after: null })).rows
      const rest = (await storage().listRunViews(env, { limit: 60, after: page.at(-1)?.id ?? null })).rows
      assert.equal(new Set([...page, ...rest].map(({ name }) => name)).size, LIMITS.runViews)
    })

    test('gets one of two names that are asked for at once', async () => {
      const env = await newEnvironment(storage())
      const views = [viewOf(env, 'a'), viewOf(env, 'b')]
      for (const view of views) await storage().createRunView(view, [])
      const outcomes = await Promise.all(views.map(({ id }) => storage().changeRunView(env, id, { name: 'c' }, [])))
      assert.equal(outcomes.filter((outcome) => outcome === 'name_taken').length, 1)
    })
  })
}
