/** Removes the subject's approvals and issue records, with their counts and messages, and refuses their retries. */
import { hash } from 'node:crypto'
import type { IssueRecordRow } from '../../issues/issues.ts'
import { noteRemoval } from '../approvals/approval-rows.ts'
import { eraseDecisionsOf, eraseDetails } from '../people/audit.ts'
import { allIn, chunksOf } from '../engine/rows.ts'
import { namedAgents } from './erasable.ts'
import { addErasedKeys, erasedKey, FOR_EVER } from './erased-keys.ts'
import { agentKey, requestKey, textKey } from '../engine/keys.ts'
import { recountIssue } from '../issues/issue-fingerprints.ts'
import { selectList, type Sql } from '../engine/sql.ts'
import { removeWork } from '../engine/work.ts'

export interface RemovedRecords {
  approvals: number
  issueRecords: number
  issues: number
}

export type NamedBy = 'run' | 'session' | 'agent' | 'client'

/** `message`: the member that names the subject in a message about an approval; null: none does. */
const PLACES: Record<NamedBy, { approvals: string; records: string; message: string | null }> = {
  run: { approvals: 'run_key', records: 'run_id', message: 'runId' },
  session: { approvals: 'session_id', records: 'session_id', message: 'sessionId' },
  agent: { approvals: 'agent_id', records: 'agent_id', message: 'agentId' },
  client: { approvals: 'client_id', records: 'sdk_instance_id', message: null },
}

/** A call erases at most this many approvals and this many records. If it erases that many, more may be left. */
export const RECORDS_AT_ONCE = 500

/** PostgreSQL finds texts by their MD5, because they may be longer than a row of an index. */
function findNamed<Row>(sql: Sql, environmentId: string, selected: string, column: string, names: readonly string[]) {
  const isHashed = sql.dialect === 'postgres' && !column.endsWith('_key')
  const text = `${selected} WHERE environment_id = :env AND ${isHashed ? `md5(${column})` : column} IN (:names) LIMIT :limit`
  const sought = isHashed ? names.map((name) => hash('md5', name)) : names
  return allIn<Row>(sql, text, { env: environmentId, names: sought, limit: RECORDS_AT_ONCE })
}

export async function removeRecords(
  sql: Sql,
  environmentId: string,
  by: NamedBy,
  names: readonly string[],
): Promise<RemovedRecords> {
  if (names.length === 0) return { approvals: 0, issueRecords: 0, issues: 0 }
  const places = PLACES[by]
  const approvals = await removeApprovals(sql, environmentId, places.approvals, names)
  const { records, issues } = await removeIssueRecords(sql, environmentId, places.records, names)
  await eraseDetails(sql, environmentId, 'approval', approvals)
  if (by === 'run') await eraseDecisionsOf(sql, environmentId, names)
  await removeDeliveries(sql, environmentId, new Set([...approvals, ...issues]), by, names)
  return { approvals: approvals.length, issueRecords: records, issues: issues.length }
}

async function removeApprovals(sql: Sql, environmentId: string, column: string, names: readonly string[]) {
  const values = column.endsWith('_key') ? names.map(textKey) : names
  const selected = `SELECT ${selectList('id client_id client_request_id key_family imported_at')} FROM approvals`
  const namedRecords = await findNamed<{ id: string; importedAt: number | null } & Parameters<typeof requestKey>[0]>(
    sql,
    environmentId,
    selected,
    column,
    values,
  )
  if (namedRecords.length === 0) return []
  await noteRemoval(sql, environmentId)
  const ids = namedRecords.map(({ id }) => id)
  const keys = namedRecords
    // Clients find an imported request without its key family, so add that key too.
    .flatMap((row) => [row, ...(row.importedAt === null ? [] : [{ ...row, keyFamily: null }])])
    .map((row) => ({ key: erasedKey('approval', requestKey(row)), until: FOR_EVER }))
  await addErasedKeys(sql, environmentId, keys)
  const remove = 'DELETE FROM approvals WHERE environment_id = :env AND id IN (:ids)'
  const grants = 'DELETE FROM approval_grants WHERE environment_id = :env AND approval_id IN (:ids)'
  for (const chunk of chunksOf(ids)) {
    await sql.run(remove, { env: environmentId, ids: chunk })
    await sql.run(grants, { env: environmentId, ids: chunk })
  }
  return ids
}

