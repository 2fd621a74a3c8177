import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NONE_LOST, type ApiKeyRow, type FirstTenant } from '../../../../src/storage/tenants/tenants.ts'
import type { OperatorTokenRow } from '../../../../src/storage/people/operators.ts'
import { ownStorage, sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

const workspace = (name: string = newId()) => ({ id: newId(), name, createdAt: NOON, archivedAt: null })
const environment = (workspaceId: string, name = 'development') => ({
  id: newId(),
  workspaceId,
  name,
  createdAt: NOON,
  archivedAt: null,
  deleteAt: null,
})

/** The creator of keys that the service itself creates. */
export const NO_CREATOR = { creatorKind: null, creatorId: null }

export function apiKey(environmentId: string, given: Partial<ApiKeyRow> = {}): ApiKeyRow {
  return {
    id: newId(),
    environmentId,
    name: 'ci',
    hash: 'ab'.repeat(32),
    family: null,
    scopes: ['events:write', 'usage:read'],
    requestsPerSecond: null,
    createdAt: NOON,
    expiresAt: null,
    revokedAt: null,
    replacedBy: null,
    lastUsedAt: null,
    allowedAddresses: null,
    ...NO_CREATOR,
    ...NONE_LOST,
    ...given,
  }
}

export function operatorToken(given: Partial<OperatorTokenRow> = {}): OperatorTokenRow {
  const times = {
    createdAt: NOON,
    expiresAt: null,
    revokedAt: null,
    replacedBy: null,
    lastUsedAt: null,
    allowedAddresses: null,
  }
  const made = { creatorKind: null, creatorId: null, creatorName: null }
  const who = { id: newId(), name: 'script', hash: 'cd'.repeat(32), workspaceId: null, role: 'owner' } as const
  return { ...who, ...made, ...times, ...given }
}

function firstTenant(): FirstTenant {
  const first = workspace('default')
  const development = environment(first.id)
  return {
    workspace: first,
    environment: development,
    apiKey: apiKey(development.id),
    operatorToken: operatorToken(),
  }
}

const all = { limit: 1000, after: null }

export function controlSuite(open: OpenStorage) {
  describe('first tenant', () => {
    const storage = ownStorage(open)

    test('an empty store gets its first tenant once, also when two processes start at once', async () => {
      const tenants = [firstTenant(), firstTenant()]
      const results = await Promise.all(tenants.map((tenant) => storage().initialise(tenant)))
      assert.deepEqual(results.toSorted(), ['created', 'not_empty'])
      assert.equal(await storage().initialise(firstTenant()), 'not_empty')
      const [kept, lost] = results[0] === 'created' ? tenants : tenants.toReversed()
      assert.ok(kept && lost)
      assert.deepEqual((await storage().listWorkspaces(all)).rows, [kept.workspace])
      assert.deepEqual(await storage().findEnvironment(kept.environment.id), kept.environment)
      const found = await storage().findApiKey(kept.apiKey.id)
      assert.deepEqual(found, { ...kept.apiKey, workspaceId: kept.workspace.id })
      assert.deepEqual(await storage().findOperatorToken(kept.operatorToken.id), kept.operatorToken)
      assert.equal(await storage().findApiKey(lost.apiKey.id), null)
      assert.equal(await storage().findOperatorToken(lost.operatorToken.id), null)
    })
  })

  describe('tenants', () => {
    const storage = sharedStorage(open)

    test('a workspace name is unique', async () => {
      const first = workspace()
      assert.equal(await storage().createWorkspace(first, []), 'created')
      assert.equal(await storage().createWorkspace(workspace(first.name), []), 'name_taken')
      assert.deepEqual(await storage().findWorkspace(first.id), first)
      assert.equal(await storage().findWorkspace(newId()), null)
    })

    test('an environment name is unique in its workspace, and needs a workspace', async () => {
      const [one, two] = [workspace(), workspace()]
      await storage().createWorkspace(one, [])
      await storage().createWorkspace(two, [])
      const first = environment(one.id)
      assert.equal(await storage().createEnvironment(first, []), 'created')
      assert.equal(await storage().createEnvironment(environment(one.id), []), 'name_taken')
      assert.equal(await storage().createEnvironment(environment(two.id), []), 'created')
      assert.equal(await storage().createEnvironment(environment(newId()), []), 'no_workspace')
      assert.deepEqual((await storage().listEnvironments(one.id, all)).rows, [first])
      assert.equal(await storage().findEnvironment(newId()), null)
    })

    test('lists are ordered by id, page by page', async () => {
      const home = workspace()
      await storage().createWorkspace(home, [])
      const rows = ['b', 'c', 'a', 'd'].map((name) => environment(home.id, name))
      for (const row of rows) await storage().createEnvironment(row, [])
      const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      const first = (await storage().listEnvironments(home.id, { limit: 3, after: null })).rows
      assert.deepEqual(first, sorted.slice(0, 3))
      const after = sorted[2]?.id ?? ''
      assert.deepEqual((await storage().listEnvironments(home.id, { limit: 3, after })).rows, sorted.slice(3))
    })

    test('every change to a tenant, key or token increases the revision; reads and refused changes do not', async () => {
      const home = workspace()
      const development = environment(home.id)
      const key = apiKey(development.id)
      const grows = async (change: () => Promise<unknown>) => {
        const before = await storage().controlRevision()
        await change()
        return (await storage().controlRevision()) > before
      }
      assert.equal(await grows(() => storage().createWorkspace(home, [])), true)
      assert.equal(await grows(() => storage().createWorkspace(workspace(home.name), [])), false)
      assert.equal(await grows(() => storage().createEnvironment(development, [])), true)
      assert.equal(await grows(() => storage().createApiKey(key, [])), true)
      assert.equal(await grows(() => storage().createOperatorToken(operatorToken(), [])), true)
      assert.equal(await grows(() => storage().revokeApiKey(development.id, key.id, NOON, [])), true)
      assert.equal(await grows(() => storage().revokeApiKey(development.id, key.id, NOON, [])), false)
      assert.equal(await grows(() => storage().findApiKey(key.id)), false)
      assert.equal(await grows(() => storage().touchCredentials([{ kind: 'api_key', id: key.id, at: NOON }])), false)
    })
  })

  describe('keys and tokens', () => {
    const storage = ownStorage(open)

    async function newEnvironment() {
      const home = workspace()
      const development = environment(home.id)
      await storage().createWorkspace(home, [])
      await storage().createEnvironment(development, [])
      return development
    }

    test('a key is found with all fields and its workspace by its public part', async () => {
      const { id, workspaceId } = await newEnvironment()
      const key = apiKey(id, { requestsPerSecond: 7, expiresAt: NOON + 1, scopes: [] })
      assert.equal(await storage().createApiKey(key, []), 'created')
      assert.deepEqual(await storage().findApiKey(key.id), { ...key, workspaceId })
      assert.deepEqual((await storage().listApiKeys(id, all)).rows, [key])
      assert.equal(await storage().findApiKey(newId()), null)
    })

    test('a key cannot exist without an environment', async () => {
      const key = apiKey(newId())
      assert.equal(await storage().createApiKey(key, []), 'no_environment')
      assert.equal(await storage().findApiKey(key.id), null)
    })

    test('keys are listed within their environment only', async () => {
      const [one, two] = [await newEnvironment(), await newEnvironment()]
      const keys = [apiKey(one.id), apiKey(one.id), apiKey(two.id)]
      for (const key of keys) await storage().createApiKey(key, [])
      const sorted = keys.slice(0, 2).toSorted((a, b) => (a.id < b.id ? -1 : 1))
      assert.deepEqual((await storage().listApiKeys(one.id, { limit: 1, after: null })).rows, sorted.slice(0, 1))
      assert.deepEqual(
        (await storage().listApiKeys(one.id, { limit: 5, after: sorted[0]?.id ?? '' })).rows,
        sorted.slice(1),
      )
    })

    test('revoking a key again keeps the first time, and only its own environment can revoke it', async () => {
      const [one, two] = [await newEnvironment(), await newEnvironment()]
      const key = apiKey(one.id)
      await storage().createApiKey(key, [])
      assert.equal(await storage().revokeApiKey(two.id, key.id, NOON, []), null)
      assert.equal((await storage().findApiKey(key.id))?.revokedAt, null)
      assert.deepEqual(await storage().revokeApiKey(one.id, key.id, NOON + 1, []), { ...key, revokedAt: NOON + 1 })
      assert.deepEqual(await storage().revokeApiKey(one.id, key.id, NOON + 2, []), { ...key, revokedAt: NOON + 1 })
      assert.equal(await storage().revokeApiKey(one.id, newId(), NOON, []), null)
    })

    test('of several keys, those that are valid are listed within their environment', async () => {
      const [one, two] = [await newEnvironment(), await newEnvironment()]
      const keys = [apiKey(one.id), apiKey(one.id, { expiresAt: NOON + 2 }), apiKey(one.id), apiKey(two.id)]
      for (const key of keys) await storage().createApiKey(key, [])
      const ids = [...keys.map(({ id }) => id), newId()]
      const valid = async (at: number) => (await storage().listValidApiKeys(one.id, ids, at)).toSorted()
      assert.deepEqual(await valid(NOON), ids.slice(0, 3).toSorted())
      await storage().revokeApiKey(one.id, ids[0] ?? '', NOON, [])
      assert.deepEqual(await valid(NOON + 1), ids.slice(1, 3).toSorted())
      assert.deepEqual(await valid(NOON + 2), ids.slice(2, 3))
      assert.deepEqual(await storage().listValidApiKeys(one.id, [], NOON), [])
    })

    test('a last use never moves back, and an unknown id is ignored', async () => {
      const { id } = await newEnvironment()
      const [key, token] = [apiKey(id), operatorToken()]
      await storage().createApiKey(key, [])
      await storage().createOperatorToken(token, [])
      const touch = (at: number) =>
        storage().touchCredentials([
          { kind: 'api_key', id: key.id, at },
          { kind: 'operator_token', id: token.id, at },
          { kind: 'api_key', id: newId(), at },
        ])
      for (const at of [NOON + 5, NOON + 3]) await touch(at)
      assert.equal((await storage().findApiKey(key.id))?.lastUsedAt, NOON + 5)
      assert.equal((await storage().findOperatorToken(token.id))?.lastUsedAt, NOON + 5)
      await touch(NOON + 6)
      assert.equal((await storage().findApiKey(key.id))?.lastUsedAt, NOON + 6)
    })

    test('lost requests of a key add up, the reason is that of the latest, and another key has none', async () => {
      const { id } = await newEnvironment()
      const [key, other] = [apiKey(id), apiKey(id)]
      for (const each of [key, other]) await storage().createApiKey(each, [])
      const before = await storage().sumLostRequests(NOON)
      const lost = (requests: number, at: number, reason: string) => ({
        environmentId: id,
        keyId: key.id,
        requests,
        at,
        reason,
      })
      await storage().addLostRequests([lost(2, NOON + 1, 'too large')])
      await storage().addLostRequests([lost(3, NOON + 2, 'no such address'), { ...lost(1, NOON, 'x'), keyId: newId() }])
      const { rows } = await storage().listApiKeys(id, { after: null, limit: 10 })
      assert.deepEqual(
        [key, other].map(({ id: keyId }) => {
          const listed = rows.find((row) => row.id === keyId)
          return [listed?.lostRequests, listed?.lastLostAt, listed?.lastLostReason]
        }),
        [
          [5, NOON + 2, 'no such address'],
          [0, null, null],
        ],
      )
      const sum = await storage().sumLostRequests(NOON)
      assert.deepEqual([sum.keys - before.keys, sum.requests - before.requests], [1, 5])
      assert.equal((await storage().sumLostRequests(NOON + 3)).latest, null)
      const rotated = { id: newId(), hash: 'ef'.repeat(32), now: NOON, oldValidUntil: NOON, expiresAt: null }
      const added = await storage().rotateApiKey(id, key.id, { ...rotated, ...NO_CREATOR }, [])
      assert.equal(added !== null && added !== 'ended' && added.lostRequests, 0)
    })

    test('the first value given for a secret stays', async () => {
      const name = newId()
      const candidates = Array.from({ length: 8 }, newId)
      const got = await Promise.all(candidates.map((candidate) => storage().secret(name, candidate)))
      assert.equal(new Set(got).size, 1)
      assert.ok(candidates.includes(got[0] ?? ''))
      assert.equal(await storage().secret(name, newId()), got[0])
      assert.notEqual(await storage().secret(newId(), 'other'), got[0])
    })
  })
}
