/**
 *   RECEIVED --review begins--> EVALUATING --issue found or opened--> DECIDED
 *      ^                          |     ^
 *      |                          |     +--taken over from a dead node, tried again after an error
 *      +--operator-- FAILED <-----+ it keeps failing
 *
 * Every change is one compare-and-set on the status, so that any number of reviewers decide a record once.
 */
import { read, write, conditionsGiven, selectList, type Sql, eventEnvironment } from '../engine/sql.ts'
import {
  type IssueRecordFilter,
  type IssueRecordReceived,
  type IssueRecordRow,
  type IssueRecordWhole,
  type NewIssueRecord,
  type RefusedClaim,
  type RecordInReview,
  type DecidedIssues,
  type IssueDecision,
  loopTool,
  type NewLoop,
} from '../../issues/issues.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { findStopOver } from '../policies/stops.ts'
import { claimFault } from '../../approvals/approvals.ts'
import { findApproval, nextRevision } from '../approvals/approval-rows.ts'
import { insertAudit } from '../people/audit.ts'
import { firstRows, type PageById } from '../../engine/page.ts'
import { chunksOf, insertRows, columnsOfRow, rowFor } from '../engine/rows.ts'
import { erasedKey, isErased, keepRemovalsWaiting } from '../data/erased-keys.ts'
import { clientRecordKey, serviceRecordKey } from '../engine/keys.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'
import { announceIssues } from '../messages/announcements.ts'
import { countAffected, type AffectedPlace } from './issue-affected.ts'
import {
  growFingerprint,
  growIssue,
  seenIn,
  openIssue,
  type Decided,
  type DecidedRecord,
} from './issue-fingerprints.ts'
import { holdFailures } from '../engine/revision.ts'

export const issueRecordsActs = {
  ...read({ findIssueRecord, listIssueRecords }),
  ...write({ receiveIssueRecord, claimApproval, startReview, failIssueRecord, retryIssueRecord }),
}

const LISTED = columnsOfRow('issue_records').filter((column) => column !== 'payload' && column !== 'evidence')

const COLUMNS = `${selectList(LISTED, 'r.')}, f.issue_id AS "issueId", n.id AS run,
  e.event_id AS "storedEventId"`

const joins = (sql: Sql) => `LEFT JOIN issue_records s ON s.environment_id = r.environment_id AND s.id = r.same_as
  LEFT JOIN issue_fingerprints f ON f.environment_id = r.environment_id AND f.fingerprint = COALESCE(r.fingerprint, s.fingerprint)
  LEFT JOIN runs n ON n.environment_id = r.environment_id AND n.run_id = r.run_id
  LEFT JOIN events e ON e.environment_id = ${eventEnvironment(sql, 'r.environment_id')}
    AND e.run = n.number AND e.event_id = r.event_id`

export const UNLESS_KNOWN = 'ON CONFLICT (environment_id, record_key) DO NOTHING'

/** Null: the record was erased, or it names a subject that was erased after it. */
async function receiveIssueRecord(sql: Sql, record: NewIssueRecord): Promise<IssueRecordReceived | null> {
  const { environmentId, id, detectedAt, receivedAt } = record
  const key = clientRecordKey(record.sdkInstanceId, record.clientRecordId)
  const named = { ...record, clientId: record.sdkInstanceId, time: detectedAt }
  if (await isErased(sql, environmentId, erasedKey('record', key), named)) return null
  const row = {
    ...record,
    seenAt: Math.min(detectedAt, receivedAt),
    status: 'RECEIVED',
    statusAt: receivedAt,
    failure: null,
    fingerprint: null,
    origin: 'CLIENT',
    sameAs: null,
  }
  const stored = { environmentId, recordKey: key, ...rowFor('issue_records', row) }
  if ((await insertRows(sql, 'issue_records', [stored], UNLESS_KNOWN)) === 1) {
    await enqueueWork(sql, [{ kind: 'review_issue_record', environmentId, subjectId: id, dueAt: receivedAt }])
    return { id, status: 'RECEIVED', isNew: true, evidence: record.evidence }
  }
  const select = 'SELECT id, status, evidence FROM issue_records WHERE environment_id = :env AND record_key = :key'
  const known = await sql.get<Omit<IssueRecordReceived, 'isNew'>>(select, { env: environmentId, key })
  if (known === null) throw new Error('A conflicting record is missing')
  return { ...known, isNew: false }
}

