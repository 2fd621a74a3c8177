/** Concurrent publications of two people. Each publication names the version that the person saw in force. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Published } from '../../../../src/storage/policies/deployments.ts'
import { deploy, inForce, newHome, newPolicy, newPrompt, publish } from './configuration-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'

const changesOf = (published: Published) =>
  published.outcome === 'published' ? published.changes.map(({ id, from, to }) => [id, from, to]) : published.outcome

export function overtakenSuite(open: OpenStorage) {
  describe('publications of two people', () => {
    const storage = sharedStorage(open)

    test('of two rollbacks of what two people saw, one is carried out, and the other learns what is in force', async () => {
      const { workspaceId, development } = await newHome(storage())
      for (const kind of ['policy', 'prompt'] as const) {
        const id =
          kind === 'policy'
            ? await newPolicy(storage(), workspaceId, 3)
            : await newPrompt(storage(), workspaceId, 'one', 'two', 'three')
        for (const version of [1, 2, 3]) await deploy(storage(), development, [kind, id, version])
        const goBack = (seen: { replaces?: number | null; restores?: number }) =>
          publish(storage(), development, { action: 'ROLL_BACK', items: [{ kind, id, ...seen }] })
        const both = await Promise.all([goBack({ replaces: 3, restores: 2 }), goBack({ replaces: 3, restores: 2 })])
        const [published, refused] = both.toSorted((one) => (one.outcome === 'published' ? -1 : 1))
        assert.deepEqual(published && changesOf(published), [[id, 3, 2]])
        assert.deepEqual(refused, { outcome: 'overtaken', item: { kind, id }, inForce: 2, seen: 3 })
        // Version 2 can be in force again, but the version before it is now another one.
        for (const version of [3, 1, 2]) await deploy(storage(), development, [kind, id, version])
        const other = { outcome: 'other_earlier', item: { kind, id }, restores: 1, seen: 3 }
        assert.deepEqual(await goBack({ replaces: 2, restores: 3 }), other)
        assert.deepEqual(changesOf(await goBack({ replaces: 2, restores: 1 })), [[id, 2, 1]])
      }
    })

    test('a deployment that replaces what the person saw is refused when somebody else published', async () => {
      const { workspaceId, development } = await newHome(storage())
      const id = await newPolicy(storage(), workspaceId, 3)
      const replace = (version: number | null, replaces: number | null) =>
        publish(storage(), development, { action: 'DEPLOY', items: [{ kind: 'policy', id, version, replaces }] })
      assert.deepEqual(changesOf(await replace(1, null)), [[id, null, 1]])
      const both = await Promise.all([replace(2, 1), replace(3, 1)])
      assert.deepEqual(both.map(({ outcome }) => outcome).toSorted(), ['overtaken', 'published'])
      const version = (await inForce(storage(), development)).includes(`policy ${id} 2`) ? 2 : 3
      const refused = { outcome: 'overtaken', item: { kind: 'policy', id }, inForce: version, seen: 1 }
      assert.deepEqual(await replace(null, 1), refused)
      assert.deepEqual(changesOf(await replace(null, version)), [[id, version, null]])
    })
  })
}
