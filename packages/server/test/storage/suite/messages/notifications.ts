import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NotificationChoice } from '@tacho/contract/messages/notification.ts'
import { firstState } from '../../../../src/domain/messages/alert.ts'
import { type BrowserRow, type NoticesTold, subjectOf, subjectText } from '../../../../src/storage/messages/messages.ts'
import { auditEntry } from '../people/access.ts'
import { ask, decision, MINUTE } from '../approvals/approval-sample.ts'
import { issueRecord, onlyIssue, reviewed } from '../issues/issue-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'
import { newEnvironment } from './webhooks.ts'

const KIND = 'notify_people'
const QUIET = { fromMinute: 1_320, toMinute: 420, timeZone: 'Europe/Berlin', exceptCritical: true }
const NOTHING: NoticesTold = { at: NOON, joined: [], told: [], gone: [], later: [] }

export function notificationsSuite(open: OpenStorage) {
  const byId = (...rows: BrowserRow[]) => rows.toSorted((one, other) => (one.id < other.id ? -1 : 1))

  describe('notifications', () => {
    const storage = sharedStorage(open)

    /** Adds a person with a role in the whole installation. */
    async function newPerson(): Promise<string> {
      const [id, email] = [newId(), `${newId()}@example.com`]
      const operator = { id, name: 'Ann', email, emailVerified: 1, createdAt: NOON, password: null }
      assert.equal(await storage().createOperator(operator, 'viewer', []), 'created')
      return id
    }

    async function newSession(operatorId: string): Promise<string> {
      const times = { createdAt: NOON, updatedAt: NOON, expiresAt: NOON * 2 }
      const record = { id: newId(), userId: operatorId, token: newId(), ipAddress: null, userAgent: null, ...times }
      return String((await storage().createSignIn('session', record))['id'])
    }

    function browserOf(operatorId: string, given: Partial<BrowserRow> = {}): BrowserRow {
      const address = { endpoint: 'https://push.example/é', endpointHash: newId(), publicKey: 'p', authSecret: 'a' }
      const times = { addedAt: NOON, openedAt: NOON, notifiedAt: null }
      return { id: newId(), operatorId, sessionId: newId(), userAgent: 'Firefox', ...address, ...times, ...given }
    }

    async function add(operatorId: string, given: Partial<BrowserRow> = {}): Promise<BrowserRow> {
      const row = browserOf(operatorId, given)
      assert.equal(await storage().addBrowser(row, []), 'added')
      return row
    }

    const choose = (operatorId: string, ...choices: Omit<NotificationChoice, 'workspaceId'>[]) =>
      storage().changeNotificationSettings(operatorId, { choices }, [])
    const all = (environmentId: string): Omit<NotificationChoice, 'workspaceId'> => {
      return { environmentId, kinds: ['approvals', 'alerts', 'issues'], severity: 'LOW' }
    }
    const browsers = async (operatorId: string) => (await storage().readNotificationSettings(operatorId)).browsers
    const toldIn = async (environmentId: string, id: string | null = null) =>
      (await storage().listToldBrowsers(environmentId, id, 1_000)).map((browser) => browser.id)

    /** Claims all waiting notifications of an environment, and returns them. */
    async function claim(environmentId: string, now = NOON * 2) {
      const owner = newId()
      const items = await storage().claimWork({ kind: KIND, owner, now, leaseUntil: now + 1, limit: 10_000 })
      const own = items.filter((item) => item.environmentId === environmentId)
      const others = items.filter((item) => item.environmentId !== environmentId)
      await storage().postponeWork({ kind: KIND, owner, items: others }, { dueAt: NOON, error: null, counts: false })
      return {
        hold: { kind: KIND, owner, items: own } as const,
        texts: own.map(({ subjectId }) => subjectId).toSorted(),
      }
    }

    test('settings are stored whole, changed in part, and belong to one person', async () => {
      const [ann, ben] = [await newPerson(), await newPerson()]
      const [one, two] = [await newEnvironment(storage()), await newEnvironment(storage())]
      const choices = [all(one), { environmentId: two, kinds: ['issues'] as const, severity: 'HIGH' as const }]
      const audit = auditEntry()
      const given = { choices: choices.map((each) => ({ ...each, kinds: [...each.kinds] })), quietHours: QUIET }
      assert.equal(await storage().changeNotificationSettings(ann, given, [audit]), true)
      const read = await storage().readNotificationSettings(ann)
      assert.deepEqual(
        read.choices.map(({ workspaceId: _workspace, ...choice }) => choice),
        given.choices.toSorted((a, b) => (a.environmentId < b.environmentId ? -1 : 1)),
      )
      assert.deepEqual(read.quietHours, QUIET)
      await storage().changeNotificationSettings(ann, { quietHours: null }, [])
      const later = await storage().readNotificationSettings(ann)
      assert.deepEqual([later.choices.length, later.quietHours], [2, null])
      await storage().changeNotificationSettings(ann, { choices: [all(two)] }, [])
      assert.equal((await storage().readNotificationSettings(ann)).choices.length, 1)
      const nothing = { browsers: [], choices: [], quietHours: null }
      assert.deepEqual(await storage().readNotificationSettings(ben), nothing)
      assert.equal(await storage().changeNotificationSettings(newId(), given, []), false)
    })

    test('a browser is of one person, is renewed by its person only, and has a limit also when many come at once', async () => {
      const [ann, ben] = [await newPerson(), await newPerson()]
      const row = await add(ann)
      assert.deepEqual(await browsers(ann), [row])
      const renewal = {
        ...row,
        sessionId: newId(),
        publicKey: 'q',
        authSecret: 'b',
        userAgent: 'x',
        openedAt: NOON + 1,
      }
      assert.equal(await storage().renewBrowser(ben, renewal), null)
      assert.deepEqual(await storage().renewBrowser(ann, { ...renewal, id: newId(), addedAt: 1 }), renewal)
      const moved = await add(ben, { endpointHash: row.endpointHash })
      assert.deepEqual([await browsers(ann), await browsers(ben)], [[], [moved]])
      assert.equal(await storage().removeBrowser(ann, moved.id, []), null)
      assert.deepEqual(await storage().removeBrowser(ben, moved.id, []), moved)

      const many = Array.from({ length: 3 * LIMITS.notifiedBrowsers }, () => browserOf(ann))
      const outcomes = await Promise.all(many.map((each) => storage().addBrowser(each, [])))
      assert.equal(outcomes.filter((outcome) => outcome === 'added').length, LIMITS.notifiedBrowsers)
      assert.equal((await browsers(ann)).length, LIMITS.notifiedBrowsers)
      const other = await add(ben)
      assert.equal(await storage().addBrowser({ ...other, id: newId(), operatorId: ann }, []), 'too_many')
      assert.deepEqual(await browsers(ben), [other])
      const [again] = await browsers(ann)
      assert.ok(again)
      assert.equal(await storage().addBrowser({ ...again, id: newId() }, []), 'added')
      assert.equal(await storage().addBrowser(browserOf(newId()), []), 'gone')
    })

    test('browsers leave with their session, the account, or when nobody opened them for long', async () => {
      const ann = await newPerson()
      const [kept, ended] = [await newSession(ann), await newSession(ann)]
      const stays = await add(ann, { sessionId: kept })
      await add(ann, { sessionId: ended })
      const expired = await add(ann, { openedAt: NOON - LIMITS.notifiedBrowserMs + 2 })
      await storage().endSessions(ann, { id: ended }, [])
      assert.deepEqual(await browsers(ann), byId(stays, expired))
      await storage().deleteExpiredSignIns(NOON + 1)
      assert.deepEqual(await browsers(ann), byId(stays, expired))
      await storage().deleteExpiredSignIns(NOON + 2)
      assert.deepEqual(await browsers(ann), [stays])
      await add(ann)
      await storage().endSessions(ann, { exceptId: kept }, [])
      assert.deepEqual(await browsers(ann), [stays])
      const environmentId = await newEnvironment(storage())
      await storage().changeNotificationSettings(ann, { choices: [all(environmentId)], quietHours: QUIET }, [])
      assert.equal(await storage().deleteOperator(ann, NOON, []), 'changed')
      assert.deepEqual(await storage().readNotificationSettings(ann), { browsers: [], choices: [], quietHours: null })
    })

    test('those who chose an environment and have a role there are told of it, with their choices', async () => {
      const [one, two] = [await newEnvironment(storage()), await newEnvironment(storage())]
      const [ann, ben] = [await newPerson(), await newPerson()]
      const [first, second, third] = [await add(ann), await add(ann), await add(ben)]
      await storage().changeNotificationSettings(ann, { choices: [all(one)], quietHours: QUIET }, [])
      await choose(ben, { environmentId: two, kinds: ['alerts'], severity: 'CRITICAL' })
      const ids = [first.id, second.id].toSorted()
      assert.deepEqual(await toldIn(one), ids)
      assert.deepEqual(await toldIn(one, second.id), [second.id])
      assert.deepEqual(await toldIn(one, third.id), [])
      assert.equal((await storage().listToldBrowsers(one, null, 1)).length, 1)
      const { id, endpoint, publicKey, authSecret } = third
      const told = { id, endpoint, publicKey, authSecret, kinds: ['alerts'], severity: 'CRITICAL', quietHours: null }
      assert.deepEqual(await storage().listToldBrowsers(two, null, 10), [told])
      const [ofAnn] = await storage().listToldBrowsers(one, null, 1)
      assert.deepEqual(ofAnn?.quietHours, QUIET)
      assert.equal(await storage().changeOperatorRole(null, ben, null, NOON, []), 'changed')
      assert.deepEqual(await toldIn(two), [])
    })

    test('an event is queued only where somebody chose its environment', async () => {
      const [quiet, loud] = [await newEnvironment(storage()), await newEnvironment(storage())]
      await choose(await newPerson(), all(loud))
      for (const environmentId of [quiet, loud]) {
        const approval = await ask(storage(), environmentId)
        await ask(storage(), environmentId)
        await storage().decideApprovals(environmentId, [approval.id], decision(), [])
        await reviewed(storage(), issueRecord(environmentId))
      }
      assert.deepEqual((await claim(quiet)).texts, [])
      const { texts } = await claim(loud)
      const issue = await onlyIssue(storage(), loud)
      assert.equal(texts.length, 3)
      assert.deepEqual(
        texts.filter((text) => text.startsWith('issue')),
        [`issue.opened/${issue.id}`],
      )
    })

    test('what it is about is read as it is now', async () => {
      const environmentId = await newEnvironment(storage())
      const approval = await ask(storage(), environmentId, { policyId: 'unknown' })
      const find = async (event: Parameters<ReturnType<typeof storage>['findNotices']>[1], id: string, now = NOON) =>
        (await storage().findNotices(environmentId, event, [id, newId()], now))[0]
      const waits = await find('approval.requested', approval.id)
      assert.deepEqual(
        [waits?.isCurrent, waits?.until, waits?.at, waits?.policySeverity, waits?.data['toolName']],
        [true, approval.expiresAt, NOON, null, 'transfer'],
      )
      assert.equal((await find('approval.requested', approval.id, approval.expiresAt))?.isCurrent, false)
      assert.equal(await storage().countWaitingApprovals(environmentId, NOON, 5), 1)
      assert.equal(await storage().countWaitingApprovals(environmentId, approval.expiresAt, 5), 0)
      await storage().decideApprovals(environmentId, [approval.id], decision(), [])
      assert.equal((await find('approval.requested', approval.id))?.isCurrent, false)
      assert.equal((await storage().findNotices(newId(), 'approval.requested', [approval.id], NOON)).length, 0)

      await reviewed(storage(), issueRecord(environmentId))
      const issue = await onlyIssue(storage(), environmentId)
      assert.deepEqual((await find('issue.opened', issue.id))?.data['issueId'], issue.id)

      const rule = {
        name: 'a',
        kind: 'error_rate',
        threshold: 1,
        agentId: null,
        windowMinutes: 5,
        holdMinutes: 0,
      } as const
      const state = firstState(NOON)
      const given = { environmentId, rule: { ...rule, period: 'day' as const }, checkedAt: null, createdAt: NOON }
      for (const [status, isCurrent] of [
        ['OK', false],
        ['PENDING', false],
        ['FIRING', true],
      ] as const) {
        const alert = { ...given, id: newId(), state: { ...state, status } }
        await storage().createAlert(alert, [])
        const notice = await find('alert.firing', alert.id)
        assert.deepEqual([notice?.isCurrent, notice?.alert?.rule], [isCurrent, given.rule])
      }
    })

    test('what was told ends, with what it told too; what is put off waits for one browser', async () => {
      const environmentId = await newEnvironment(storage())
      const ann = await newPerson()
      const [kept, gone] = [await add(ann), await add(ann)]
      await choose(ann, all(environmentId))
      const first = await ask(storage(), environmentId)
      const { hold } = await claim(environmentId)
      const others = [await ask(storage(), environmentId), await ask(storage(), environmentId)]
      const subject = { browserId: null, event: 'approval.requested' } as const
      const joined = await storage().listNotices(environmentId, subject, 10)
      assert.deepEqual(joined, others.map(({ id }) => subjectText({ ...subject, id })).toSorted())
      assert.equal((await storage().listNotices(environmentId, subject, 1)).length, 1)
      assert.deepEqual(await storage().listNotices(environmentId, { ...subject, event: 'issue.opened' }, 10), [])
      const later = { browserId: kept.id, event: subject.event, id: first.id, dueAt: NOON + MINUTE }
      const outcome = { at: NOON + 1, joined, told: [kept.id], gone: [gone.id], later: [later] }
      const lost = { ...hold, owner: newId() }
      assert.equal(await storage().recordNoticesTold(lost, environmentId, outcome), false)
      assert.equal((await browsers(ann)).length, 2)
      assert.equal(await storage().recordNoticesTold(hold, environmentId, outcome), true)
      assert.deepEqual(await browsers(ann), [{ ...kept, notifiedAt: NOON + 1 }])
      assert.deepEqual((await claim(environmentId, NOON + MINUTE - 1)).texts, [])
      const due = await claim(environmentId, NOON + MINUTE)
      assert.deepEqual(due.texts, [`browser/${kept.id}/approval.requested/${first.id}`])
      assert.deepEqual(due.texts.map(subjectOf), [{ browserId: kept.id, event: subject.event, id: first.id }])
      // A node cannot end work that another node has claimed.
      const held = { ...NOTHING, joined: due.texts }
      await ask(storage(), environmentId)
      const next = await storage().claimWork({ kind: KIND, owner: 'o', now: NOON * 3, leaseUntil: NOON * 4, limit: 1 })
      assert.equal(next.length, 1)
      assert.equal(
        await storage().recordNoticesTold({ kind: KIND, owner: 'o', items: next }, environmentId, held),
        true,
      )
    })

    test('a text that names no event of people is no subject', () => {
      for (const text of ['run.failed/x', 'browser/x', 'x', '']) assert.equal(subjectOf(text), null, text)
    })
  })
}