/** A withdrawal takes the same lock. If it comes first, the claim is refused; if it comes later, it changes nothing. */
async function claimApproval(
  sql: Sql,
  approvalId: string,
  record: NewIssueRecord,
): Promise<IssueRecordReceived | RefusedClaim | null> {
  const { environmentId, receivedAt } = record
  await keepRemovalsWaiting(sql, environmentId)
  await nextRevision(sql, environmentId, null)
  const approval = await findApproval(sql, environmentId, approvalId)
  if (approval === null || claimFault(approval, receivedAt) !== null) return { unclaimed: approval }
  const stop = await findStopOver(sql, environmentId, approval)
  return stop === null ? receiveIssueRecord(sql, record) : { unclaimed: approval, stop }
}

function findIssueRecord(sql: Sql, environmentId: string, id: string) {
  const text = `SELECT ${COLUMNS}, r.payload, r.evidence FROM issue_records r ${joins(sql)}
    WHERE r.environment_id = :env AND r.id = :id`
  return sql.get<IssueRecordWhole>(text, { env: environmentId, id })
}

function listIssueRecords(sql: Sql, environmentId: string, filter: IssueRecordFilter, { limit, after }: PageById) {
  const { status, recordKind } = filter
  const params = { env: environmentId, status, recordKind, after }
  const conditions = ['r.environment_id = :env', 'r.status = :status', 'r.record_kind = :recordKind', 'r.id < :after']
  const text = `SELECT ${COLUMNS} FROM issue_records r ${joins(sql)}
    WHERE ${conditionsGiven(conditions, params)} ORDER BY r.id DESC`
  return sql.page<IssueRecordRow>(text, params, limit)
}

/** In the order of `ids`: at least as many records as fit on a page. */
export async function recordsOf(sql: Sql, environmentId: string, ids: string[]): Promise<IssueRecordRow[]> {
  const text = `SELECT ${COLUMNS} FROM issue_records r ${joins(sql)} WHERE r.environment_id = :env AND r.id IN (:ids)`
  const byId = new Map<string, IssueRecordRow>()
  for (const chunk of chunksOf(ids)) {
    const rows = await sql.all<IssueRecordRow>(text, { env: environmentId, ids: chunk })
    for (const row of rows) byId.set(row.id, row)
    if (firstRows(byId.values(), ids.length).more) break
  }
  return ids.flatMap((id) => byId.get(id) ?? [])
}

async function startReview(sql: Sql, environmentId: string, ids: string[], now: number) {
  const text = `UPDATE issue_records SET status_at = CASE WHEN status = 'RECEIVED' THEN :now ELSE status_at END,
      status = 'EVALUATING' WHERE environment_id = :env AND id = :id AND status IN ('RECEIVED', 'EVALUATING')
    RETURNING ${selectList('id record_kind run_id event_id detection_type policy_id payload')}`
  const records: (RecordInReview | null)[] = []
  for (const id of ids.toSorted()) records.push(await sql.get<RecordInReview>(text, { now, env: environmentId, id }))
  return records.filter((record) => record !== null)
}

async function failIssueRecord(sql: Sql, environmentId: string, id: string, failure: string, now: number) {
  const text = `UPDATE issue_records SET status = 'FAILED', status_at = :now, failure = :failure
    WHERE environment_id = :env AND id = :id AND status IN ('RECEIVED', 'EVALUATING')`
  const of = { env: environmentId, id }
  const changed = (await sql.run(text, { now, failure, ...of })) === 1
  // The work of a deleted record must be deleted too.
  const select = 'SELECT id FROM issue_records WHERE environment_id = :env AND id = :id'
  if (changed || (await sql.get(select, of)) === null) await endReview(sql, environmentId, id)
}

