/**
 *   (none) --createApproval--> PENDING --decideApprovals, before expires_at--> APPROVED | REJECTED
 *                                 |        (APPROVED by the second of two people: two-people.ts)
 *                                 +--expire, at or after expires_at--> EXPIRED
 *
 * Besides its status: events of the client that asked withdraw a request, link its input, and report that its call ran
 * (approval-notes.ts). A withdrawn request can still be decided, but the public API never returns it as APPROVED.
 *
 * An import adds approvals in any state. They are evidence: clients never get them, and nobody decides them.
 *
 * APPROVED, REJECTED and EXPIRED are final: each is reached by a compare-and-set on PENDING and stored before it is
 * returned. A clock jump never reverses an answer.
 */
import { write, type Sql } from '../engine/sql.ts'
import {
  UNDECIDED,
  type ApprovalRow,
  type AskedBeside,
  type CreatedApproval,
  type Decided,
  type DecisionRow,
  type FirstApproval,
  type NewApprovalRow,
  type SeenApproval,
  type GrantFault,
} from '../../approvals/approvals.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { announceApprovals } from '../messages/announcements.ts'
import { insertAudit } from '../people/audit.ts'
import { chunksOf, inChunks, insertRows, rowFor } from '../engine/rows.ts'
import { erasedKey, FOR_EVER, isErased } from '../data/erased-keys.ts'
import { agentKeyOf, COLUMNS, findApproval, findApprovals, nextRevision } from './approval-rows.ts'
import { requestKey, textKey } from '../engine/keys.ts'
import { createGrant, findGrantsFor } from './grants.ts'
import { approversNeeded, personOf, ruleOfTwo, type SecondRule } from './two-people.ts'

export const approvalsActs = write({ createApproval, decideApprovals, expireApprovals, noteApprovalsSeen })

/**
 * `conflict`: the stored request is for another tool or input. `erased`: the request, or its run, was erased forever.
 */
async function createApproval(
  sql: Sql,
  request: NewApprovalRow,
  { policyVersions = null, otherTools }: Partial<AskedBeside> = {},
): Promise<CreatedApproval> {
  // A retry needs no lock.
  const early = await findRequest(sql, request)
  if (early !== null) return again(sql, early, request)
  for (const key of requestKeys(request)) {
    // A request has no event time, so it is refused only if its run, or the request itself, was erased forever.
    const named = { ...request, time: FOR_EVER }
    if (await isErased(sql, request.environmentId, erasedKey('approval', key), named)) {
      return { outcome: 'erased', approval: null }
    }
  }
  const { environmentId, createdAt } = request
  const isHeld = (await findGrantsFor(sql, request, createdAt)).length > 0
  const heldUntil = isHeld ? Math.min(createdAt + LIMITS.grantHoldMs, request.expiresAt) : null
  const revision = await nextRevision(sql, environmentId, heldUntil ?? request.expiresAt)
  const stored = await findRequest(sql, request)
  if (stored !== null) return again(sql, stored, request)
  const named = policyVersions && JSON.stringify(policyVersions)
  const asked = { ...request, ...UNDECIDED, policyVersions: named, revision, heldUntil }
  const approval = { ...asked, approvers: await approversNeeded(sql, environmentId, asked, otherTools) }
  await insert(sql, approval)
  // People are notified only if no grant approves it.
  if (!isHeld) await announceApprovals(sql, environmentId, 'approval.requested', [approval], createdAt)
  return { outcome: 'created', approval }
}

async function again(sql: Sql, stored: ApprovalRow, request: NewApprovalRow): Promise<CreatedApproval> {
  const { environmentId, createdAt: now, toolName, inputHash } = request
  if (stored.importedAt !== null) return { outcome: 'imported', approval: stored }
  const isSame = stored.toolName === toolName && stored.inputHash === inputHash
  const isOverdue = stored.status === 'PENDING' && stored.expiresAt <= now
  const [expired] = isOverdue
    ? await expire(sql, { environmentId, now, revision: await nextRevision(sql, environmentId, null) }, [stored.id])
    : []
  const approval = expired ?? (isOverdue ? await findApproval(sql, environmentId, stored.id) : null) ?? stored
  return { outcome: isSame ? 'existing' : 'conflict', approval }
}