interface RemovedRecord extends Pick<IssueRecordRow, 'id' | 'fingerprint' | 'runId' | 'agentId' | 'recordKind'> {
  recordKey: string
}
const REMOVED = selectList('id record_key record_kind fingerprint run_id agent_id')

async function removeIssueRecords(sql: Sql, environmentId: string, column: string, names: readonly string[]) {
  const selected = 'SELECT id FROM issue_records'
  const namedRecords = await findNamed<{ id: string }>(sql, environmentId, selected, column, names)
  const ids = namedRecords.map(({ id }) => id).toSorted()
  const removed: RemovedRecord[] = []
  for (const chunk of chunksOf(ids)) {
    const of = { env: environmentId, ids: chunk }
    const remove = `DELETE FROM issue_records WHERE environment_id = :env AND id IN (:ids) RETURNING ${REMOVED}`
    removed.push(...(await sql.all<RemovedRecord>(remove, of)))
    const work = `DELETE FROM work WHERE kind = 'review_issue_record' AND subject_id IN (:ids) AND environment_id = :env`
    await sql.run(work, of)
  }
  const keys = removed.map(({ recordKey }) => ({ key: erasedKey('record', recordKey), until: FOR_EVER }))
  await addErasedKeys(sql, environmentId, keys)
  const issues = new Set<string>()
  const byFingerprint = Map.groupBy(removed, ({ fingerprint }) => fingerprint)
  for (const fingerprint of [...byFingerprint.keys()].filter((one) => one !== null).toSorted()) {
    const issueId = await shrink(sql, environmentId, fingerprint, byFingerprint.get(fingerprint) ?? [])
    if (issueId !== null) issues.add(issueId)
  }
  const gone: string[] = []
  for (const issueId of [...issues].toSorted()) {
    if ((await recountOrDelete(sql, environmentId, issueId)) === 'deleted') gone.push(issueId)
  }
  return { records: removed.length, issues: gone }
}

async function shrink(sql: Sql, environmentId: string, fingerprint: string, removed: readonly RemovedRecord[]) {
  const one = 'environment_id = :env AND fingerprint = :fingerprint'
  const place = { env: environmentId, fingerprint }
  const detections = removed.filter(({ recordKind }) => recordKind === 'DETECTION')
  const held = await sql.get<{ issueId: string | null }>(
    `UPDATE issue_fingerprints SET occurrences = occurrences - :detections, recoveries = recoveries - :recoveries
      WHERE ${one} RETURNING issue_id AS "issueId"`,
    { ...place, detections: detections.length, recoveries: removed.length - detections.length },
  )
  if (held === null) return null
  const runs = detections.flatMap(({ runId }) => (runId === null ? [] : textKey(runId)))
  await shrinkAffected(sql, environmentId, fingerprint, 'run', runs)
  const agents = detections.map(({ agentId }) => agentKey(agentId, ''))
  await shrinkAffected(sql, environmentId, fingerprint, 'agent', agents)
  const seen = (order: string) => `(SELECT seen_at FROM issue_records
    WHERE ${one} AND record_kind = 'DETECTION' ORDER BY seen_at ${order} LIMIT 1)`
  const affected = (kind: string) => `(SELECT COUNT(*) FROM issue_affected WHERE ${one} AND kind = '${kind}')`
  // Facts come from the remaining records. Without a detection, the fingerprint has no issue; without any record, it is
  // deleted.
  const ifDetected = (column: string) => `CASE WHEN occurrences > 0 THEN ${column} END`
  await sql.run(
    `UPDATE issue_fingerprints SET first_seen = ${seen('ASC')}, last_seen = ${seen('DESC')},
      runs = ${affected('run')}, agents = ${affected('agent')}, issue_id = ${ifDetected('issue_id')},
      home_issue_id = ${ifDetected('home_issue_id')} WHERE ${one}`,
    place,
  )
  await sql.run(`DELETE FROM issue_fingerprints WHERE ${one} AND occurrences <= 0 AND recoveries <= 0`, place)
  return held.issueId
}

