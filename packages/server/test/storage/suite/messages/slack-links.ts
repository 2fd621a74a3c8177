import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import type { NewSlackCode, WebhookRow } from '../../../../src/storage/messages/messages.ts'
import { auditEntry } from '../people/access.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'
import { newEnvironment, newWebhook } from './webhooks.ts'

const MINUTE = 60_000

export function slackLinksSuite(open: OpenStorage) {
  describe('links of Slack users', () => {
    const storage = sharedStorage(open)

    const slackWebhook = async () =>
      newWebhook(storage(), await newEnvironment(storage()), { format: 'slack', signingSecret: 's'.repeat(32) })

    async function newPerson(role: Role = 'approver'): Promise<string> {
      const [id, email] = [newId(), `${newId()}@example.com`]
      const operator = { id, name: 'Ann', email, emailVerified: 1, createdAt: NOON, password: null }
      assert.equal(await storage().createOperator(operator, role, []), 'created')
      return id
    }

    function codeFor({ environmentId, id: webhookId }: WebhookRow, given: Partial<NewSlackCode> = {}): NewSlackCode {
      const user = { teamId: 'T1', teamName: 'example', userId: `U${newId()}`, userName: 'ann' }
      const { changedAt = NOON } = given
      const times = { changedAt, codeExpiresAt: changedAt + LIMITS.slackCodeMs }
      return { id: newId(), environmentId, webhookId, ...user, codeHash: newId(), ...times, ...given }
    }

    async function link(webhook: WebhookRow, operatorId: string, given: Partial<NewSlackCode> = {}) {
      const code = codeFor(webhook, given)
      assert.equal(await storage().askSlackLink(code), 'asked')
      const row = await storage().confirmSlackLink(code, operatorId, NOON + 1, auditEntry())
      assert.ok(row)
      return row
    }

    const listed = async ({ environmentId, id }: WebhookRow) =>
      (await storage().listSlackLinks(environmentId, id, { limit: 2_000, after: null })).rows

    test('a code links one Slack user to one person, once, within its webhook and time', async () => {
      const [webhook, other] = [await slackWebhook(), await slackWebhook()]
      const [ann, ben] = [await newPerson('owner'), await newPerson()]
      const code = codeFor(webhook)
      const { environmentId, webhookId, codeHash, codeExpiresAt, teamId, userId } = code
      assert.equal(await storage().askSlackLink(code), 'asked')
      const find = (of: WebhookRow, hash: string, now: number) =>
        storage().findSlackCode(of.environmentId, of.id, hash, now)
      assert.equal((await find(webhook, codeHash, NOON))?.userId, userId)
      for (const [of, hash, now] of [
        [other, codeHash, NOON],
        [{ ...webhook, environmentId: other.environmentId }, codeHash, NOON],
        [webhook, 'other', NOON],
        [webhook, codeHash, codeExpiresAt],
      ] as const) {
        assert.equal(await find(of, hash, now), null)
        const wrong = { environmentId: of.environmentId, webhookId: of.id, codeHash: hash }
        assert.equal(await storage().confirmSlackLink(wrong, ann, now, auditEntry()), null)
      }
      assert.deepEqual(await listed(webhook), [])
      assert.equal(await storage().findLinkedPerson(environmentId, webhookId, code), null)
      const racers = await Promise.all(
        [ann, ben].map((id) => storage().confirmSlackLink(code, id, NOON + 1, auditEntry())),
      )
      const [row] = racers.filter((each) => each !== null)
      assert.equal(racers.filter((each) => each !== null).length, 1)
      assert.deepEqual(await listed(webhook), [row])
      assert.equal(await find(webhook, codeHash, NOON), null)
      const person = await storage().findLinkedPerson(environmentId, webhookId, { teamId, userId })
      assert.deepEqual([person?.id, person?.email], [row?.operatorId, row?.email])
      assert.equal(person?.everywhere, row?.operatorId === ann ? 'owner' : 'approver')
      for (const wrong of [
        { teamId: 'T2', userId },
        { teamId, userId: 'U2' },
      ]) {
        assert.equal(await storage().findLinkedPerson(environmentId, webhookId, wrong), null)
      }
      assert.equal(await storage().findLinkedPerson(other.environmentId, webhookId, code), null)
      assert.equal(await storage().askSlackLink(codeFor(webhook, { userId })), 'linked')
      assert.equal(await storage().askSlackLink({ ...codeFor(webhook), webhookId: newId() }), 'gone')
    })

    test('a webhook has a limit of codes in a minute and of links, and one user asking again takes no place', async () => {
      const webhook = await slackWebhook()
      const ask = (given: Partial<NewSlackCode> = {}) => storage().askSlackLink(codeFor(webhook, given))
      const first = { userId: 'U1' }
      for (let count = 0; count < 3; count++) assert.equal(await ask(first), 'asked')
      for (let count = 1; count < LIMITS.slackCodesPerMinute; count++) assert.equal(await ask(), 'asked')
      assert.equal(await ask(first), 'asked')
      assert.equal(await ask(), 'too_often')
      let at = NOON
      for (let count = LIMITS.slackCodesPerMinute; count < 4 * LIMITS.slackCodesPerMinute; count++) {
        if (count % LIMITS.slackCodesPerMinute === 0) at += MINUTE + 1
        assert.equal(await ask({ changedAt: at }), 'asked')
      }
      assert.equal(await ask({ changedAt: at }), 'too_often')
      assert.deepEqual(await listed(webhook), [])
      await storage().deleteExpiredSignIns(at + LIMITS.slackCodeMs)
    })

    test('links go with the account, the webhook and its secret, and by the person or an admin', async () => {
      const webhook = await slackWebhook()
      const { environmentId, id } = webhook
      const [ann, ben] = [await newPerson(), await newPerson()]
      const one = await link(webhook, ann)
      const two = await link(webhook, ben)
      const elsewhere = await link(await slackWebhook(), ann)
      const newest = [elsewhere, one].toSorted((a, b) => (a.id < b.id ? 1 : -1))
      assert.deepEqual(await storage().listSlackLinksOf(ann), newest)
      assert.equal(await storage().removeSlackLinkOf(ben, one.id, []), null)
      assert.equal(await storage().removeSlackLink(elsewhere.environmentId, id, one.id, []), null)
      assert.deepEqual(await storage().removeSlackLinkOf(ann, one.id, []), one)
      assert.deepEqual(await storage().removeSlackLink(environmentId, id, two.id, []), two)
      assert.deepEqual(await listed(webhook), [])

      await link(webhook, ben)
      assert.equal(await storage().deleteOperator(ben, NOON, []), 'changed')
      assert.deepEqual(await listed(webhook), [])

      await link(webhook, ann)
      const { url } = (await storage().findWebhook(environmentId, id))!
      await storage().changeWebhook(environmentId, id, { description: 'new', url }, [])
      assert.equal((await listed(webhook)).length, 1)
      for (const change of [{ url: 'https://hooks.slack.com/other' }, { secret: 'whsec_bmV3' }]) {
        await storage().changeWebhook(environmentId, id, change, [])
        assert.deepEqual(await listed(webhook), [], JSON.stringify(change))
        await link(webhook, ann)
      }
      const waiting = codeFor(webhook)
      await storage().askSlackLink(waiting)
      await storage().changeWebhook(environmentId, id, { signingSecret: 'n'.repeat(32) }, [])
      assert.deepEqual(await listed(webhook), [])
      assert.equal(await storage().findSlackCode(environmentId, id, waiting.codeHash, NOON), null)

      await link(webhook, ann)
      assert.ok(await storage().removeWebhook(environmentId, id, []))
      assert.deepEqual(await storage().listSlackLinksOf(ann), [elsewhere])
    })
  })
}
