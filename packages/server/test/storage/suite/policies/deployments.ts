import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import type { RuntimeConfig } from '@tacho/contract/policies/runtime-config.ts'
import canonicalize from 'canonicalize'
import fc from 'fast-check'
import type { DeploymentChangeRow, Published } from '../../../../src/storage/policies/deployments.ts'
import type { Page } from '../../../../src/storage/engine/page.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import {
  auditEntry,
  deploy,
  inForce,
  newHome,
  newPolicy,
  newPrompt,
  policyVersion,
  publish,
} from './configuration-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

async function configOf(storage: Storage, environmentId: string): Promise<RuntimeConfig> {
  const { text, revision } = await storage.readConfiguration(environmentId, null)
  const config = JSON.parse(text ?? '') as RuntimeConfig
  assert.equal(config.revision, revision)
  const { revision: _, ...content } = config
  assert.equal(revision, hash('sha256', canonicalize(content) ?? ''), 'clients can compute the revision')
  return config
}

const told = (config: RuntimeConfig) => [
  ...config.prompts.map(({ promptId, version }) => `prompt ${promptId} ${version}`),
  ...config.policies.map(({ policyId, version }) => `policy ${policyId} ${version}`),
]

/** Asserts that the served configuration equals the deployments. */
async function assertConsistent(storage: Storage, environmentId: string): Promise<void> {
  const deployed = await inForce(storage, environmentId)
  assert.deepEqual(told(await configOf(storage, environmentId)).toSorted(), deployed.toSorted())
}

const changesOf = (published: Published) =>
  published.outcome === 'published' ? published.changes.map(({ id, from, to }) => [id, from, to]) : published.outcome