/** Stores only the audit entries whose targets are decided approvals (`ids`). */
export async function decideApprovals(
  sql: Sql,
  environmentId: string,
  ids: string[],
  decision: DecisionRow,
  audit: AuditEntry[],
): Promise<Decided[]> {
  const { now } = decision
  const change = { environmentId, now, revision: await nextRevision(sql, environmentId, null) }
  // Events take the same lock to link an input.
  const changed = await withOtherInputs(sql, environmentId, ids, decision)
  const agreeing = ids.filter((id) => !changed.has(id))
  const rules = await rulesOfTwo(sql, environmentId, agreeing, decision)
  const fault = await grantAlso(sql, environmentId, agreeing, decision)
  if (fault !== null) return faultyGrants(sql, environmentId, ids, fault)
  const decided = byId(
    await decide(
      sql,
      change,
      agreeing.filter((id) => !rules.has(id)),
      decision,
    ),
  )
  const firsts = byId(await approveFirst(sql, change, rules, decision))
  const others = ids.filter((id) => !decided.has(id) && !firsts.has(id))
  const expired = byId(await expire(sql, change, others))
  const otherIds = others.filter((id) => !expired.has(id))
  const unchanged = byId(await findApprovals(sql, environmentId, otherIds))
  await announceApprovals(sql, environmentId, 'approval.decided', [...decided.values()], now, decision.via?.webhookId)
  // Notify people as for a new request, because it now waits for a second person.
  await announceApprovals(sql, environmentId, 'approval.requested', [...firsts.values()], now)
  const entries = audit.flatMap((entry) => {
    if (decided.has(entry.targetId)) return [entry]
    return firsts.has(entry.targetId) ? [{ ...entry, action: 'approval.approve.first' }] : []
  })
  await insertAudit(sql, entries)
  return ids.map((id, index) => {
    const approval = decided.get(id) ?? firsts.get(id) ?? expired.get(id) ?? unchanged.get(id) ?? null
    if (approval === null) return { id, outcome: 'not_found', approval }
    if (approval.status === 'PENDING' && changed.has(id)) return { id, outcome: 'changed', approval }
    const rule = rules.get(id)
    if (approval.status === 'PENDING' && rule !== undefined) return { id, outcome: rule, approval }
    // Decide a repeated id once.
    return { id, outcome: decided.has(id) && ids.indexOf(id) === index ? 'decided' : 'refused', approval }
  })
}

async function withOtherInputs(sql: Sql, environmentId: string, ids: string[], { inputs = {} }: DecisionRow) {
  const compared = ids.filter((id) => Object.hasOwn(inputs, id))
  const rows = await findApprovals(sql, environmentId, compared)
  return new Set(rows.filter(({ id, inputEventId }) => inputEventId !== inputs[id]).map(({ id }) => id))
}

/** Null: no standing approval was asked for, or it was created. */
async function grantAlso(sql: Sql, environmentId: string, [id, ...more]: string[], decision: DecisionRow) {
  const { grant, status, now } = decision
  if (!grant || status !== 'APPROVED' || id === undefined || more.length > 0) return null
  const row = await findApproval(sql, environmentId, id)
  // If a request was decided or expired meanwhile, the result of the decision shows it.
  if (row?.status !== 'PENDING' || row.expiresAt <= now) return null
  return createGrant(sql, row, decision, grant)
}

async function faultyGrants(sql: Sql, environmentId: string, ids: string[], fault: GrantFault): Promise<Decided[]> {
  const rows = await findApprovals(sql, environmentId, ids)
  return rows.map((approval) => ({ id: approval.id, outcome: 'no_grant', fault, approval }))
}

/** The effect of this person's approval on each request that needs two people, if it does not decide the request. */
async function rulesOfTwo(sql: Sql, environmentId: string, ids: string[], decision: DecisionRow) {
  const rules = new Map<string, Exclude<SecondRule, 'decides'>>()
  if (decision.status !== 'APPROVED') return rules
  // Requests of one call name the same policies, so look these up once.
  const needed = new Map<string, number | null>()
  for (const row of await findApprovals(sql, environmentId, ids)) {
    const isOpen = row.status === 'PENDING' && row.expiresAt > decision.now && row.importedAt === null
    if (!isOpen) continue
    const key = JSON.stringify([row.policyId, row.policyVersion, row.policyVersions])
    if (row.approvers === null && !needed.has(key))
      needed.set(key, await approversNeeded(sql, environmentId, row, decision.otherTools))
    if ((row.approvers ?? needed.get(key)) !== 2) continue
    const rule = await ruleOfTwo(sql, row, decision)
    if (rule !== 'decides') rules.set(row.id, rule)
  }
  return rules
}

async function approveFirst(
  sql: Sql,
  { environmentId, now, revision }: ChangeOfApprovals,
  rules: ReadonlyMap<string, SecondRule>,
  decision: DecisionRow,
): Promise<ApprovalRow[]> {
  const ids = [...rules].flatMap(([id, rule]) => (rule === 'first' ? [id] : []))
  const person = ids.length === 0 ? null : await personOf(sql, decision)
  if (person === null) return []
  const { deciderKind: kind, deciderId: id, deciderName: name, reason } = decision
  const by = { kind, id, name, via: decision.via?.kind ?? null, person, at: now, reason }
  const text = `UPDATE approvals SET approvers = 2, first_approval = :first, revision = :revision
    WHERE environment_id = :env AND id = :id AND status = 'PENDING' RETURNING ${COLUMNS}`
  const rows = await findApprovals(sql, environmentId, ids)
  const approved = rows.map((row) => {
    const first = JSON.stringify({ ...by, inputEventId: row.inputEventId } satisfies FirstApproval)
    return sql.get<ApprovalRow>(text, { env: environmentId, id: row.id, first, revision })
  })
  return (await Promise.all(approved)).filter((row) => row !== null)
}

function byId(approvals: ApprovalRow[]): Map<string, ApprovalRow> {
  return new Map(approvals.map((approval) => [approval.id, approval]))
}