async function shrinkAffected(
  sql: Sql,
  environmentId: string,
  fingerprint: string,
  kind: 'run' | 'agent',
  keys: readonly string[],
): Promise<void> {
  const one = `environment_id = :env AND fingerprint = :fingerprint AND kind = '${kind}' AND subject_key = :key`
  for (const [key, same] of Map.groupBy(keys, (value) => value)) {
    const place = { env: environmentId, fingerprint, key }
    const fewer = `UPDATE issue_affected SET occurrences = occurrences - :count WHERE ${one}`
    await sql.run(fewer, { count: same.length, ...place })
    await sql.run(`DELETE FROM issue_affected WHERE ${one} AND occurrences <= 0`, place)
  }
}

/** An issue without fingerprints is deleted. */
async function recountOrDelete(sql: Sql, environmentId: string, issueId: string): Promise<'recounted' | 'deleted'> {
  const left = 'SELECT fingerprint FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :issueId LIMIT 1'
  const ofIssue = { env: environmentId, issueId }
  if ((await sql.get(left, ofIssue)) !== null) {
    await recountIssue(sql, environmentId, issueId)
    return 'recounted'
  }
  const into = 'SELECT id FROM issues WHERE environment_id = :env AND merged_into = :issueId ORDER BY id'
  const merged = await sql.all<{ id: string }>(into, ofIssue)
  const ids = [issueId, ...merged.map((issue) => issue.id)]
  const keys = ids.map((id) => ({ key: erasedKey('issue', id), until: FOR_EVER }))
  await addErasedKeys(sql, environmentId, keys)
  for (const id of ids) {
    const of = { env: environmentId, id }
    await sql.run('DELETE FROM issue_activity WHERE environment_id = :env AND issue_id = :id', of)
    await sql.run('DELETE FROM issues WHERE environment_id = :env AND id = :id', of)
    await removeWork(sql, { kind: 'reopen_issue', environmentId, subjectId: id })
  }
  return 'deleted'
}

const STATUSES = ['PENDING', 'DELIVERED', 'FAILED'] as const

/** Also removes messages that quote a name: retention may have removed their approvals. */
async function removeDeliveries(
  sql: Sql,
  environmentId: string,
  ids: ReadonlySet<string>,
  by: NamedBy,
  names: readonly string[],
): Promise<void> {
  const member = PLACES[by].message
  if (ids.size === 0 && member === null) return
  const named = new Set(names)
  // Alerts name agents by their internal ids.
  const agents = by === 'agent' ? names : []
  for (const name of agents) for (const id of await namedAgents(sql, environmentId, name)) named.add(id)
  const webhooks = 'SELECT id FROM webhooks WHERE environment_id = :env'
  const text = `SELECT id, data FROM webhook_deliveries
    WHERE status = :status AND environment_id = :env AND webhook_id = :webhookId`
  const remove =
    'DELETE FROM webhook_deliveries WHERE environment_id = :env AND webhook_id = :webhookId AND id IN (:ids)'
  const work = `DELETE FROM work WHERE kind = 'deliver_webhook' AND environment_id = :env AND subject_id IN (:ids)`
  const of = { env: environmentId }
  for (const { id: webhookId } of await sql.all<{ id: string }>(webhooks, of)) {
    for (const status of STATUSES) {
      const rows = await sql.all<{ id: string; data: string }>(text, { ...of, status, webhookId })
      const about = rows.filter(({ data }) => {
        const parsedData = JSON.parse(data) as Partial<Record<string, string | null>>
        const quoted = (member === null ? null : parsedData[member]) ?? null
        return (
          ids.has(parsedData['approvalId'] ?? parsedData['issueId'] ?? '') || (quoted !== null && named.has(quoted))
        )
      })
      for (const chunk of chunksOf(about.map(({ id }) => id))) {
        await sql.run(remove, { ...of, webhookId, ids: chunk })
        await sql.run(work, { ...of, ids: chunk })
      }
    }
  }
}
