/** Shares: a version of a prompt for a part of the sessions, beside the version in force. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RuntimeConfig } from '@tacho/contract/policies/runtime-config.ts'
import type { Published } from '../../../../src/storage/policies/deployments.ts'
import { auditEntry, deploy, newHome, newPolicy, newPrompt, publish } from './configuration-sample.ts'
import { changeShared, sharedStorage, type OpenStorage } from '../open.ts'

export function sharesSuite(open: OpenStorage) {
  describe('shares of prompts', () => {
    const storage = sharedStorage(open)

    const share = (environmentId: string, id: string, version: number, percent: number) =>
      publish(storage(), environmentId, {
        action: 'DEPLOY',
        items: [{ kind: 'prompt', id, version, share: percent }],
      })

    async function served(environmentId: string, id: string) {
      const { text } = await storage().readConfiguration(environmentId, null)
      const { prompts } = JSON.parse(text ?? '{"prompts":[]}') as RuntimeConfig
      return prompts.find(({ promptId }) => promptId === id)
    }

    const shownShare = async (environmentId: string, id: string) => {
      const { rows } = await storage().listDeployments(environmentId, { limit: 1000, after: null })
      const row = rows.find((one) => one.id === id)
      return row && [row.version, row.share && [row.share.version, row.share.percent]]
    }

    const outcomeOf = (published: Published) =>
      published.outcome === 'published'
        ? published.changes.map(({ from, to, share: of }) => [from, to, of && [of.version, of.percent]])
        : published.outcome === 'no_share'
          ? published.why
          : published.outcome

    async function shared() {
      const home = await newHome(storage())
      const id = await newPrompt(storage(), home.workspaceId, 'one', 'two', 'three')
      await deploy(storage(), home.production, ['prompt', id, 1])
      await share(home.production, id, 2, 10)
      return { ...home, id }
    }

    test('a share is served beside the version in force, and each change has a revision of its own', async () => {
      const home = await newHome(storage())
      const id = await newPrompt(storage(), home.workspaceId, 'one', 'two')
      await deploy(storage(), home.production, ['prompt', id, 1])
      const before = await served(home.production, id)
      const revisions = [(await storage().checkConfiguration(home.production)).revision]
      assert.deepEqual(outcomeOf(await share(home.production, id, 2, 10)), [[1, 1, [2, 10]]])
      const prompt = await served(home.production, id)
      const { share: of, ...stable } = prompt ?? {}
      assert.deepEqual(stable, before, 'an old client reads what it read before')
      const version = await storage().findPromptVersion(home.workspaceId, id, 2)
      const { salt = '', ...content } = of ?? {}
      assert.deepEqual(content, {
        percent: 10,
        versionId: version?.id,
        version: '2',
        content: 'two',
        contentHash: version?.contentHash,
      })
      assert.match(salt, /^[0-9a-f]{16}$/)
      revisions.push((await storage().checkConfiguration(home.production)).revision)
      assert.equal(outcomeOf(await share(home.production, id, 2, 10)), 'unchanged')

      assert.deepEqual(outcomeOf(await share(home.production, id, 2, 25)), [[1, 1, [2, 25]]])
      const raised = await served(home.production, id)
      assert.deepEqual([raised?.share?.percent, raised?.share?.salt], [25, salt], 'the same sessions stay in it')
      revisions.push((await storage().checkConfiguration(home.production)).revision)
      assert.equal(new Set(revisions).size, 3)

      assert.deepEqual(outcomeOf(await share(home.production, id, 2, 0)), [[1, 1, [2, 0]]])
      assert.deepEqual(await served(home.production, id), before)
      assert.equal((await storage().checkConfiguration(home.production)).revision, revisions[0])
      assert.equal(outcomeOf(await share(home.production, id, 2, 0)), 'unchanged')
      await share(home.production, id, 2, 25)
      assert.notEqual((await served(home.production, id))?.share?.salt, salt, 'others come first in a new share')
    })

    test('any other version in force ends the share; a deployment of the same one ends it, a promotion does not', async () => {
      const toAll = await shared()
      assert.deepEqual(outcomeOf(await deploy(storage(), toAll.production, ['prompt', toAll.id, 2])), [[1, 2, null]])
      assert.deepEqual(await shownShare(toAll.production, toAll.id), [2, null])

      const same = await shared()
      assert.deepEqual(outcomeOf(await deploy(storage(), same.production, ['prompt', same.id, 1])), [[1, 1, [2, 0]]])
      assert.deepEqual(await shownShare(same.production, same.id), [1, null])

      const gone = await shared()
      await deploy(storage(), gone.production, ['prompt', gone.id, null])
      assert.equal(await shownShare(gone.production, gone.id), undefined)
      await deploy(storage(), gone.production, ['prompt', gone.id, 1])
      assert.deepEqual(await shownShare(gone.production, gone.id), [1, null])

      const promoted = await shared()
      await deploy(storage(), promoted.development, ['prompt', promoted.id, 1])
      const intent = { action: 'PROMOTE' as const, sourceEnvironmentId: promoted.development, items: null }
      assert.equal(outcomeOf(await publish(storage(), promoted.production, intent)), 'unchanged')
      assert.deepEqual(await shownShare(promoted.production, promoted.id), [1, [2, 10]])
      // A share is never promoted.
      const back = { action: 'PROMOTE' as const, sourceEnvironmentId: promoted.production, items: null }
      assert.equal(outcomeOf(await publish(storage(), promoted.development, back)), 'unchanged')
      assert.deepEqual(await shownShare(promoted.development, promoted.id), [1, null])
    })

    test('a rollback goes past shares, to the version that was in force before', async () => {
      const { production, id } = await shared()
      await deploy(storage(), production, ['prompt', id, 2])
      await deploy(storage(), production, ['prompt', id, 3])
      const rollBack = () => publish(storage(), production, { action: 'ROLL_BACK', items: [{ kind: 'prompt', id }] })
      assert.deepEqual(outcomeOf(await rollBack()), [[3, 2, null]])
      await share(production, id, 3, 50)
      await share(production, id, 3, 0)
      await share(production, id, 3, 5)
      assert.deepEqual(outcomeOf(await rollBack()), [[2, 1, null]])
      assert.deepEqual(await shownShare(production, id), [1, null])
    })

    test('a share needs another version in force, a version that exists, and room', async () => {
      const { workspaceId, production } = await newHome(storage())
      const id = await newPrompt(storage(), workspaceId, 'one', 'two')
      const policyId = await newPolicy(storage(), workspaceId, 2)
      await deploy(storage(), production, ['policy', policyId, 1])
      assert.equal(outcomeOf(await share(production, id, 2, 10)), 'no_other')
      await deploy(storage(), production, ['prompt', id, 2])
      assert.equal(outcomeOf(await share(production, id, 2, 10)), 'in_force')
      assert.equal(outcomeOf(await share(production, id, 3, 10)), 'no_item')
      const ids: string[] = []
      for (let count = 0; count <= LIMITS.promptShares; count++) {
        ids.push(await newPrompt(storage(), workspaceId, 'one', 'two'))
      }
      await deploy(storage(), production, ...ids.map((one) => ['prompt', one, 1] as ['prompt', string, number]))
      const intent = (some: string[]) => ({
        action: 'DEPLOY' as const,
        items: some.map((one) => ({ kind: 'prompt' as const, id: one, version: 2, share: 1 })),
      })
      const tooMany = await publish(storage(), production, intent(ids))
      assert.deepEqual(tooMany, { outcome: 'too_large', limit: 'shares' })
      assert.equal((await publish(storage(), production, intent(ids.slice(1)))).outcome, 'published')
    })

    test('its changes are listed and in the audit log', async () => {
      const { workspaceId, production, id } = await shared()
      const item = { kind: 'prompt' as const, id, version: 2 }
      const audit = () => [auditEntry(workspaceId)]
      const act = (percent?: number) => {
        return publish(storage(), production, { action: 'DEPLOY', items: [{ ...item, share: percent }] }, audit())
      }
      await act(30)
      await act(0)
      await act(40)
      await act()
      const filter = { kind: 'prompt' as const, id }
      const { rows } = await storage().listDeploymentChanges(production, filter, { limit: 10, after: null })
      assert.deepEqual(
        rows.map((row) => [row.action, row.from, row.to, row.shareVersion, row.sharePercent]),
        [
          ['DEPLOY', 1, 2, null, null],
          ['SHARE', 1, 1, 2, 40],
          ['SHARE', 1, 1, 2, 0],
          ['SHARE', 1, 1, 2, 30],
          ['SHARE', 1, 1, 2, 10],
          ['DEPLOY', null, 1, null, null],
        ],
      )
      const log = await storage().listAudit(workspaceId, { limit: 10, after: null }, { targetId: id })
      assert.deepEqual(
        log.rows.map(({ action, detail }) => {
          const { share: of, shareBefore } = JSON.parse(detail) as Record<string, unknown>
          return [action, of, shareBefore]
        }),
        [
          ['prompt.deploy', undefined, { version: 2, percent: 40 }],
          ['prompt.share', { version: 2, percent: 40 }, undefined],
          ['prompt.end_share', { version: 2, percent: 0 }, { version: 2, percent: 30 }],
          ['prompt.share', { version: 2, percent: 30 }, { version: 2, percent: 10 }],
        ],
      )
    })

    test('of a damaged share or version nothing is published, until the share ends', async () => {
      for (const [change, message] of [
        ['UPDATE prompt_shares SET percent = 90 WHERE environment_id = ?', /^The stored share of prompt/],
        [
          "UPDATE prompt_versions SET content = 'x' WHERE number = 2 AND workspace_id = ?",
          /^The stored version 2 of prompt/,
        ],
        ['DELETE FROM prompt_versions WHERE number = 2 AND workspace_id = ?', /^The stored version 2 of prompt/],
      ] as const) {
        const { workspaceId, production, id } = await shared()
        const policyId = await newPolicy(storage(), workspaceId)
        await changeShared(open, change, change.includes('environment_id') ? production : workspaceId)
        const refused = { code: 'configuration_damaged', message }
        await assert.rejects(deploy(storage(), production, ['policy', policyId, 1]), refused)
        assert.equal((await served(production, id))?.share?.percent, 10, 'clients keep what was published')
        await share(production, id, 2, 0)
        assert.equal((await served(production, id))?.share, undefined)
        assert.equal((await deploy(storage(), production, ['policy', policyId, 1])).outcome, 'published')
      }
    })
  })
}
