import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import type { ApprovalRow } from '../../../../src/storage/approvals/approvals.ts'
import type { AuditEntry } from '../../../../src/storage/people/operators.ts'
import { ask, BEGINNING, decision, MINUTE, pending, request } from './approval-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

export function approvalsSuite(open: OpenStorage) {
  describe('an approval', () => {
    const storage = sharedStorage(open)

    test('is stored whole and found within its environment only', async () => {
      const env = newId()
      const texts = {
        runId: 'run',
        sessionId: '',
        agentId: 'ä',
        policyId: 'p'.repeat(5_000),
        reason: 'x'.repeat(60_000),
      }
      const asked = request(env, { ...texts, toolName: '転送'.repeat(3_000), clientId: 'c'.repeat(4_000) })
      const { outcome, approval } = await storage().createApproval(asked)
      assert.equal(outcome, 'created')
      assert.deepEqual(approval, { ...asked, ...pending, revision: approval.revision })
      assert.deepEqual(await storage().findApproval(env, asked.id), approval)
      assert.equal(await storage().findApproval(newId(), asked.id), null)
      assert.equal(await storage().findApproval(env, newId()), null)
    })

    test('is created once for a client and clientRequestId, whatever the other fields say', async () => {
      const env = newId()
      const first = await ask(storage(), env, { clientRequestId: 'one', reason: 'first' })
      const retry = request(env, { clientRequestId: 'one', reason: 'second', timeoutMs: MINUTE, createdAt: NOON + 1 })
      assert.deepEqual(await storage().createApproval(retry), { outcome: 'existing', approval: first })
      for (const given of [{ clientId: 'other' }, { clientRequestId: 'two' }]) {
        const { outcome } = await storage().createApproval(request(env, { clientRequestId: 'one', ...given }))
        assert.equal(outcome, 'created')
      }
      const elsewhere = await storage().createApproval(request(newId(), { clientRequestId: 'one' }))
      assert.equal(elsewhere.outcome, 'created')
    })

    test('is distinct when client id and request id only concatenate to the same text', async () => {
      const env = newId()
      await ask(storage(), env, { clientId: 'ab', clientRequestId: 'c' })
      await ask(storage(), env, { clientId: 'a', clientRequestId: 'bc' })
    })

    test('conflicts with the same request id for another tool or input, and does not change', async () => {
      const env = newId()
      const first = await ask(storage(), env, { clientRequestId: 'one' })
      for (const given of [{ toolName: 'other' }, { inputHash: 'cd'.repeat(16) }]) {
        const outcome = await storage().createApproval(request(env, { clientRequestId: 'one', ...given }))
        assert.deepEqual(outcome, { outcome: 'conflict', approval: first })
      }
      assert.deepEqual(await storage().findApproval(env, first.id), first)
    })

    test('is decided once, with who, when and why; the second decision gets the current state', async () => {
      const env = newId()
      const { id } = await ask(storage(), env)
      const told = decision({ status: 'REJECTED', reason: 'too much', deciderKind: 'token', deciderId: 't' })
      const [first] = await storage().decideApprovals(env, [id], told, [])
      assert.equal(first?.outcome, 'decided')
      assert.equal(first?.approval?.status, 'REJECTED')
      assert.equal(first?.approval?.decidedAt, NOON + MINUTE)
      assert.equal(first?.approval?.decisionReason, 'too much')
      assert.equal(first?.approval?.deciderKind, 'token')
      assert.equal(first?.approval?.deciderName, 'Ada')
      const [second] = await storage().decideApprovals(env, [id], decision({ now: NOON + 2 * MINUTE }), [])
      assert.deepEqual(second, { id, outcome: 'refused', approval: first?.approval })
      assert.deepEqual(await storage().findApproval(env, id), first?.approval)
    })

    test('can be decided until the millisecond before it expires; from then on it is EXPIRED for good', async () => {
      const env = newId()
      const [early, late] = [await ask(storage(), env), await ask(storage(), env)]
      const last = early.expiresAt - 1
      const [inTime] = await storage().decideApprovals(env, [early.id], decision({ now: last }), [])
      assert.equal(inTime?.outcome, 'decided')
      const [tooLate] = await storage().decideApprovals(env, [late.id], decision({ now: late.expiresAt }), [])
      assert.equal(tooLate?.outcome, 'refused')
      assert.deepEqual(tooLate?.approval, {
        ...late,
        ...pending,
        status: 'EXPIRED',
        revision: tooLate?.approval?.revision,
      })
      // If the clock is set back, the state that was already returned stays.
      const [after] = await storage().decideApprovals(env, [late.id], decision({ now: NOON }), [])
      assert.deepEqual(after, tooLate)
      assert.deepEqual(await storage().findApproval(env, late.id), tooLate?.approval)
    })

    test('is EXPIRED in the answer to a retry after the deadline, and a decided one stays decided', async () => {
      const env = newId()
      const [one, two] = [await ask(storage(), env), await ask(storage(), env)]
      await storage().decideApprovals(env, [two.id], decision(), [])
      const retry = async ({ clientRequestId }: ApprovalRow) => {
        const asked = request(env, { clientRequestId, createdAt: one.expiresAt })
        return (await storage().createApproval(asked)).approval?.status
      }
      assert.equal(await retry(one), 'EXPIRED')
      assert.equal(await retry(two), 'APPROVED')
    })

    test('a decision writes its actor to the audit log in the same transaction; a refused one writes nothing', async () => {
      const env = newId()
      const workspaceId = newId()
      const [one, two] = [await ask(storage(), env), await ask(storage(), env)]
      await storage().decideApprovals(env, [two.id], decision(), [])
      const entry = (targetId: string): AuditEntry => ({
        id: randomUUIDv7(),
        workspaceId,
        environmentId: env,
        at: NOON,
        actorKind: 'operator',
        actorId: 'op-1',
        actorName: 'Ada',
        action: 'approval.approve',
        targetKind: 'approval',
        targetId,
        detail: '{}',
        requestId: 'r',
        address: null,
      })
      const entries = [entry(one.id), entry(two.id), entry(newId())]
      await storage().decideApprovals(env, [one.id, two.id, newId()], decision(), entries)
      assert.deepEqual((await storage().listAudit(workspaceId, { limit: 10, after: null })).rows, entries.slice(0, 1))
    })

    test('several are decided together, each with its own outcome, in the given order', async () => {
      const env = newId()
      const [one, two, three] = [await ask(storage(), env), await ask(storage(), env), await ask(storage(), env)]
      await storage().decideApprovals(env, [two.id], decision({ status: 'REJECTED' }), [])
      const unknown = newId()
      const foreign = await ask(storage(), newId())
      const ids = [three.id, unknown, two.id, foreign.id, one.id]
      const decided = await storage().decideApprovals(env, ids, decision(), [])
      assert.deepEqual(
        decided.map(({ id, outcome, approval }) => [id, outcome, approval?.status ?? null]),
        [
          [three.id, 'decided', 'APPROVED'],
          [unknown, 'not_found', null],
          [two.id, 'refused', 'REJECTED'],
          [foreign.id, 'not_found', null],
          [one.id, 'decided', 'APPROVED'],
        ],
      )
      assert.equal((await storage().findApproval(foreign.environmentId, foreign.id))?.status, 'PENDING')
      assert.deepEqual(await storage().decideApprovals(env, [], decision(), []), [])
    })
  })

  describe('expiry of approvals', () => {
    const storage = sharedStorage(open)

    test('takes overdue approvals, oldest deadline first, up to the limit', async () => {
      const env = newId()
      const rows: ApprovalRow[] = []
      for (const minutes of [3, 1, 2, 4]) rows.push(await ask(storage(), env, { expiresAt: NOON + minutes * MINUTE }))
      const [three, one, two, four] = rows
      assert.ok(one && two && three && four)
      const states = async () => {
        const found = await Promise.all([one, two, three, four].map(({ id }) => storage().findApproval(env, id)))
        return found.map((row) => row?.status)
      }
      assert.equal(await storage().expireApprovals(env, NOON + MINUTE - 1, 10), 0)
      assert.equal(await storage().expireApprovals(env, NOON + 3 * MINUTE, 2), 2)
      assert.deepEqual(await states(), ['EXPIRED', 'EXPIRED', 'PENDING', 'PENDING'])
      assert.equal(await storage().expireApprovals(env, NOON + 3 * MINUTE, 2), 1)
      assert.deepEqual(await states(), ['EXPIRED', 'EXPIRED', 'EXPIRED', 'PENDING'])
    })

    test('leaves decided approvals and other environments alone', async () => {
      const [env, other] = [newId(), newId()]
      const [mine, theirs] = [await ask(storage(), env), await ask(storage(), other)]
      await storage().decideApprovals(env, [mine.id], decision(), [])
      assert.equal(await storage().expireApprovals(env, NOON * 2, 10), 0)
      assert.equal((await storage().findApproval(env, mine.id))?.status, 'APPROVED')
      assert.equal((await storage().findApproval(other, theirs.id))?.status, 'PENDING')
    })

    test('environments with overdue approvals are listed until those are expired', async () => {
      const [early, late] = [newId(), newId()]
      // A time before the pending approvals of other tests in this store.
      const then = NOON - 1_000 * MINUTE
      await ask(storage(), late, { createdAt: then, expiresAt: then + 2 })
      await ask(storage(), early, { createdAt: then, expiresAt: then + 3 })
      await ask(storage(), early, { createdAt: then, expiresAt: then + 1 })
      const overdue = (now: number, limit = 10) => storage().listOverdueEnvironments(now, limit)
      assert.deepEqual(await overdue(then), [])
      assert.deepEqual(await overdue(then + 1), [early])
      assert.deepEqual(await overdue(then + 2), [early, late])
      assert.deepEqual(await overdue(then + 2, 1), [early])
      await storage().expireApprovals(early, then + 1, 10)
      assert.deepEqual(await overdue(then + 2), [late])
      assert.deepEqual(await overdue(then + 3), [late, early])
      for (const env of [early, late]) await storage().expireApprovals(env, then + 3, 10)
      assert.deepEqual(await overdue(then + 3), [])
    })

    test('an environment whose overdue approvals were decided is listed once and then no longer', async () => {
      const env = newId()
      const then = NOON - 2_000 * MINUTE
      const { id } = await ask(storage(), env, { createdAt: then, expiresAt: then + 2 })
      await storage().decideApprovals(env, [id], decision({ now: then + 1 }), [])
      await storage().expireApprovals(env, then + 2, 10)
      assert.deepEqual(await storage().listOverdueEnvironments(then + 2, 10), [])
    })
  })

  describe('approvals in a race', () => {
    const storage = sharedStorage(open)

    test('a request sent twenty times at once is stored once', async () => {
      const env = newId()
      const asked = Array.from({ length: 20 }, () => request(env, { clientRequestId: 'one' }))
      const created = await Promise.all(asked.map((each) => storage().createApproval(each)))
      assert.equal(created.filter(({ outcome }) => outcome === 'created').length, 1)
      assert.equal(new Set(created.map(({ approval }) => approval?.id)).size, 1)
    })

    test('approve, reject and expire at once: one of them wins, and all get the same state', async () => {
      const env = newId()
      const approvals = await Promise.all(Array.from({ length: 20 }, () => ask(storage(), env)))
      const ids = approvals.map(({ id }) => id)
      const at = { inTime: NOON + 5 * MINUTE - 1, late: NOON + 5 * MINUTE }
      const decided = Promise.all(
        ids.flatMap((id) =>
          [
            decision({ now: at.inTime }),
            decision({ now: at.inTime, status: 'REJECTED' }),
            decision({ now: at.late }),
          ].map((each) => storage().decideApprovals(env, [id], each, [])),
        ),
      )
      const expiring = [10, 3, 5].map((limit) => storage().expireApprovals(env, at.late, limit))
      const outcomes = (await decided).flat()
      await Promise.all(expiring)
      for (const id of ids) {
        const stored = await storage().findApproval(env, id)
        const told = outcomes.filter((outcome) => outcome.id === id)
        assert.ok(told.filter(({ outcome }) => outcome === 'decided').length <= 1)
        for (const { approval } of told) assert.deepEqual(approval, stored)
        assert.notEqual(stored?.status, 'PENDING')
      }
    })

    test('a reader that follows the changes misses none, however many write at once', async () => {
      const env = newId()
      const seen = new Map<string, ApprovalRow>()
      let writing = true
      const follow = async () => {
        let place = BEGINNING
        for (;;) {
          const last = !writing
          const rows = (await storage().listChangedApprovals(env, place, 7)).rows
          for (const row of rows) seen.set(row.id, row)
          place = rows.at(-1) ?? place
          if (last && rows.length === 0) return
        }
      }
      const following = follow()
      const asked = await Promise.all(
        Array.from({ length: 60 }, async (_, n) => {
          const approval = await ask(storage(), env)
          if (n % 3 === 0) await storage().decideApprovals(env, [approval.id], decision(), [])
          return approval
        }),
      )
      await storage().expireApprovals(env, NOON + 5 * MINUTE, 30)
      writing = false
      await following
      for (const { id } of asked) assert.deepEqual(seen.get(id), await storage().findApproval(env, id))
    })
  })
}
