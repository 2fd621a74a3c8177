import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/engine/words.ts'
import {
  ENDED,
  SILENT_AFTER_MS,
  TAKES_UP_MS,
  type ConfigurationClientRow,
  type ConfigurationClientSeen,
} from '../../../../src/storage/policies/deployments.ts'
import { deploy, newHome, newPolicy } from './configuration-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

const seen = (clientId: string, seenAt: number, given: Partial<ConfigurationClientSeen> = {}) => ({
  identifiedBy: 'client' as const,
  clientId,
  keyId: 'k',
  revision: 'old',
  seenAt,
  ...given,
})

export function configurationClientsSuite(open: OpenStorage) {
  describe('clients of the configuration', () => {
    const storage = sharedStorage(open)
    const keep = (env: string, ...clients: ConfigurationClientSeen[]) =>
      storage().writeConfigurationClients(env, clients, 0)
    const list = (env: string, limit = 2_000) =>
      storage().listConfigurationClients(env, undefined, { limit, after: null })
    const ids = async (env: string) => (await list(env)).rows.map(({ clientId }) => clientId)

    test('merge what several processes saw: the latest wins, in any order, and only in its environment', async () => {
      const [env, other] = [newId(), newId()]
      const late = seen('a', NOON + 2, { revision: 'r2', keyId: 'k2' })
      await keep(env, late, seen('a', NOON + 2, { identifiedBy: 'key' }))
      await keep(env, seen('a', NOON + 1, { revision: 'r1' }), seen('b', NOON))
      await keep(other, seen('c', NOON))
      assert.deepEqual(
        (await list(env)).rows.map(({ standing: _, ...row }) => row),
        [late, seen('b', NOON), seen('a', NOON + 2, { identifiedBy: 'key' })],
      )
      assert.deepEqual(await ids(other), ['c'])
      assert.deepEqual(await ids(newId()), [])
    })

    test('are left out from their end on, also if an earlier poll of theirs is written later', async () => {
      const env = newId()
      await keep(env, seen('a', NOON), seen('b', NOON))
      await keep(env, seen('a', NOON + 2, { revision: ENDED }))
      await keep(env, seen('a', NOON + 1))
      assert.deepEqual(await ids(env), ['b'])
      assert.deepEqual(
        (await list(env)).counts.map(({ clients }) => clients),
        [1],
      )
      await keep(env, seen('a', NOON + 3))
      assert.deepEqual(await ids(env), ['a', 'b'])
    })

    test('of processes that write at the same time are all kept', async () => {
      const env = newId()
      const names = Array.from({ length: 120 }, (_, n) => `c${String(n).padStart(3, '0')}`)
      const batches = Array.from({ length: 4 }, (_, process) => {
        const batch = names.map((name) => seen(name, NOON + process))
        return process % 2 === 0 ? batch : batch.toReversed()
      })
      await Promise.all(batches.map((batch) => keep(env, ...batch)))
      const { rows } = await list(env)
      assert.deepEqual(
        rows.map(({ clientId }) => clientId),
        names,
      )
      assert.ok(rows.every(({ seenAt }) => seenAt === NOON + 3))
    })

    test('are deleted when they are old, and the oldest when there are too many', async () => {
      const env = newId()
      const many = Array.from({ length: LIMITS.configurationClients }, (_, n) => seen(`c${n}`, NOON + n))
      await keep(env, ...many)
      assert.equal((await list(env)).rows.length, LIMITS.configurationClients)
      await keep(env, seen('one more', NOON + many.length))
      const kept = await ids(env)
      assert.deepEqual(
        [kept.length, kept.includes('c0'), kept.includes('c1')],
        [LIMITS.configurationClients, false, true],
      )
      await storage().writeConfigurationClients(env, [], NOON + many.length)
      assert.deepEqual(await ids(env), ['one more'])
    })

    test('are behind two minutes after the change, and silent three minutes after another client, not before', async () => {
      const { workspaceId, development: env } = await newHome(storage())
      // The sample publishes at noon.
      await deploy(storage(), env, ['policy', await newPolicy(storage(), workspaceId), 1])
      const { revision } = await storage().readConfiguration(env, null)
      const newest = NOON + SILENT_AFTER_MS + 1
      await keep(
        env,
        seen('behind', NOON + TAKES_UP_MS + 1),
        seen('current', newest, { revision }),
        seen('heard', NOON + 1, { revision }),
        seen('silent', NOON, { revision }),
        seen('updating', NOON + TAKES_UP_MS),
      )
      const all = await list(env)
      const standings = ({ rows }: { rows: ConfigurationClientRow[] }) =>
        Object.fromEntries(rows.map(({ clientId, standing }) => [clientId, standing]))
      assert.equal(all.revision, revision)
      assert.deepEqual(standings(all), {
        behind: 'BEHIND',
        current: 'CURRENT',
        heard: 'CURRENT',
        silent: 'SILENT',
        updating: 'UPDATING',
      })
      assert.deepEqual(Object.fromEntries(all.counts.map(({ standing, clients }) => [standing, clients])), {
        CURRENT: 2,
        UPDATING: 1,
        BEHIND: 1,
        SILENT: 1,
      })
      for (const standing of CLIENT_STANDINGS) {
        const page = { limit: 10, after: null }
        const chosen = await storage().listConfigurationClients(env, standing, page)
        assert.deepEqual(
          chosen.rows,
          all.rows.filter((row) => row.standing === standing),
        )
        assert.deepEqual(chosen.counts.length, 4)
      }
      const walked: string[] = []
      for (let after: ConfigurationClientRow | null = null; ;) {
        const { rows } = await storage().listConfigurationClients(env, undefined, { limit: 2, after })
        walked.push(...rows.map(({ clientId }) => clientId))
        const last = rows.at(-1)
        if (last === undefined) break
        after = last
      }
      assert.deepEqual(walked, Object.keys(standings(all)))
    })
  })
}