/** A record has work exactly while it awaits its decision. */
function endReview(sql: Sql, environmentId: string, id: string): Promise<void> {
  return removeWork(sql, { kind: 'review_issue_record', environmentId, subjectId: id })
}

async function retryIssueRecord(sql: Sql, environmentId: string, id: string, now: number, audit: AuditEntry[]) {
  const text = `UPDATE issue_records SET status = 'RECEIVED', status_at = :now, failure = NULL
    WHERE environment_id = :env AND id = :id AND status = 'FAILED'`
  const changed = (await sql.run(text, { now, env: environmentId, id })) === 1
  if (changed) {
    await enqueueWork(sql, [{ kind: 'review_issue_record', environmentId, subjectId: id, dueAt: now }])
    await insertAudit(sql, audit)
  }
  const [record] = await recordsOf(sql, environmentId, [id])
  return record ? { changed, record } : null
}

/**
 * Decides records: each joins the issue of its fingerprint, or opens it.
 *
 * Rows are locked in one order everywhere: failures of runs (`holdFailures`), records, fingerprints, issues, each by
 * key. Merging and splitting lock fingerprints too, so a locked fingerprint stays in its issue. The first decision
 * about a fingerprint inserts it and others wait, so one set of facts has one issue.
 */

export const reviewActs = write({ decideIssueRecords })

interface Group extends Decided {
  decision: IssueDecision
}

/** Skips records that are no longer being evaluated, so that each counts once. */
export async function decideIssueRecords(sql: Sql, environmentId: string, decisions: IssueDecision[], now: number) {
  const named = decisions.flatMap(({ reports }) => reports?.runId ?? [])
  await holdFailures(sql, environmentId, named)
  const groups = new Map<string, Group>()
  for (const decision of decisions.toSorted((a, b) => (a.recordId < b.recordId ? -1 : 1))) {
    if (await joinService(sql, environmentId, decision, now)) continue
    const record = await decide(sql, environmentId, decision, now)
    if (record === null) continue
    const group = groups.get(decision.fingerprint) ?? { decision, detections: [], recoveries: 0 }
    groups.set(decision.fingerprint, group)
    if (record.recordKind === 'DETECTION') group.detections.push(record)
    else group.recoveries += 1
  }
  return countGroups(sql, environmentId, groups, now)
}

/** True: the service already counted the failure, so this record only adds evidence to the service's record. */
async function joinService(sql: Sql, environmentId: string, { recordId, reports }: IssueDecision, now: number) {
  if (reports === null) return false
  const select = 'SELECT id FROM issue_records WHERE environment_id = :env AND record_key = :key'
  const key = serviceRecordKey(reports.runId, reports.eventId)
  const counted = await sql.get<{ id: string }>(select, { env: environmentId, key })
  if (counted === null) return false
  const text = `UPDATE issue_records SET status = 'DECIDED', status_at = :now, same_as = :id
    WHERE environment_id = :env AND id = :recordId AND status = 'EVALUATING'`
  if ((await sql.run(text, { now, id: counted.id, env: environmentId, recordId })) === 1) {
    await endReview(sql, environmentId, recordId)
  }
  return true
}

async function decide(sql: Sql, environmentId: string, { recordId, fingerprint }: IssueDecision, now: number) {
  const text = `UPDATE issue_records SET status = 'DECIDED', status_at = :now, fingerprint = :fingerprint
    WHERE environment_id = :env AND id = :recordId AND status = 'EVALUATING'
    RETURNING id, record_kind AS "recordKind", seen_at AS "seenAt", run_id AS "runId", agent_id AS "agentId"`
  const record = await sql.get<DecidedRecord>(text, { now, fingerprint, env: environmentId, recordId })
  if (record !== null) await endReview(sql, environmentId, recordId)
  return record
}

