/** Complete approval rows for tests. A test gives only the fields that matter to it. */
import { randomUUIDv7 } from 'node:crypto'
import { toNewApproval } from '../../../../src/domain/approvals/approval.ts'
import { UNDECIDED, type DecisionRow, type NewApprovalRow } from '../../../../src/storage/approvals/approvals.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { newId, NOON } from '../sample.ts'

export const MINUTE = 60_000
export const HASH = 'ab'.repeat(32)

/** A revision before every change of an environment. */
export const BEGINNING = { revision: 0, id: '00000000-0000-0000-0000-000000000000' }

export function request(environmentId: string, given: Partial<NewApprovalRow> = {}): NewApprovalRow {
  const asked = { clientRequestId: newId(), toolName: 'transfer', inputHash: HASH, timeoutMs: 5 * MINUTE }
  const by = { id: randomUUIDv7(), environmentId, clientId: 'client', now: given.createdAt ?? NOON }
  return { ...toNewApproval(asked, by), ...given }
}

export function decision(given: Partial<DecisionRow> = {}): DecisionRow {
  return {
    status: 'APPROVED',
    reason: null,
    deciderKind: 'operator',
    deciderId: 'op-1',
    deciderName: 'Ada',
    via: null,
    now: NOON + MINUTE,
    ...given,
  }
}

export async function ask(storage: Storage, environmentId: string, given: Partial<NewApprovalRow> = {}) {
  const { outcome, approval } = await storage.createApproval(request(environmentId, given))
  if (outcome !== 'created') throw new Error(`the request was not stored: ${outcome}`)
  return approval
}

export const pending = UNDECIDED