interface ChangeOfApprovals {
  environmentId: string
  now: number
  revision: number
}

async function decide(
  sql: Sql,
  { environmentId, now, revision }: ChangeOfApprovals,
  ids: string[],
  { status, reason, deciderKind, deciderId, deciderName, via }: DecisionRow,
): Promise<ApprovalRow[]> {
  const text = `UPDATE approvals SET status = :status, revision = :revision, decided_at = :now, decision_reason = :reason,
      decider_kind = :deciderKind, decider_id = :deciderId, decider_name = :deciderName, decided_via = :via
    WHERE environment_id = :env AND id IN (:ids) AND status = 'PENDING' AND expires_at > :now AND imported_at IS NULL
    RETURNING ${COLUMNS}`
  const by = { deciderKind, deciderId, deciderName, via: via?.kind ?? null }
  const params = { env: environmentId, status, revision, now, reason, ...by }
  return inChunks(ids, (chunk) => sql.all<ApprovalRow>(text, { ...params, ids: chunk }))
}

async function expire(sql: Sql, { environmentId, now, revision }: ChangeOfApprovals, ids: string[]) {
  const text = `UPDATE approvals SET status = 'EXPIRED', revision = :revision
    WHERE environment_id = :env AND id IN (:ids) AND status = 'PENDING' AND expires_at <= :now RETURNING ${COLUMNS}`
  const params = { env: environmentId, revision, now }
  const expired = await inChunks(ids, (chunk) => sql.all<ApprovalRow>(text, { ...params, ids: chunk }))
  // Withdrawn requests get no message: approval.withdrawn was their last.
  const news = expired.filter(({ withdrawnAt }) => withdrawnAt === null)
  await announceApprovals(sql, environmentId, 'approval.expired', news, now)
  return expired
}

export async function expireApprovals(sql: Sql, environmentId: string, now: number, limit: number): Promise<number> {
  const revision = await nextRevision(sql, environmentId, null)
  const env = environmentId
  const overdue = await sql.all<{ id: string }>(
    `SELECT id FROM approvals WHERE environment_id = :env AND status = 'PENDING' AND expires_at <= :now
      ORDER BY expires_at, id LIMIT :limit`,
    { env, now, limit },
  )
  const ids = overdue.map(({ id }) => id)
  const expired = await expire(sql, { environmentId, now, revision }, ids)
  const next = await sql.get<{ deadline: number | null }>(
    `SELECT MIN(expires_at) AS deadline FROM approvals WHERE environment_id = :env AND status = 'PENDING'`,
    { env },
  )
  const held = await sql.get<{ until: number | null }>(
    `SELECT MIN(held_until) AS until FROM approvals WHERE environment_id = :env AND status = 'PENDING'`,
    { env },
  )
  const deadlines = [next?.deadline, held?.until].filter((time) => typeof time === 'number')
  const keep = 'UPDATE approval_feeds SET next_deadline = :deadline WHERE environment_id = :env'
  await sql.run(keep, { deadline: deadlines.length === 0 ? null : Math.min(...deadlines), env })
  return expired.length
}

/** Needs no new revision: the time changes no answer to clients, and readers compare it with the current time. */
async function noteApprovalsSeen(sql: Sql, environmentId: string, seen: SeenApproval[]): Promise<void> {
  const text = `UPDATE approvals SET last_seen_at = :at WHERE environment_id = :env AND id IN (:ids) AND status = 'PENDING'
    AND (last_seen_at IS NULL OR last_seen_at < :at)`
  for (const [at, some] of Map.groupBy(seen, (one) => one.at)) {
    // Sorted, so that two nodes cannot deadlock.
    const ids = some.map(({ id }) => id).toSorted()
    for (const chunk of chunksOf(ids)) await sql.run(text, { env: environmentId, at, ids: chunk })
  }
}

/** The request's own key, and the key of requests that are imported or older than families of keys. */
const requestKeys = (request: NewApprovalRow): string[] => [
  requestKey(request),
  requestKey({ ...request, keyFamily: null }),
]

async function findRequest(sql: Sql, request: NewApprovalRow): Promise<ApprovalRow | null> {
  const text = `SELECT ${COLUMNS} FROM approvals WHERE environment_id = :env AND request_key IN (:own, :earlier)`
  const [own, earlier] = requestKeys(request)
  const rows = await sql.all<ApprovalRow>(text, { env: request.environmentId, own, earlier })
  return rows.find(({ keyFamily }) => keyFamily === request.keyFamily) ?? rows[0] ?? null
}

async function insert(sql: Sql, approval: ApprovalRow): Promise<void> {
  const { environmentId, toolName, policyId, runId } = approval
  const keys = {
    requestKey: requestKey(approval),
    toolKey: textKey(toolName),
    agentKey: agentKeyOf(approval),
    policyKey: policyId === null ? null : textKey(policyId),
    runKey: runId === null ? null : textKey(runId),
  }
  await insertRows(sql, 'approvals', [{ environmentId, ...keys, ...rowFor('approvals', approval) }])
}