async function countGroups(sql: Sql, environmentId: string, groups: ReadonlyMap<string, Group>, now: number) {
  const decided: DecidedIssues = { opened: [], regressed: [] }
  const grown = new Map<string, Group[]>()
  const detected: { place: AffectedPlace; detections: DecidedRecord[] }[] = []
  for (const [fingerprint, group] of [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const { decision, detections, recoveries } = group
    const growth = { ...seenIn(detections), recoveries }
    const known = await growFingerprint(sql, environmentId, decision, growth)
    // A recovery without a detection stays with its fingerprint.
    if (known.issueId === null && detections.length === 0) continue
    const issueId = known.issueId ?? decision.newIssueId
    detected.push({ place: { environmentId, fingerprint, issueId }, detections })
    if (known.issueId === null) {
      await openIssue(sql, environmentId, decision, { ...growth, recoveries: known.recoveries }, now)
      decided.opened.push(issueId)
    } else {
      grown.set(issueId, [...(grown.get(issueId) ?? []), group])
    }
  }
  for (const [issueId, some] of [...grown].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const detections = some.flatMap((group) => group.detections)
    const recoveries = some.reduce((sum, group) => sum + group.recoveries, 0)
    if (await growIssue(sql, environmentId, issueId, { detections, recoveries }, now)) decided.regressed.push(issueId)
  }
  // Must run while the issue row is locked.
  for (const { place, detections } of detected) await countAffected(sql, place, detections)
  await announceIssues(sql, environmentId, 'issue.opened', decided.opened, now)
  await announceIssues(sql, environmentId, 'issue.regressed', decided.regressed, now)
  return decided
}

/**
 * Loops that the service detects in the tool calls of a run (storage/issues/issues.ts), whichever client recorded it.
 * Each is an issue record of the service. A review decides it like a client's report, so both join one issue.
 */
export const loopsActs = write({ recordLoops })

const LOOP_TYPE = 'LOOP_DETECTED'

async function recordLoops(sql: Sql, environmentId: string, runId: string, loops: readonly NewLoop[], now: number) {
  await holdFailures(sql, environmentId, [runId])
  const reported = await reportedTools(sql, environmentId, runId)
  for (const { id, toolName, clientId, sessionId, agentId, time } of loops) {
    if (reported.has(toolName)) continue
    // No event has such an id, because ids have no NUL.
    const recordKey = serviceRecordKey(runId, `\0loop ${toolName}`)
    const named = { runId, sessionId, agentId, clientId, time }
    if (await isErased(sql, environmentId, erasedKey('record', recordKey), named)) continue
    const detected = { runId, sessionId, agentId, detectionType: LOOP_TYPE, evidence: '{}' }
    const payload = JSON.stringify({ toolName, reasonCode: 'same_input' })
    const times = { detectedAt: time, seenAt: Math.min(time, now), receivedAt: now, statusAt: now }
    const names = { id, recordKey, sdkInstanceId: clientId, clientRecordId: `loop ${toolName}` }
    const kinds = { origin: 'SERVICE', recordKind: 'DETECTION', status: 'RECEIVED' }
    const record = { environmentId, ...names, ...kinds, ...detected, payload, ...times }
    if ((await insertRows(sql, 'issue_records', [record], UNLESS_KNOWN)) === 0) continue
    await enqueueWork(sql, [{ kind: 'review_issue_record', environmentId, subjectId: id, dueAt: now }])
  }
}

/** Tools whose loops clients have already reported, so that each loop counts once. */
async function reportedTools(sql: Sql, environmentId: string, runId: string): Promise<ReadonlySet<unknown>> {
  const ofRun = sql.dialect === 'sqlite' ? 'run_id = :runId' : 'md5(run_id) = md5(:runId)'
  const text = `SELECT payload FROM issue_records WHERE environment_id = :env AND ${ofRun}
    AND detection_type = '${LOOP_TYPE}' AND record_kind = 'DETECTION' AND origin = 'CLIENT' LIMIT ${REPORTS_READ}`
  const rows = await sql.all<{ payload: string }>(text, { env: environmentId, runId })
  const tools = rows.map(({ payload }) => (JSON.parse(payload) as { toolName?: unknown }).toolName)
  return new Set(tools.map((tool) => (typeof tool === 'string' ? loopTool(tool) : tool)))
}

const REPORTS_READ = 1_000
