import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import {
  ASKED_LATELY,
  isOverdue,
  toAskedLately,
  toNewApproval,
  unstorableText,
} from '../../../src/domain/approvals/approval.ts'
import type { ApprovalRow } from '../../../src/storage/approvals/approvals.ts'

const asked = { id: 'id', environmentId: 'env', clientId: 'client', now: 1_000 }
const required = { clientRequestId: 'one', toolName: 'pay', inputHash: 'AB'.repeat(16) }

test('absent and null optional fields mean the same, and the default timeout is 5 minutes', () => {
  const row = toNewApproval(required, asked)
  const nulls = { runId: null, sessionId: null, agentId: null, policyId: null, reason: null, timeoutMs: null }
  assert.deepEqual(toNewApproval({ ...required, ...nulls }, asked), row)
  assert.equal(row.timeoutMs, LIMITS.approvalTimeoutMsDefault)
  assert.equal(row.expiresAt, 1_000 + 300_000)
})

test('the hash is stored in lower case, texts unchanged', () => {
  const row = toNewApproval({ ...required, toolName: ' Pay ', reason: ' why\n' }, asked)
  assert.deepEqual([row.inputHash, row.toolName, row.reason], ['ab'.repeat(16), ' Pay ', ' why\n'])
})

test('the first text that cannot be stored is named', () => {
  assert.equal(unstorableText(required), null)
  assert.equal(unstorableText({ ...required, runId: null, reason: 'a\0b' }), 'reason')
  assert.equal(unstorableText({ ...required, policyId: '\ud800', reason: 'a\0b' }), 'policyId')
})

test('only a pending approval can be overdue, from the millisecond of its deadline', () => {
  const row = { status: 'PENDING', expiresAt: 5_000 } as ApprovalRow
  assert.deepEqual(
    [4_999, 5_000].map((now) => isOverdue(row, now)),
    [false, true],
  )
  for (const status of ['APPROVED', 'REJECTED', 'EXPIRED'] as const) {
    assert.equal(isOverdue({ ...row, status }, 9_000), false)
  }
})

test('many requests are a burst, and counting stops at a bound', () => {
  const { burst, most } = ASKED_LATELY
  assert.deepEqual(
    [burst - 1, burst].map((count) => toAskedLately(count).burst),
    [false, true],
  )
  assert.deepEqual(
    [most - 1, most].map((count) => toAskedLately(count).capped),
    [false, true],
  )
})
