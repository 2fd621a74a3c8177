/**
 * Facts that events report about the approvals that they name: the event with the input, a caller that has left, a call
 * that ran. Only events of the client and API key that asked count, and only for the run, tool and input of the
 * request. The first report wins: no later event changes what an operator has seen.
 */
import type { ApprovalNote, ApprovalRow } from '../../approvals/approvals.ts'
import type { NewEvent } from '../../record/events.ts'
import type { SqlValue, Sql } from '../engine/sql.ts'
import { claimKey, withdrawnKey } from '../engine/keys.ts'
import { columnOf } from '../../data/exports.ts'
import { inChunks } from '../engine/rows.ts'
import { findApprovals, nextRevision } from './approval-rows.ts'
import { announceApprovals } from '../messages/announcements.ts'
import { approversOnceKnown } from './two-people.ts'

export interface NotedEvent {
  event: NewEvent
  note: ApprovalNote
  keyFamily: string
}

/** Runs in the transaction that stores the events. */
export async function noteApprovals(
  sql: Sql,
  environmentId: string,
  noted: readonly NotedEvent[],
  now: number,
): Promise<void> {
  const ids = [...new Set(noted.map(({ note }) => note.approvalId))]
  const rows = await findApprovals(sql, environmentId, ids)
  const isNews = (row: ApprovalRow) => noted.some((one) => changeOf(row, one, now) !== null)
  const changing = rows.filter(isNews).map(({ id }) => id)
  // Most events contain only known facts: they need no lock.
  if (changing.length === 0) return
  const revision = await nextRevision(sql, environmentId, null)
  // Read again, because others may have changed them before the lock.
  const locked = await findApprovals(sql, environmentId, changing)
  const claims = await findClaims(sql, environmentId, locked)
  const withdrawn: ApprovalRow[] = []
  for (const row of locked) {
    let changed: Change = {}
    for (const one of noted) changed = { ...changed, ...changeOf({ ...row, ...changed }, one, now, claims) }
    if (changed.policyVersions) changed.approvers = await approversOnceKnown(sql, { ...row, ...changed })
    const members = Object.entries(changed)
    if (members.length === 0) continue
    const set = members.map(([member]) => `${columnOf(member)} = :${member}`).join(', ')
    const text = `UPDATE approvals SET ${set}, revision = :revision WHERE environment_id = :env AND id = :id`
    await sql.run(text, { ...(changed as Record<string, SqlValue>), revision, env: environmentId, id: row.id })
    if (row.withdrawnAt === null && changed.withdrawnAt) withdrawn.push({ ...row, ...changed })
  }
  await announceApprovals(sql, environmentId, 'approval.withdrawn', withdrawn, now)
}

type Change = Partial<ApprovalRow> & { requestKey?: string }

/** Null: the note contains nothing new, or its sender may not report it. */
function changeOf(
  row: ApprovalRow,
  { event, note, keyFamily }: NotedEvent,
  now: number,
  claims: ReadonlySet<string> = new Set(),
): Change | null {
  if (note.approvalId !== row.id || keyFamily !== row.keyFamily || event.clientId !== row.clientId) return null
  if (row.importedAt !== null || row.runId !== event.runId) return null
  if (note.toolName !== row.toolName || note.inputHash !== row.inputHash) return null
  if (note.kind === 'policies') return policiesChange(row, note)
  if (note.kind === 'input') return inputChange(row, event, note)
  if (note.kind === 'ran') return ranChange(row, note, now)
  const isOver = row.withdrawnAt !== null || row.status === 'REJECTED' || row.status === 'EXPIRED'
  // A call that began before the decision ran without it: the approval is still unused.
  const isUsed = claims.has(claimKey(row.clientId, row.id)) || (row.ranAt !== null && !ranBeforeDecision(row))
  if (isOver || isUsed) return null
  return { withdrawnAt: now, withdrawnReason: note.reason, requestKey: withdrawnKey(row, row.id) }
}

function inputChange(row: ApprovalRow, { eventId }: NewEvent, { policyVersions }: ApprovalNote): Change | null {
  if (row.recordsInput === 0 || row.inputEventId !== null) return null
  const { policyId, policyVersion } = row
  const isNamed = policyId !== null && policyVersions !== null && Object.hasOwn(policyVersions, policyId)
  const askingVersion = isNamed ? policyVersions[policyId] : undefined
  const change = { inputEventId: eventId, policyVersion: policyVersion ?? askingVersion ?? null }
  return { ...change, ...policiesChange(row, { policyVersions }) }
}

/** Records which policies asked: the request names only one of them. */
function policiesChange(row: ApprovalRow, { policyVersions }: Pick<ApprovalNote, 'policyVersions'>): Change | null {
  if (row.status !== 'PENDING' || row.policyVersions !== null || policyVersions === null) return null
  return { policyVersions: JSON.stringify(policyVersions) }
}

const ranBeforeDecision = ({ ranAt, decidedAt }: ApprovalRow): boolean =>
  ranAt !== null && (decidedAt === null || ranAt < decidedAt)

/** Keys of the claims that are stored. */
async function findClaims(sql: Sql, environmentId: string, rows: readonly ApprovalRow[]): Promise<Set<string>> {
  const approved = rows.filter(({ status, withdrawnAt }) => status === 'APPROVED' && withdrawnAt === null)
  const text = 'SELECT record_key AS "key" FROM issue_records WHERE environment_id = :env AND record_key IN (:keys)'
  const keys = approved.map(({ id, clientId }) => claimKey(clientId, id))
  const claims = await inChunks(keys, (chunk) => sql.all<{ key: string }>(text, { env: environmentId, keys: chunk }))
  return new Set(claims.map(({ key }) => key))
}

function ranChange(row: ApprovalRow, { status }: ApprovalNote, now: number): Change | null {
  const { ranAt, ranStatus, decidedAt } = row
  const isStart = status === 'started' && decidedAt !== null && ranBeforeDecision(row)
  if (ranAt === null || isStart) return { ranAt: now, ranStatus: status }
  return ranStatus === 'started' && status !== 'started' ? { ranStatus: status } : null
}