export function deploymentsSuite(open: OpenStorage) {
  describe('deployments', () => {
    const storage = sharedStorage(open)
    const all = { limit: 1000, after: null }
    const rollBack = (environmentId: string, kind: 'prompt' | 'policy', id: string) =>
      publish(storage(), environmentId, { action: 'ROLL_BACK', items: [{ kind, id }] })

    test('an environment without deployments has an empty configuration with a stable revision', async () => {
      const { workspaceId, development, production } = await newHome(storage())
      const empty = await configOf(storage(), development)
      assert.deepEqual([empty.prompts, empty.policies], [[], []])
      assert.deepEqual(await configOf(storage(), production), empty)
      const id = await newPolicy(storage(), workspaceId)
      await deploy(storage(), development, ['policy', id, 1])
      await deploy(storage(), development, ['policy', id, null])
      assert.deepEqual(await configOf(storage(), development), empty)
    })

    test('published versions are served as written, in a fixed order', async () => {
      const { workspaceId, development } = await newHome(storage())
      const content = 'Sei höflich.\r\n "\\u0041" 🙂'
      const prompts = [await newPrompt(storage(), workspaceId, 'x', content), await newPrompt(storage(), workspaceId)]
      const policies = [await newPolicy(storage(), workspaceId, 2), await newPolicy(storage(), workspaceId)]
      const [prompt = '', other = ''] = prompts
      const [policy = '', further = ''] = policies
      const published = await deploy(
        storage(),
        development,
        ['policy', policy, 2],
        ['prompt', prompt, 2],
        ['policy', further, 1],
        ['prompt', other, 1],
      )
      assert.equal(published.outcome, 'published')
      const config = await configOf(storage(), development)
      const version = await storage().findPromptVersion(workspaceId, prompt, 2)
      assert.deepEqual(
        config.prompts.find(({ promptId }) => promptId === prompt),
        {
          promptId: prompt,
          name: prompt,
          versionId: version?.id,
          version: '2',
          content,
          contentHash: hash('sha256', content),
        },
      )
      assert.deepEqual(
        config.policies.find(({ policyId }) => policyId === policy),
        {
          policyId: policy,
          name: 'No refunds',
          description: null,
          version: '2',
          condition: 'tool.name == "2"',
          severity: 'HIGH',
          action: 'BLOCK',
          onError: 'act',
        },
      )
      assert.deepEqual(
        config.prompts.map(({ name }) => name),
        prompts.toSorted(),
      )
      assert.deepEqual(
        config.policies.map(({ policyId }) => policyId),
        policies.toSorted(),
      )
      await assertConsistent(storage(), development)
    })

    test('a version from before onError is served without it', async () => {
      const { workspaceId, development } = await newHome(storage())
      const id = `policy-${newId()}`
      const version = policyVersion({ onError: null })
      assert.equal(await storage().createPolicy({ id, workspaceId, createdAt: NOON }, version, []), 'created')
      assert.equal((await storage().findPolicy(workspaceId, id))?.newest.onError, null)
      await deploy(storage(), development, ['policy', id, 1])
      const [served] = (await configOf(storage(), development)).policies
      assert.deepEqual(Object.keys(served ?? {}), [
        'policyId',
        'name',
        'description',
        'version',
        'condition',
        'severity',
        'action',
      ])
      await assertConsistent(storage(), development)
    })

    test('texts that the caller has already are left out', async () => {
      const { workspaceId, development } = await newHome(storage())
      const { revision: empty } = await storage().readConfiguration(development, null)
      assert.deepEqual(await storage().readConfiguration(development, empty), { revision: empty, text: null })
      await deploy(storage(), development, ['policy', await newPolicy(storage(), workspaceId), 1])
      const { revision, text } = await storage().readConfiguration(development, empty)
      assert.notEqual(revision, empty)
      assert.ok(text?.includes(revision))
      assert.deepEqual(await storage().readConfiguration(development, revision), { revision, text: null })
    })

    test('publishing increases the control revision and is audited with its changes; without changes it does neither', async () => {
      const { workspaceId, development } = await newHome(storage())
      const id = await newPolicy(storage(), workspaceId)
      const put = () =>
        publish(storage(), development, { action: 'DEPLOY', items: [{ kind: 'policy', id, version: 1 }] }, [
          auditEntry(workspaceId, 'configuration.deploy'),
        ])
      const before = await storage().controlRevision()
      const published = await put()
      assert.ok(published.outcome === 'published')
      const after = await storage().controlRevision()
      assert.ok(after > before)
      const [entry] = (await storage().listAudit(workspaceId, all)).rows
      assert.deepEqual([entry?.action, entry?.targetKind, entry?.targetId], ['policy.deploy', 'policy', id])
      const told = { publication: 1, revision: published.revision, note: null }
      assert.deepEqual(JSON.parse(entry?.detail ?? ''), { name: id, from: null, to: 1, ...told })
      assert.deepEqual(await put(), { outcome: 'unchanged', revision: published.revision })
      assert.equal(await storage().controlRevision(), after)
      assert.equal((await storage().listAudit(workspaceId, all)).rows.length, 1)
      assert.equal((await storage().listDeploymentChanges(development, {}, all)).rows.length, 1)
    })

    test('a publication is all or nothing', async () => {
      const { workspaceId, development } = await newHome(storage())
      const stranger = await newHome(storage())
      const mine = await newPrompt(storage(), workspaceId)
      const theirs = [
        await newPrompt(storage(), stranger.workspaceId),
        await newPolicy(storage(), stranger.workspaceId),
      ]
      const before = await storage().controlRevision()
      const [theirPrompt = '', theirPolicy = ''] = theirs
      for (const wrong of [
        ['prompt', theirPrompt, 1],
        ['policy', theirPolicy, 1],
        ['prompt', theirPrompt, null],
        ['policy', theirPolicy, null],
        ['prompt', mine.replace(/.$/, '!'), 1],
        ['prompt', newId(), 1],
        ['policy', mine, 1],
      ] as const) {
        const [kind, id, version] = wrong
        const refused = await deploy(storage(), development, ['prompt', mine, 1], [...wrong])
        assert.deepEqual(refused, { outcome: 'no_item', item: { kind, id, version } })
      }
      const refused = await deploy(storage(), development, ['prompt', mine, 2])
      assert.deepEqual(refused, { outcome: 'no_item', item: { kind: 'prompt', id: mine, version: 2 } })
      assert.deepEqual(await inForce(storage(), development), [])
      assert.deepEqual((await storage().listDeploymentChanges(development, {}, all)).rows, [])
      assert.equal(await storage().controlRevision(), before)
      assert.deepEqual(await deploy(storage(), newId(), ['prompt', mine, 1]), { outcome: 'no_environment' })
    })

    test('promoting copies all or some versions from another environment of the workspace; other items stay', async () => {
      const { workspaceId, development, production } = await newHome(storage())
      const [a, b, c] = [
        await newPolicy(storage(), workspaceId, 3),
        await newPolicy(storage(), workspaceId),
        await newPolicy(storage(), workspaceId),
      ]
      const prompt = await newPrompt(storage(), workspaceId)
      await deploy(storage(), development, ['policy', a, 3], ['policy', b, 1], ['prompt', prompt, 1])
      await deploy(storage(), production, ['policy', a, 1], ['policy', c, 1])
      const promote = (items: { kind: 'prompt' | 'policy'; id: string }[] | null, sourceEnvironmentId = development) =>
        publish(storage(), production, { action: 'PROMOTE', sourceEnvironmentId, items })
      assert.deepEqual(changesOf(await promote([{ kind: 'policy', id: a }])), [[a, 1, 3]])
      assert.deepEqual(await promote([{ kind: 'policy', id: c }]), {
        outcome: 'not_in_force',
        item: { kind: 'policy', id: c },
      })
      const rest = changesOf(await promote(null))
      assert.ok(Array.isArray(rest))
      assert.deepEqual(new Set(rest.map(([id]) => id)), new Set([b, prompt]))
      const expected = [`policy ${a} 3`, `policy ${b} 1`, `policy ${c} 1`, `prompt ${prompt} 1`]
      assert.deepEqual((await inForce(storage(), production)).toSorted(), expected.toSorted())
      assert.equal(changesOf(await promote(null)), 'unchanged')
      const [change] = (await storage().listDeploymentChanges(production, {}, { limit: 1, after: null })).rows
      assert.deepEqual([change?.action, change?.sourceEnvironmentId], ['PROMOTE', development])
      await assertConsistent(storage(), production)
      const stranger = await newHome(storage())
      for (const source of [stranger.development, newId()]) {
        assert.deepEqual(await promote(null, source), { outcome: 'no_source_environment' })
      }
    })

    test('rolling back goes one version back each time, across removals, until there is no earlier one', async () => {
      const { workspaceId, development } = await newHome(storage())
      const id = await newPolicy(storage(), workspaceId, 4)
      const none = { outcome: 'no_earlier', item: { kind: 'policy', id } }
      assert.deepEqual(await rollBack(development, 'policy', id), none)
      for (const version of [1, null, 3, 2]) await deploy(storage(), development, ['policy', id, version])
      const earlier = async () => {
        const { rows } = await storage().listDeployments(development, { limit: 10, after: null })
        return rows.map(({ earlierVersion }) => earlierVersion)
      }
      assert.deepEqual(await earlier(), [3])
      assert.deepEqual(changesOf(await rollBack(development, 'policy', id)), [[id, 2, 3]])
      assert.deepEqual(await earlier(), [1])
      assert.deepEqual(changesOf(await rollBack(development, 'policy', id)), [[id, 3, 1]])
      assert.deepEqual(await earlier(), [null])
      assert.deepEqual(await rollBack(development, 'policy', id), none)
      // Later deployments build on that.
      await deploy(storage(), development, ['policy', id, 4])
      assert.deepEqual(changesOf(await rollBack(development, 'policy', id)), [[id, 4, 1]])
      await deploy(storage(), development, ['policy', id, null])
      assert.deepEqual(changesOf(await rollBack(development, 'policy', id)), [[id, null, 1]])
      await assertConsistent(storage(), development)
    })

    test('the changes are listed with the newest publication first, all or of one item, page by page', async () => {
      const { workspaceId, development } = await newHome(storage())
      const [a, b] = [await newPolicy(storage(), workspaceId, 2), await newPrompt(storage(), workspaceId)]
      await deploy(storage(), development, ['policy', a, 1], ['prompt', b, 1])
      await deploy(storage(), development, ['policy', a, 2])
      await deploy(storage(), development, ['policy', a, null])
      const list = async (limit: number) => {
        const seen: unknown[][] = []
        let after: Parameters<Storage['listDeploymentChanges']>[2]['after'] = null
        for (;;) {
          const page: Page<DeploymentChangeRow> = await storage().listDeploymentChanges(
            development,
            {},
            { limit, after },
          )
          const { rows, more } = page
          seen.push(...rows.map(({ publication, kind, id, from, to }) => [publication, kind, id, from, to]))
          const last = rows.at(-1)
          if (!more || last === undefined) return seen
          after = { publication: last.publication, kind: last.kind, id: last.id }
        }
      }
      const expected = [
        [3, 'policy', a, 2, null],
        [2, 'policy', a, 1, 2],
        [1, 'policy', a, null, 1],
        [1, 'prompt', b, null, 1],
      ]
      for (const limit of [1, 2, 3, 4, 9]) assert.deepEqual(await list(limit), expected)
      const ofPrompt = (await storage().listDeploymentChanges(development, { kind: 'prompt', id: b }, all)).rows
      assert.deepEqual(ofPrompt, [
        {
          publication: 1,
          action: 'DEPLOY',
          kind: 'prompt',
          id: b,
          name: b,
          from: null,
          to: 1,
          at: NOON,
          by: 'ada',
          note: null,
          sourceEnvironmentId: null,
          revision: ofPrompt[0]?.revision,
          shareVersion: null,
          sharePercent: null,
          importedAt: null,
        },
      ])
      assert.equal((await storage().listDeploymentChanges(development, { kind: 'prompt' }, all)).rows.length, 1)
    })

    test('the revision depends only on what is deployed, not on the way there', async () => {
      const { workspaceId, development, production } = await newHome(storage())
      const items: ['prompt' | 'policy', string][] = [
        ['prompt', await newPrompt(storage(), workspaceId, 'a', 'b', 'c')],
        ['prompt', await newPrompt(storage(), workspaceId, 'a', 'b', 'c')],
        ['policy', await newPolicy(storage(), workspaceId, 3)],
        ['policy', await newPolicy(storage(), workspaceId, 3)],
      ]
      const version = fc.constantFrom(null, 1, 2, 3)
      const step = fc.record({ item: fc.nat(items.length - 1), version })
      const property = fc.asyncProperty(
        fc.array(step, { maxLength: 8 }),
        fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }),
        async (steps, order) => {
          const final = new Map<number, number | null>()
          for (const { item, version } of steps) {
            const [kind, id] = items[item] ?? assert.fail()
            await deploy(storage(), development, [kind, id, version])
            final.set(item, version)
          }
          // The other environment gets the final state in one publication, in any order.
          const current = new Map((await inForce(storage(), development)).map((line) => [line.slice(0, -2), line]))
          await deploy(
            storage(),
            production,
            ...order.map((item): ['prompt' | 'policy', string, number | null] => {
              const [kind, id] = items[item] ?? assert.fail()
              const line = current.get(`${kind} ${id}`)
              return [kind, id, line === undefined ? null : Number(line.at(-1))]
            }),
          )
          for (const [item, version] of final) {
            const [kind, id] = items[item] ?? assert.fail()
            assert.equal(current.has(`${kind} ${id}`), version !== null)
          }
          const [one, other] = [await configOf(storage(), development), await configOf(storage(), production)]
          assert.deepEqual(other, one)
          await assertConsistent(storage(), development)
        },
      )
      await fc.assert(property, { numRuns: 15 })
    })

    test('concurrent publications take turns: the configuration is what is deployed', async () => {
      const { workspaceId, development, production } = await newHome(storage())
      const ids: string[] = []
      for (let count = 0; count < 4; count++) ids.push(await newPolicy(storage(), workspaceId, 5))
      const acts = Array.from({ length: 24 }, (_, index) => {
        const id = ids[index % ids.length] ?? ''
        if (index % 6 === 5) {
          return publish(storage(), development, { action: 'PROMOTE', sourceEnvironmentId: production, items: null })
        }
        return deploy(storage(), index % 4 === 3 ? production : development, ['policy', id, (index % 5) + 1])
      })
      const outcomes = await Promise.all(acts)
      for (const environmentId of [development, production]) {
        await assertConsistent(storage(), environmentId)
        const changes = (await storage().listDeploymentChanges(environmentId, {}, all)).rows
        const publications = new Set(changes.map(({ publication }) => publication))
        assert.deepEqual(
          [...publications].toSorted((a, b) => a - b),
          Array.from({ length: publications.size }, (_, index) => index + 1),
          'numbered without gaps',
        )
        // Each change starts from the state the previous one left.
        for (const id of ids) {
          const ofItem = changes.filter((change) => change.id === id).toReversed()
          ofItem.reduce((before: number | null, { from, to }) => (assert.equal(from, before), to), null)
        }
      }
      assert.ok(outcomes.every(({ outcome }) => outcome === 'published' || outcome === 'unchanged'))
    })

    test('limits hold at the limit and one past it; undeploying is always allowed', async () => {
      const { workspaceId, development } = await newHome(storage())
      const content = 'x'.repeat(262_144)
      const ids: string[] = []
      for (let count = 0; count < 17; count++) ids.push(await newPrompt(storage(), workspaceId, `${count}`, content))
      const fits = ids.slice(0, 16).map((id): ['prompt', string, number] => ['prompt', id, 2])
      assert.equal((await deploy(storage(), development, ...fits)).outcome, 'published')
      const [last = ''] = ids.slice(16)
      assert.deepEqual(await deploy(storage(), development, ['prompt', last, 1]), {
        outcome: 'too_large',
        limit: 'bytes',
      })
      assert.equal((await deploy(storage(), development, ['prompt', ids[0] ?? '', null])).outcome, 'published')
      assert.equal((await deploy(storage(), development, ['prompt', last, 2])).outcome, 'published')
      await assertConsistent(storage(), development)
    })
  })
}
