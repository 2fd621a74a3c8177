/** Damaged policies, prompts and settings are never served or used, and always reported by name. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { exportText } from '../../../../src/domain/data/export.ts'
import { readImport } from '../../../../src/domain/data/import.ts'
import { TABLES } from '../../../../src/storage/engine/tables.ts'
import { auditEntry } from '../people/access.ts'
import { apiKey, NO_CREATOR, operatorToken } from '../tenants/control.ts'
import { deploy, newHome, newPolicy, newPrompt, policyVersion, type Home } from './configuration-sample.ts'
import { changeShared, closeShared, sharedStorage, type OpenStorage } from '../open.ts'
import { invitation, person } from '../people/operators.ts'
import { newId, NOON } from '../sample.ts'
import { newWebhook } from '../messages/webhooks.ts'

const DAMAGED = { code: 'configuration_damaged' }
const KEEP = { payloadDays: null, issueDays: null, approvalDays: null, auditDays: null, keepOpenIssueRuns: true }

export function configurationDamageSuite(open: OpenStorage) {
  describe('damage of the configuration', () => {
    // A separate store, because the checks see all environments.
    const own: OpenStorage = () => open()
    after(() => closeShared(own))
    const storage = sharedStorage(own)

    /** Changes rows without their checksums, and asserts that `tacho doctor` names them. */
    async function damage(id: string, change: string, table: string, of: string, named: RegExp): Promise<void> {
      assert.equal((await doctor()).ok, true, (await doctor()).detail)
      await changeShared(own, `UPDATE ${table} SET ${change} WHERE ${of} = ?`, id)
      const { ok, detail } = await doctor()
      assert.equal(ok, false)
      assert.match(detail, named)
    }

    async function doctor() {
      const check = (await storage().inspect()).find(({ name }) => name === 'configuration')
      if (check === undefined) throw new Error('doctor has no such check')
      return check
    }

    const flip = (column: string, from: string, to: string) => `${column} = replace(${column}, '${from}', '${to}')`
    const remove = (table: string, id: string, of = 'environment_id') =>
      changeShared(own, `DELETE FROM ${table} WHERE ${of} = ?`, id)

    async function deployed(condition: string): Promise<Home & { policyId: string }> {
      const home = await newHome(storage())
      const policyId = await newPolicy(storage(), home.workspaceId)
      await storage().createPolicyVersion(home.workspaceId, policyId, policyVersion({ condition }), null, [])
      await deploy(storage(), home.production, ['policy', policyId, 2])
      return { ...home, policyId }
    }

    test('of a policy in force is refused, names the policy, and is mended by deploying it again', async () => {
      const { production, policyId } = await deployed('tool.input.amount > 1000.0')
      const intact = await storage().readConfiguration(production, null)
      const before = storage().gauges().damagedSettings
      const named = new RegExp(`policy "${policyId}" of the configuration in force`)
      await damage(production, flip('body', '1000.0', '9000.0'), 'configurations', 'environment_id', named)
      await assert.rejects(storage().readConfiguration(production, null), { ...DAMAGED, message: named })
      const { revision } = intact
      assert.deepEqual(await storage().checkConfiguration(production), { revision, damaged: true })
      assert.equal(storage().gauges().damagedSettings, before + 1)
      const again = await deploy(storage(), production, ['policy', policyId, 2])
      assert.equal(again.outcome, 'unchanged')
      assert.deepEqual(await storage().readConfiguration(production, null), intact)
      assert.deepEqual(await storage().checkConfiguration(production), { revision })
    })

    test('of the revision, or of a text that is no longer JSON, is refused too', async () => {
      for (const change of [`revision = 'abc'`, `body = 'x'`]) {
        const { production, policyId } = await deployed('tool.name == "x"')
        await damage(production, change, 'configurations', 'environment_id', /configuration in force/)
        await assert.rejects(storage().readConfiguration(production, null), DAMAGED)
        await deploy(storage(), production, ['policy', policyId, 2])
        await storage().readConfiguration(production, null)
      }
    })

    test('of a version has no text, is not deployed, and does not stop the others', async () => {
      const { workspaceId, development, production, policyId } = await deployed('tool.input.amount > 1000.0')
      const intact = await storage().readConfiguration(production, null)
      const named = new RegExp(`version 2 of policy "${policyId}"`)
      await damage(workspaceId, flip('condition', '1000.0', '9000.0'), 'policy_versions', 'workspace_id', named)
      const page = await storage().listPolicyVersions(workspaceId, policyId, { limit: 10, after: null })
      assert.deepEqual(
        page.rows.map(({ number, condition, damaged }) => [number, condition, damaged]),
        [
          [2, '', true],
          [1, 'tool.name == "refund"', undefined],
        ],
      )
      assert.equal((await storage().findPolicy(workspaceId, policyId))?.newest.damaged, true)
      assert.equal((await storage().findPolicyVersion(workspaceId, policyId, 2))?.condition, '')
      // The published configuration is intact.
      assert.deepEqual(await storage().readConfiguration(production, null), intact)
      await assert.rejects(deploy(storage(), development, ['policy', policyId, 2]), { ...DAMAGED, message: named })
      assert.equal((await deploy(storage(), development, ['policy', policyId, 1])).outcome, 'published')
      const third = policyVersion({ condition: 'tool.input.amount > 1000.0' })
      const saved = await storage().createPolicyVersion(workspaceId, policyId, third, null, [])
      assert.equal(saved?.outcome, 'created')
      assert.equal((await deploy(storage(), production, ['policy', policyId, 3])).outcome, 'published')
      await changeShared(own, 'UPDATE policy_versions SET row_sum = NULL WHERE workspace_id = ?', workspaceId)
    })

    test('of a prompt is found by the hash of its content', async () => {
      const { workspaceId, production } = await newHome(storage())
      const id = await newPrompt(storage(), workspaceId, 'Be kind')
      const named = new RegExp(`version 1 of prompt ${id}`)
      await damage(workspaceId, flip('content', 'kind', 'mind'), 'prompt_versions', 'workspace_id', named)
      const version = await storage().findPromptVersion(workspaceId, id, 1)
      assert.deepEqual([version?.content, version?.damaged], ['', true])
      const listed = await storage().listPrompts(workspaceId, null, { limit: 10, after: null })
      assert.deepEqual(
        listed.rows.map(({ id: of, newest }) => [of, newest.damaged]),
        [[id, true]],
      )
      const versions = await storage().listPromptVersions(workspaceId, id, { limit: 10, after: null })
      assert.deepEqual(
        versions.rows.map(({ number, damaged }) => [number, damaged]),
        [[1, true]],
      )
      assert.ok(!('content' in (versions.rows[0] ?? {})))
      const again = { id: newId(), content: 'Be kind', author: 'ada', note: null, createdAt: NOON }
      const saved = await storage().createPromptVersion(workspaceId, id, again, 1, [])
      assert.deepEqual([saved?.outcome, saved?.version.number], ['created', 2])
      assert.equal((await storage().findPrompt(workspaceId, id))?.newest.damaged, undefined)
      await assert.rejects(deploy(storage(), production, ['prompt', id, 1]), { ...DAMAGED, message: named })
      await changeShared(own, flipBack('prompt_versions', 'content', 'mind', 'kind'), workspaceId)
    })
    const flipBack = (table: string, column: string, from: string, to: string) =>
      `UPDATE ${table} SET ${flip(column, from, to)} WHERE workspace_id = ?`

    test('is marked in an export, which then cannot be imported: an import would give it a new checksum', async () => {
      const { workspaceId, production, policyId } = await deployed('tool.input.amount > 1000.0')
      const promptId = await newPrompt(storage(), workspaceId, 'Be kind')
      await deploy(storage(), production, ['prompt', promptId, 1])
      const exported = async () => {
        const request = { environmentId: production, workspace: 'w', environment: 'e', filter: {}, given: {} }
        let text = ''
        for await (const piece of exportText(storage(), { ...request, from: null })) text += piece
        return text.trimEnd().split('\n')
      }
      const [head = '', ...intact] = await exported()
      assert.ok(!('line' in readImport([head, ...intact], workspaceId)))
      const ofWorkspace = 'WHERE workspace_id = ?'
      const changes: [table: string, change: string, id: string, key: object][] = [
        [
          'policy_versions',
          `${flip('condition', '1000.0', '9000.0')} ${ofWorkspace}`,
          workspaceId,
          { policyId, number: 2 },
        ],
        ['policy_versions', `on_error = 'ignore' ${ofWorkspace}`, workspaceId, { policyId, number: 1 }],
        ['prompt_versions', `${flip('content', 'kind', 'mind')} ${ofWorkspace}`, workspaceId, { promptId, number: 1 }],
        [
          'deployments',
          "version = 3 WHERE environment_id = ? AND kind = 'policy'",
          production,
          { kind: 'policy', itemId: policyId },
        ],
      ]
      for (const [table, change, id, key] of changes) {
        await changeShared(own, `UPDATE ${table} SET ${change}`, id)
        const type = TABLES.find(({ name }) => name === table)?.line
        const line = JSON.stringify({ type, ...key, rowDamaged: true })
        assert.ok((await exported()).includes(line), line)
        const refused = readImport([head, line], workspaceId)
        assert.deepEqual(refused, { line: 1, message: 'is a row that was damaged where it was exported' })
      }
      await remove('deployments', production)
      await remove('policy_versions', workspaceId, 'workspace_id')
      await remove('prompt_versions', workspaceId, 'workspace_id')
    })

    test('of a deployment never puts another version in force', async () => {
      const { workspaceId, production, policyId } = await deployed('tool.name == "x"')
      const other = await newPolicy(storage(), workspaceId)
      const named = new RegExp(`deployment of policy "${policyId}"`)
      await damage(production, 'version = 1', 'deployments', 'environment_id', named)
      await assert.rejects(deploy(storage(), production, ['policy', other, 1]), { ...DAMAGED, message: named })
      const isMarked = async () =>
        (await storage().listDeployments(production, { limit: 10, after: null })).rows.map(({ damaged }) => damaged)
      assert.deepEqual(await isMarked(), [true])
      assert.equal((await deploy(storage(), production, ['policy', policyId, 2])).outcome, 'published')
      assert.deepEqual(await isMarked(), [undefined])
      assert.equal((await deploy(storage(), production, ['policy', other, 1])).outcome, 'published')
    })

    test('of retention settings removes nothing until they are set again', async () => {
      const { workspaceId, production } = await newHome(storage())
      const tenant = { workspaceId, environmentId: production }
      const set = async (runDays: number) => {
        const { settings: before } = await storage().readRetention(tenant)
        const change = { before, settings: { ...KEEP, runDays } }
        assert.equal(await storage().changeRetention(workspaceId, production, change, NOON, []), true)
      }
      await set(365)
      await damage(production, 'run_days = 3', 'retention_settings', 'environment_id', /retention setting/)
      assert.equal((await storage().startRetention(production, NOON))?.runDays, null)
      assert.equal((await storage().readRetention(tenant)).damaged, true)
      await set(365)
      assert.equal((await storage().readRetention(tenant)).damaged, undefined)
      assert.equal((await storage().startRetention(production, NOON))?.runDays, 365)
    })

    test('of the stalled rule closes no run', async () => {
      const { production } = await newHome(storage())
      await storage().changeStalledRule(production, { idleMinutes: 600, closeAs: 'FAILED' }, NOON, [])
      await damage(production, 'idle_minutes = 6', 'stalled_rules', 'environment_id', /stalled rule/)
      assert.equal((await storage().closeStalledRuns(production, NOON, null)).isOn, false)
      assert.equal((await storage().readStalledRule(production))?.damaged, true)
      await storage().changeStalledRule(production, { idleMinutes: 60, closeAs: 'FAILED' }, NOON, [])
      assert.deepEqual(await storage().readStalledRule(production), { idleMinutes: 60, closeAs: 'FAILED' })
    })

    test('of a price is marked among the others, and prices nothing until it is set again', async () => {
      const { workspaceId } = await newHome(storage())
      const price = { model: 'm', rates: { input: 1.5, output: 2 }, changedAt: NOON } as never
      await storage().setPrice(workspaceId, price, [])
      await damage(workspaceId, flip('rates', '1.5', '9.5'), 'prices', 'workspace_id', /price of "m"/)
      await storage().setPrice(workspaceId, { model: 'n', rates: { input: 1, output: 1 }, changedAt: NOON }, [])
      const rates = { input: 0, output: 0 }
      const [damaged, intact] = await storage().listPrices(workspaceId)
      assert.deepEqual(damaged, { model: 'm', rates, changedAt: NOON, damaged: true })
      assert.deepEqual(intact, { model: 'n', rates: { input: 1, output: 1 }, changedAt: NOON })
      await storage().setPrice(workspaceId, price, [])
      assert.deepEqual((await storage().listPrices(workspaceId))[0], price)
    })

    test('of an alert or a webhook is refused: nothing is checked against it, and nothing sent', async () => {
      const { production: env } = await newHome(storage())
      const rule = {
        name: 'a',
        kind: 'cost',
        threshold: 100,
        agentId: null,
        windowMinutes: 60,
        holdMinutes: 5,
        period: 'month',
      }
      const state = { status: 'OK', since: NOON, overSince: null, value: null, period: 0, percentTold: 0 } as const
      const alert = { id: newId(), environmentId: env, rule: rule as never, state, checkedAt: null, createdAt: NOON }
      await storage().createAlert(alert, [])
      const changed = { environmentId: env, id: alert.id, at: NOON }
      await storage().changeAlert(changed, { threshold: 200 }, state, [])
      await damage(env, flip('rule', '200', '900'), 'alerts', 'environment_id', new RegExp(`rule of alert ${alert.id}`))
      await assert.rejects(storage().startAlertCheck(env, alert.id), DAMAGED)
      const other = { ...alert, id: newId() }
      await storage().createAlert(other, [])
      const listed = new Map((await storage().listAlerts(env)).map((one) => [one.id, one]))
      assert.deepEqual([listed.get(alert.id)?.damaged, listed.get(alert.id)?.rule.name], [true, ''])
      assert.deepEqual([listed.get(other.id)?.damaged, listed.get(other.id)?.rule.name], [undefined, 'a'])
      await assert.rejects(storage().changeAlert(changed, { threshold: 200 }, state, []), DAMAGED)
      await changeShared(own, "UPDATE alerts SET rule = 'x' WHERE id = ?", alert.id)
      assert.equal((await storage().removeAlert(env, alert.id, []))?.damaged, true)
      assert.equal((await storage().listAlerts(env)).length, 1)
      const hook = await newWebhook(storage(), env)
      await storage().changeWebhook(env, hook.id, { url: 'https://example.com/other' }, [])
      assert.equal((await storage().findWebhook(env, hook.id))?.url, 'https://example.com/other')
      const named = new RegExp(`webhook ${hook.id}`)
      await damage(env, flip('url', 'example', 'exbmple'), 'webhooks', 'environment_id', named)
      await assert.rejects(storage().findWebhook(env, hook.id), { ...DAMAGED, message: named })
      const byDamage = (a: { damaged?: true }, b: { damaged?: true }) => Number(!a.damaged) - Number(!b.damaged)
      const otherHook = await newWebhook(storage(), env)
      const hooks = async () =>
        (await storage().listWebhooks(env, { limit: 10, after: null })).rows
          .toSorted(byDamage)
          .map(({ id, url, damaged }) => [id, damaged ?? url])
      assert.deepEqual(await hooks(), [
        [hook.id, true],
        [otherHook.id, otherHook.url],
      ])
      await changeShared(own, `UPDATE webhooks SET events = 'x' WHERE environment_id = ? AND id = '${hook.id}'`, env)
      assert.equal((await storage().removeWebhook(env, hook.id, []))?.damaged, true)
      assert.deepEqual(await hooks(), [[otherHook.id, otherHook.url]])
    })

    test('of what gives access is refused: a key, a token and a role that changed on disk allow nothing', async () => {
      const { workspaceId, production: environmentId } = await newHome(storage())
      const key = apiKey(environmentId, { scopes: ['usage:read'] })
      assert.equal(await storage().createApiKey(key, []), 'created')
      const named = new RegExp(`API key ${key.id}`)
      await damage(key.id, flip('scopes', 'usage:read', 'events:write'), 'api_keys', 'id', named)
      await assert.rejects(storage().findApiKey(key.id), { ...DAMAGED, message: named })
      const [listed] = (await storage().listApiKeys(environmentId, { limit: 10, after: null })).rows
      assert.deepEqual([listed?.id, listed?.scopes, listed?.damaged], [key.id, [], true])
      await assert.rejects(storage().changeApiKey(environmentId, key.id, { scopes: [] }, NOON, []), DAMAGED)
      assert.equal((await storage().revokeApiKey(environmentId, key.id, NOON, []))?.revokedAt, NOON)
      await remove('api_keys', key.id, 'id')

      const narrowed = apiKey(environmentId, { scopes: ['usage:read', 'events:write'] })
      await storage().createApiKey(narrowed, [])
      await storage().changeApiKey(environmentId, narrowed.id, { scopes: ['usage:read'] }, NOON, [])
      const rotation = { id: newId(), hash: 'h', now: NOON, oldValidUntil: NOON + 1, expiresAt: undefined }
      await storage().rotateApiKey(environmentId, narrowed.id, { ...rotation, ...NO_CREATOR }, [])
      for (const id of [narrowed.id, rotation.id]) {
        assert.deepEqual((await storage().findApiKey(id))?.scopes, ['usage:read'])
      }

      const token = operatorToken({ workspaceId, role: 'viewer' })
      await storage().createOperatorToken(token, [])
      assert.equal((await storage().findOperatorToken(token.id))?.role, 'viewer')
      await damage(token.id, "role = 'owner'", 'operator_tokens', 'id', new RegExp(`operator token ${token.id}`))
      await assert.rejects(storage().findOperatorToken(token.id), DAMAGED)
      const [shown] = (await storage().listOperatorTokens(workspaceId, { limit: 10, after: null })).rows
      assert.deepEqual([shown?.id, shown?.damaged], [token.id, true])
      await remove('operator_tokens', token.id, 'id')

      const { id, ...operator } = person(`${newId()}@example.com`)
      await storage().createOperator({ id, ...operator }, 'viewer', [])
      const session = { id: newId(), userId: id, token: newId(), expiresAt: NOON * 2, createdAt: NOON, updatedAt: NOON }
      await storage().createSignIn('session', session)
      const everywhere = async () => (await storage().findSession(session.token))?.everywhere
      assert.equal(await everywhere(), 'viewer')
      await damage(id, "role = 'admin'", 'operator_roles', 'operator_id', new RegExp(`role of the person ${id}`))
      await assert.rejects(everywhere(), DAMAGED)
      const member = await storage().findOperator(null, id)
      assert.deepEqual([member?.role, member?.damaged], [null, true])
      // A sign-in or a directory must not write a new checksum for the damaged row.
      for (const role of ['viewer', 'owner'] as const) {
        const byGroup = storage().applyGroupRoles(id, [{ workspace: null, role }], auditEntry())
        await assert.rejects(byGroup, { ...DAMAGED, message: new RegExp(`role of the person ${id}`) })
      }
      await assert.rejects(everywhere(), DAMAGED)
      assert.equal(await storage().changeOperatorRole(null, id, 'viewer', NOON, []), 'changed')
      assert.equal(await everywhere(), 'viewer')

      const owners = [person(`${newId()}@example.com`), person(`${newId()}@example.com`)] as const
      for (const one of owners) {
        await storage().createOperator(one, null, [])
        const role = one === owners[0] ? 'owner' : 'viewer'
        await storage().applyGroupRoles(one.id, [{ workspace: workspaceId, role }], auditEntry())
      }
      await changeShared(own, "UPDATE operator_roles SET role = 'owner' WHERE operator_id = ?", owners[1].id)
      const demoted = storage().changeOperatorRole(workspaceId, owners[0].id, null, NOON, [])
      assert.equal(await demoted, 'last_owner', 'a role that a fault gave counts for nothing')
      const byDamaged = invitation({ workspaceId, role: 'owner', inviter: { kind: 'operator', id: owners[1].id } })
      await storage().createInvitation(byDamaged, [])
      assert.equal(await storage().findInvitation(byDamaged.id, NOON), null)
      assert.equal(await storage().changeOperatorRole(workspaceId, owners[1].id, 'viewer', NOON, []), 'changed')
    })

    test('rows from before have no checksum, and get one when they are written again', async () => {
      const { workspaceId, production } = await newHome(storage())
      await storage().changeStalledRule(production, { idleMinutes: 60, closeAs: null }, NOON, [])
      await changeShared(own, 'UPDATE stalled_rules SET row_sum = NULL WHERE environment_id = ?', production)
      assert.match((await doctor()).detail, /from before have none until they change$/)
      assert.equal((await storage().readStalledRule(production))?.idleMinutes, 60)
      assert.ok(workspaceId)
    })
  })
}
