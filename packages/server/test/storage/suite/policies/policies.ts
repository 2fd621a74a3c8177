import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { auditEntry, newHome, newPolicy, policyVersion } from './configuration-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

export function policiesSuite(open: OpenStorage) {
  describe('policies', () => {
    const storage = sharedStorage(open)
    const all = { limit: 1000, after: null }

    test('the first version of a policy is stored as written', async () => {
      const { workspaceId } = await newHome(storage())
      const policy = { id: 'no-refunds', workspaceId, createdAt: NOON }
      const first = policyVersion({ condition: ' tool.name\n  == "refund" // why', description: 'why', note: 'first' })
      assert.equal(await storage().createPolicy(policy, first, [auditEntry(workspaceId)]), 'created')
      const version = { policyId: policy.id, number: 1, ...first, importedAt: null }
      assert.deepEqual(await storage().findPolicy(workspaceId, policy.id), {
        ...policy,
        archivedAt: null,
        newest: version,
      })
      assert.deepEqual(await storage().findPolicyVersion(workspaceId, policy.id, 1), version)
      assert.equal((await storage().listAudit(workspaceId, all)).rows.length, 1)
    })

    test('an id is unique in its workspace, and needs a workspace', async () => {
      const [one, two] = [await newHome(storage()), await newHome(storage())]
      const create = (workspaceId: string) =>
        storage().createPolicy({ id: 'no-refunds', workspaceId, createdAt: NOON }, policyVersion(), [])
      assert.equal(await create(one.workspaceId), 'created')
      assert.equal(await create(one.workspaceId), 'id_taken')
      assert.equal(await create(two.workspaceId), 'created')
      assert.equal(await create(newId()), 'no_workspace')
    })

    test('a new version is stored if and only if the content of the policy changed', async () => {
      const { workspaceId } = await newHome(storage())
      const id = await newPolicy(storage(), workspaceId)
      const save = async (given: Parameters<typeof policyVersion>[0]) =>
        (await storage().createPolicyVersion(workspaceId, id, policyVersion(given), null, []))?.outcome
      assert.equal(await save({ author: 'bob', note: 'again', createdAt: NOON + 1 }), 'unchanged')
      assert.equal(await save({ name: 'other' }), 'created')
      assert.equal(await save({ name: 'other', description: 'why' }), 'created')
      assert.equal(await save({ name: 'other', description: 'why', condition: 'true' }), 'created')
      assert.equal(await save({ name: 'other', description: 'why', condition: 'true', severity: 'LOW' }), 'created')
      assert.equal(await save({ condition: 'true', severity: 'LOW', action: 'WARN' }), 'created')
      assert.equal(await save({}), 'created')
      const numbers = (await storage().listPolicyVersions(workspaceId, id, { limit: 4, after: 6 })).rows
      assert.deepEqual(
        numbers.map(({ number }) => number),
        [5, 4, 3, 2],
      )
    })

    test('versions are numbered in order, also when many are written at once', async () => {
      const { workspaceId } = await newHome(storage())
      const id = await newPolicy(storage(), workspaceId)
      const saved = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          storage().createPolicyVersion(workspaceId, id, policyVersion({ condition: `${index} > 0` }), null, []),
        ),
      )
      const numbers = saved.map((each) => each?.version.number ?? 0).toSorted((a, b) => a - b)
      assert.deepEqual(numbers, [2, 3, 4, 5, 6, 7, 8, 9])
    })

    test('an author cannot replace a version they have not seen', async () => {
      const { workspaceId } = await newHome(storage())
      const id = await newPolicy(storage(), workspaceId, 2)
      const save = (follows: number) =>
        storage().createPolicyVersion(workspaceId, id, policyVersion({ condition: 'true' }), follows, [
          auditEntry(workspaceId),
        ])
      const refused = await save(1)
      assert.deepEqual([refused?.outcome, refused?.version.number], ['conflict', 2])
      assert.deepEqual((await storage().listAudit(workspaceId, all)).rows, [])
      assert.equal((await save(2))?.outcome, 'created')
    })

    test('policies are listed by id and found in their own workspace only', async () => {
      const [one, two] = [await newHome(storage()), await newHome(storage())]
      const ids = [await newPolicy(storage(), one.workspaceId), await newPolicy(storage(), one.workspaceId)].toSorted()
      const list = async (workspaceId: string, after: string | null) =>
        (await storage().listPolicies(workspaceId, { limit: 1, after })).rows.map(({ id }) => id)
      assert.deepEqual(await list(one.workspaceId, null), ids.slice(0, 1))
      assert.deepEqual(await list(one.workspaceId, ids[0] ?? ''), ids.slice(1))
      assert.deepEqual(await list(two.workspaceId, null), [])
      const [id = ''] = ids
      assert.equal(await storage().findPolicy(two.workspaceId, id), null)
      assert.equal(await storage().findPolicyVersion(two.workspaceId, id, 1), null)
      assert.equal(await storage().createPolicyVersion(two.workspaceId, id, policyVersion(), null, []), null)
    })
  })
}
