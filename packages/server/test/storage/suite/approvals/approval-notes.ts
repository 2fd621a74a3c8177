import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ApprovalNote, NewApprovalRow } from '../../../../src/storage/approvals/approvals.ts'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import type { WebhookRow } from '../../../../src/storage/messages/messages.ts'
import { ask, decision, HASH, MINUTE, request } from './approval-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { issueRecord } from '../issues/issue-sample.ts'
import { event, newEnvironment, newId, NOON } from '../sample.ts'
import { newEnvironment as newWebhookEnvironment, newWebhook } from '../messages/webhooks.ts'

/** Facts about approvals that events report: inputs, withdrawals and results. */
export function approvalNotesSuite(open: OpenStorage) {
  describe('an event about an approval', () => {
    const storage = sharedStorage(open)
    const asked = { runId: 'run', keyFamily: 'key-1', toolCallId: 'call-1', policyId: 'p' }

    function noting(approvalId: string, given: Partial<ApprovalNote> = {}, more: Partial<NewEvent> = {}): NewEvent {
      const none = { policyVersions: null, reason: null, status: null }
      const approval = { approvalId, kind: 'input', toolName: 'transfer', inputHash: HASH, ...none, ...given } as const
      const payload = JSON.stringify({ approvalId, input: { to: 'Ada' } })
      return event({ eventType: 'POLICY_DECISION', payload, approval, ...more })
    }
    const record = (environmentId: string, events: NewEvent[], keyFamily = 'key-1', receivedAt = NOON) =>
      storage().appendEvents({ environmentId, receivedAt, events, rejections: [], keyFamily })
    const find = async (env: string, id: string) => {
      const row = await storage().findApproval(env, id)
      assert.ok(row)
      return row
    }

    test('links the input: of the client, key, run, tool and hash that asked, and the first one', async () => {
      const env = newId()
      const { id } = await ask(storage(), env, asked)
      await record(env, [noting(id)], 'key-2')
      const foreign = [
        noting(id, {}, { clientId: 'another' }),
        noting(id, {}, { runId: 'another' }),
        noting(id, { toolName: 'other' }),
        noting(id, { inputHash: 'cd'.repeat(32) }),
        noting(id, { inputHash: null }),
        noting(newId()),
      ]
      await record(env, foreign)
      assert.equal((await find(env, id)).inputEventId, null)
      const before = await find(env, id)
      const first = noting(id, { policyVersions: { p: '3', q: '4' } })
      await record(env, [first, noting(id)])
      await record(env, [noting(id)])
      const row = await find(env, id)
      assert.deepEqual([row.inputEventId, row.policyVersion], [first.eventId, '3'])
      assert.ok(row.revision > before.revision, 'streams read it again')
      const links = [
        { runId: 'run', eventId: first.eventId },
        { runId: 'run', eventId: newId() },
        { runId: 'none', eventId: first.eventId },
      ]
      const [found, ...none] = await storage().findLinkedInputs(env, links, 10_000)
      assert.deepEqual(
        [found, ...none],
        [{ eventId: first.eventId, receivedAt: NOON, payload: first.payload }, null, null],
      )
      const small = [links[0]!, links[0]!]
      assert.equal((await storage().findLinkedInputs(env, small, 10))[1], 'too_large')
      assert.deepEqual(await storage().findLinkedInputs(newId(), links, 10_000), [null, null, null])
    })

    test('links the input of a request whose policy has the name of what every object has', async () => {
      const env = newId()
      for (const policyId of ['constructor', '__proto__']) {
        const { id } = await ask(storage(), env, { ...asked, policyId })
        const first = noting(id, { policyVersions: { other: '3' } })
        await record(env, [first])
        const row = await find(env, id)
        assert.deepEqual([row.inputEventId, row.policyVersion], [first.eventId, null])
      }
    })

    test('links nothing to a request whose client records no input, nor to one of before', async () => {
      const env = newId()
      for (const given of [{ recordsInput: 0 }, { keyFamily: null }]) {
        const { id } = await ask(storage(), env, { ...asked, ...given })
        await record(env, [noting(id)])
        assert.equal((await find(env, id)).inputEventId, null)
      }
    })

    test('withdraws a request once, if it still could run something', async () => {
      const env = newId()
      const gone = (id: string, keyFamily?: string) =>
        record(env, [noting(id, { kind: 'withdrawn', reason: 'timeout' })], keyFamily, NOON + 5)
      const { id } = await ask(storage(), env, asked)
      await gone(id, 'key-2')
      assert.equal((await find(env, id)).withdrawnAt, null)
      await gone(id)
      await record(env, [noting(id, { kind: 'withdrawn', reason: 'aborted' })])
      const row = await find(env, id)
      assert.deepEqual([row.status, row.withdrawnAt, row.withdrawnReason], ['PENDING', NOON + 5, 'timeout'])
      const of = (withdrawn: 'only' | 'without') =>
        storage().listApprovals(env, { status: 'PENDING', withdrawn }, { limit: 10, after: null })
      assert.deepEqual([(await of('only')).rows.length, (await of('without')).rows.length], [1, 0])
      assert.equal(await storage().countWaitingApprovals(env, NOON, 10), 0)
      assert.deepEqual(await storage().groupApprovals(env, NOON, { requests: 10, groups: 10 }), [])
      const [decided] = await storage().decideApprovals(env, [id], decision(), [])
      assert.deepEqual([decided?.outcome, decided?.approval?.withdrawnReason], ['decided', 'timeout'])
      const ran = await ask(storage(), env, asked)
      await storage().decideApprovals(env, [ran.id], decision({ now: NOON }), [])
      await record(env, [noting(ran.id, { kind: 'ran', status: 'started' })])
      await gone(ran.id)
      assert.equal((await find(env, ran.id)).withdrawnAt, null, 'it ran')
    })

    test('a withdrawal is announced to all who were asked, and to programs that subscribe to it', async () => {
      const env = await newWebhookEnvironment(storage())
      const events = ['approval.requested'] as const
      const given = [
        { format: 'slack' },
        { format: 'teams' },
        { format: 'mail', url: 'mailto:ada@example.com' },
        { format: 'pagerduty' },
        { format: 'standard' },
        { format: 'standard', events: ['approval.withdrawn', 'approval.expired'] },
        { format: 'slack', events: ['run.failed'] },
      ] as const
      const webhooks = []
      for (const one of given) {
        webhooks.push(await newWebhook(storage(), env, { events: [...events], ...one } as Partial<WebhookRow>))
      }
      const { id } = await ask(storage(), env, asked)
      for (const reason of ['timeout', 'aborted'] as const) {
        await record(env, [noting(id, { kind: 'withdrawn', reason })])
      }
      // A withdrawn request expires later without a message.
      assert.equal(await storage().expireApprovals(env, NOON + 24 * 60 * MINUTE, 10), 1)
      const typesOf = async ({ id: webhookId }: WebhookRow) => {
        const { rows } = await storage().listDeliveries(env, webhookId, {}, { limit: 10, after: null })
        return rows.map(({ type }) => type.replace('approval.', '')).toReversed()
      }
      const both = ['requested', 'withdrawn']
      const told = await Promise.all(webhooks.map(typesOf))
      assert.deepEqual(told, [both, both, both, both, ['requested'], ['withdrawn'], []])
      // Remove the webhooks, because other tests claim all work of the store.
      for (const { id: webhookId } of webhooks) await storage().removeWebhook(env, webhookId, [])
    })

    test('a claimed approval is not withdrawn, and a withdrawn one is not claimed', async () => {
      const env = newId()
      const gone = (id: string) => record(env, [noting(id, { kind: 'withdrawn', reason: 'timeout' })])
      const claim = ({ id, clientId }: { id: string; clientId: string }) => {
        const named = { sdkInstanceId: clientId, clientRecordId: `run-${id}`, receivedAt: NOON }
        return storage().claimApproval(id, issueRecord(env, named))
      }
      const [one, two] = [await ask(storage(), env, asked), await ask(storage(), env, asked)]
      assert.deepEqual(await claim(one), { unclaimed: await find(env, one.id) }, 'nobody has approved it')
      await storage().decideApprovals(env, [one.id, two.id], decision(), [])
      const claimed = await claim(one)
      assert.ok(claimed && 'isNew' in claimed && claimed.isNew)
      await gone(one.id)
      await gone(two.id)
      assert.equal((await find(env, one.id)).withdrawnAt, null)
      assert.deepEqual(await claim(two), { unclaimed: await find(env, two.id) })
      assert.ok((await find(env, two.id)).withdrawnAt)
      assert.deepEqual(await claim({ ...two, id: newId() }), { unclaimed: null })
    })

    test('a call that began before the decision keeps nobody from withdrawing its request', async () => {
      const env = newId()
      const start = (id: string, at: number) =>
        record(env, [noting(id, { kind: 'ran', status: 'started' })], 'key-1', at)
      const gone = (id: string) => record(env, [noting(id, { kind: 'withdrawn', reason: 'timeout' })])
      const [pending, early, late] = await Promise.all([1, 2, 3].map(() => ask(storage(), env, asked)))
      assert.ok(pending && early && late)
      for (const { id } of [pending, early, late]) await start(id, NOON - 5)
      await gone(pending.id)
      assert.ok((await find(env, pending.id)).withdrawnAt)
      await storage().decideApprovals(env, [early.id, late.id], decision(), [])
      await gone(early.id)
      assert.ok((await find(env, early.id)).withdrawnAt)
      const { decidedAt } = await find(env, late.id)
      await start(late.id, Number(decidedAt) + 1)
      await gone(late.id)
      const { ranAt, withdrawnAt } = await find(env, late.id)
      assert.deepEqual([ranAt, withdrawnAt], [Number(decidedAt) + 1, null])
    })

    test('a request whose input was recorded after the look is not decided', async () => {
      const env = newId()
      const [one, two] = [await ask(storage(), env, asked), await ask(storage(), env, asked)]
      await record(env, [noting(one.id)])
      const inputs = { [one.id]: null, [two.id]: null }
      const decide = () => storage().decideApprovals(env, [one.id, two.id], { ...decision(), inputs }, [])
      assert.deepEqual(
        (await decide()).map(({ outcome }) => outcome),
        ['changed', 'decided'],
      )
      assert.equal((await find(env, one.id)).status, 'PENDING')
      const { inputEventId } = await find(env, one.id)
      inputs[one.id] = inputEventId as null
      assert.deepEqual(
        (await decide()).map(({ outcome }) => outcome),
        ['decided', 'refused'],
      )
    })

    test('the same request id asks anew once it is withdrawn, and asks for each key apart', async () => {
      const env = newId()
      const again = (given: Partial<NewApprovalRow> = {}) =>
        storage().createApproval(request(env, { ...asked, clientRequestId: 'one', ...given }))
      const first = (await again()).approval
      assert.ok(first)
      assert.deepEqual(
        [(await again()).outcome, (await again({ keyFamily: 'key-2' })).outcome],
        ['existing', 'created'],
      )
      assert.equal((await again({ keyFamily: 'key-3', inputHash: 'cd'.repeat(32) })).outcome, 'created')
      await record(env, [noting(first.id, { kind: 'withdrawn', reason: 'cancelled' })])
      const second = await again()
      assert.deepEqual([second.outcome, second.approval?.id === first.id], ['created', false])
      assert.deepEqual((await again()).approval?.id, second.approval?.id)
      const earlier = await ask(storage(), env, { ...asked, clientRequestId: 'two', keyFamily: null })
      assert.equal(
        (await again({ clientRequestId: 'two' })).approval?.id,
        earlier.id,
        'a request of before the upgrade',
      )
    })

    test('says that the call ran, so that the next request for this very call can tell', async () => {
      const env = newId()
      const { id } = await ask(storage(), env, asked)
      await record(env, [noting(id, { kind: 'ran', status: 'started' })], 'key-1', NOON + 1)
      await record(env, [noting(id, { kind: 'ran', status: 'failed' })], 'key-1', NOON + 2)
      await record(env, [noting(id, { kind: 'ran', status: 'returned' })], 'key-1', NOON + 3)
      const next = await ask(storage(), env, { ...asked, createdAt: NOON + MINUTE })
      const others = await Promise.all([
        ask(storage(), env, { ...asked, toolCallId: 'call-2' }),
        ask(storage(), env, { ...asked, toolCallId: null }),
        ask(storage(), env, { ...asked, runId: 'another' }),
        ask(storage(), env, { ...asked, toolName: 'other' }),
        ask(storage(), env, { ...asked, inputHash: 'cd'.repeat(32) }),
      ])
      const found = await storage().findRanBefore(env, [next, ...others, await find(env, id)])
      assert.deepEqual(found[0], { approvalId: id, at: NOON + 1, status: 'failed' })
      assert.deepEqual(found.slice(1), [null, null, null, null, null, null])
      assert.deepEqual(await storage().findRanBefore(newId(), [next]), [null])
    })

    test('is noted with the events, or not at all, and never from an import', async () => {
      const env = newId()
      const { id } = await ask(storage(), env, asked)
      const given = { environmentId: env, receivedAt: NOON, events: [noting(id)], rejections: [] }
      await storage().appendEvents(given)
      assert.equal((await find(env, id)).inputEventId, null, 'no key recorded it')
      assert.deepEqual(await record(env, given.events), ['duplicate'])
      assert.equal((await find(env, id)).inputEventId, null, 'a retry of another recorder')
    })

    test('who waits is noted once for many, and never goes back', async () => {
      const env = newId()
      const [one, two] = [await ask(storage(), env, asked), await ask(storage(), env, asked)]
      await storage().noteApprovalsSeen(env, [
        { id: one.id, at: NOON + 9 },
        { id: two.id, at: NOON + 9 },
      ])
      await storage().noteApprovalsSeen(env, [{ id: one.id, at: NOON + 2 }])
      await storage().noteApprovalsSeen(newId(), [{ id: one.id, at: NOON + 20 }])
      const row = await find(env, one.id)
      assert.deepEqual([row.lastSeenAt, row.revision], [NOON + 9, one.revision])
    })

    test('what a policy asked is counted with its answers, contradictions and conditions that could not be evaluated', async () => {
      const env = await newEnvironment(storage())
      const decided = async (verdict: 'APPROVED' | 'REJECTED', given: Partial<NewApprovalRow>) => {
        const { id } = await ask(storage(), env, { ...asked, policyId: 'p', ...given })
        await storage().decideApprovals(env, [id], decision({ status: verdict }), [])
      }
      const [same, other] = ['ab'.repeat(32), 'cd'.repeat(32)]
      await decided('APPROVED', { inputHash: same })
      await decided('REJECTED', { inputHash: same })
      await decided('APPROVED', { inputHash: other })
      await decided('APPROVED', { inputHash: other, reason: 'policy "P" (its condition could not be evaluated: why)' })
      const bounds = { since: NOON, most: 100, policies: 10 }
      const { items } = await storage().countAsked(env, 'p', bounds)
      const [{ requests, approved, rejected, contradictions, unevaluated } = assert.fail()] = items
      assert.deepEqual([requests, approved, rejected, contradictions, unevaluated], [4, 3, 1, 1, 1])
    })

    test('requests that expired are counted by policy, within the newest ones', async () => {
      const env = await newEnvironment(storage())
      const made = (given: Partial<NewApprovalRow>) => ask(storage(), env, { ...asked, expiresAt: NOON + 1, ...given })
      const withdrawn = await made({ policyId: 'p' })
      await made({ policyId: 'p' })
      await made({ policyId: 'q' })
      await made({ policyId: null })
      await made({ policyId: 'p', createdAt: NOON - 10 })
      await made({ policyId: 'p', expiresAt: NOON + MINUTE })
      await record(env, [noting(withdrawn.id, { kind: 'withdrawn', reason: 'timeout' })])
      await storage().expireApprovals(env, NOON + 1, 100)
      const bounds = { since: NOON, most: 100, policies: 10 }
      const { rows, capped } = await storage().countUnanswered(env, null, bounds)
      const told = rows.map(({ policyId, expired, withdrawn: some }) => [policyId, Number(expired), Number(some)])
      assert.deepEqual([told.length, capped, told[0]], [3, false, ['p', 2, 1]])
      const { rows: ofQ } = await storage().countUnanswered(env, 'q', bounds)
      assert.deepEqual(ofQ, [{ policyId: 'q', expired: 1, withdrawn: 0, lastExpiredAt: NOON + 1 }])
      assert.equal((await storage().countUnanswered(env, null, { ...bounds, most: 2 })).capped, true)
      assert.deepEqual((await storage().countUnanswered(newId(), null, bounds)).rows, [])
    })
  })
}
