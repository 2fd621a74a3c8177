/** Removes the subject's approvals and issue records, with their counts and messages, and refuses their retries. */
import type { RecordKind } from '@tacho/contract/issue-record.ts'
import type { IssueRecordRow } from '../../issue-records.ts'
import { noteRemoval } from '../approvals/approvals.ts'
import { eraseDecisionsOf, eraseDetails } from '../audit.ts'
import { chunksOf, inChunks, PLACES } from '../rows/chunks.ts'
import { addErasedKeys, erasedKey, FOR_EVER } from './erased-keys.ts'
import { agentKey, textKey } from '../keys.ts'
import { recountIssue } from '../issues/issue-recount.ts'
import type { Sql } from '../sql.ts'
import { removeWork } from '../work.ts'

export interface RemovedRecords {
  approvals: number
  issueRecords: number
  issues: number
}

export type NamedBy = 'run' | 'session' | 'agent' | 'client'

const COLUMNS: Record<NamedBy, { approvals: string; records: string }> = {
  run: { approvals: 'run_key', records: 'run_id' },
  session: { approvals: 'session_id', records: 'session_id' },
  agent: { approvals: 'agent_id', records: 'agent_id' },
  client: { approvals: 'client_id', records: 'sdk_instance_id' },
}

/** Most approvals, and most records, of one call. A full result means that there may be more. */
export const RECORDS_AT_ONCE = 500

/** PostgreSQL finds texts by their MD5, because they may be longer than a row of an index. */
function named(sql: Sql, column: string): string {
  if (sql.dialect === 'sqlite' || column.endsWith('_key')) return `${column} IN (${PLACES})`
  return `md5(${column}) IN (${PLACES.replaceAll('?', 'md5(?)')})`
}

export async function removeRecords(
  sql: Sql,
  environmentId: string,
  by: NamedBy,
  names: readonly string[],
): Promise<RemovedRecords> {
  if (names.length === 0) return { approvals: 0, issueRecords: 0, issues: 0 }
  const columns = COLUMNS[by]
  const approvals = await removeApprovals(sql, environmentId, columns.approvals, names)
  const { records, issues } = await removeIssueRecords(sql, environmentId, columns.records, names)
  await eraseDetails(sql, environmentId, 'approval', approvals)
  if (by === 'run') await eraseDecisionsOf(sql, environmentId, names)
  await removeDeliveries(sql, environmentId, new Set([...approvals, ...issues]), by, new Set(names))
  return { approvals: approvals.length, issueRecords: records, issues: issues.length }
}

async function removeApprovals(sql: Sql, environmentId: string, column: string, names: readonly string[]) {
  const values = column.endsWith('_key') ? names.map(textKey) : [...names]
  const text = `SELECT id, request_key AS key FROM approvals
    WHERE environment_id = ? AND ${named(sql, column)} LIMIT ?`
  const found = await inChunks(values, (chunk) =>
    sql.all<{ id: string; key: string }>(text, [environmentId, ...chunk, RECORDS_AT_ONCE]),
  )
  if (found.length === 0) return []
  await noteRemoval(sql, environmentId)
  const ids = found.map(({ id }) => id)
  const keys = found.map(({ key }) => ({ key: erasedKey('approval', key), until: FOR_EVER }))
  await addErasedKeys(sql, environmentId, keys)
  const remove = 'DELETE FROM approvals WHERE environment_id = :env AND id IN (:ids)'
  for (const chunk of chunksOf(ids)) await sql.run(remove, { env: environmentId, ids: chunk })
  return ids
}

interface RemovedRecord extends Pick<IssueRecordRow, 'id' | 'fingerprint' | 'runId' | 'agentId'> {
  key: string
  kind: RecordKind
}

async function removeIssueRecords(sql: Sql, environmentId: string, column: string, names: readonly string[]) {
  const text = `SELECT id FROM issue_records WHERE environment_id = ? AND ${named(sql, column)} LIMIT ?`
  const found = await inChunks(names, (chunk) =>
    sql.all<{ id: string }>(text, [environmentId, ...chunk, RECORDS_AT_ONCE]),
  )
  const ids = found.map(({ id }) => id).toSorted()
  const removed: RemovedRecord[] = []
  for (const chunk of chunksOf(ids)) {
    const of = { env: environmentId, ids: chunk }
    const remove = `DELETE FROM issue_records WHERE environment_id = :env AND id IN (:ids)
      RETURNING id, record_key AS key, record_kind AS kind, fingerprint, run_id AS "runId", agent_id AS "agentId"`
    removed.push(...(await sql.all<RemovedRecord>(remove, of)))
    const work = `DELETE FROM work WHERE kind = 'review_issue_record' AND subject_id IN (:ids) AND environment_id = :env`
    await sql.run(work, of)
  }
  const keys = removed.map(({ key }) => ({ key: erasedKey('record', key), until: FOR_EVER }))
  await addErasedKeys(sql, environmentId, keys)
  const issues = new Set<string>()
  const byFingerprint = Map.groupBy(removed, ({ fingerprint }) => fingerprint)
  for (const fingerprint of [...byFingerprint.keys()].filter((one) => one !== null).toSorted()) {
    const issueId = await shrink(sql, environmentId, fingerprint, byFingerprint.get(fingerprint) ?? [])
    if (issueId !== null) issues.add(issueId)
  }
  const gone: string[] = []
  for (const issueId of [...issues].toSorted()) {
    if (await settle(sql, environmentId, issueId)) gone.push(issueId)
  }
  return { records: removed.length, issues: gone }
}

async function shrink(sql: Sql, environmentId: string, fingerprint: string, removed: readonly RemovedRecord[]) {
  const one = 'environment_id = :env AND fingerprint = :fingerprint'
  const place = { env: environmentId, fingerprint }
  const held = await sql.get<{ issueId: string | null }>(
    `UPDATE issue_fingerprints SET occurrences = occurrences - :detections, recoveries = recoveries - :recoveries
      WHERE ${one} RETURNING issue_id AS "issueId"`,
    { ...place, detections: countOf(removed, 'DETECTION'), recoveries: countOf(removed, 'RECOVERY') },
  )
  if (held === null) return null
  const detections = removed.filter(({ kind }) => kind === 'DETECTION')
  const runs = detections.flatMap(({ runId }) => (runId === null ? [] : textKey(runId)))
  await shrinkAffected(sql, environmentId, fingerprint, 'run', runs)
  const agents = detections.map(({ agentId }) => agentKey(agentId, ''))
  await shrinkAffected(sql, environmentId, fingerprint, 'agent', agents)
  const seen = (order: string) => `(SELECT seen_at FROM issue_records
    WHERE ${one} AND record_kind = 'DETECTION' ORDER BY seen_at ${order} LIMIT 1)`
  const affected = (kind: string) => `(SELECT COUNT(*) FROM issue_affected WHERE ${one} AND kind = '${kind}')`
  await sql.run(
    `UPDATE issue_fingerprints SET first_seen = ${seen('ASC')}, last_seen = ${seen('DESC')},
      runs = ${affected('run')}, agents = ${affected('agent')} WHERE ${one}`,
    place,
  )
  // Facts come from records. Without a detection there is no issue; without any record, nothing.
  await sql.run(
    `UPDATE issue_fingerprints SET issue_id = NULL, home_issue_id = NULL WHERE ${one} AND occurrences <= 0`,
    place,
  )
  await sql.run(`DELETE FROM issue_fingerprints WHERE ${one} AND occurrences <= 0 AND recoveries <= 0`, place)
  return held.issueId
}

const countOf = (records: readonly RemovedRecord[], sought: RemovedRecord['kind']): number =>
  records.filter(({ kind }) => kind === sought).length

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

async function settle(sql: Sql, environmentId: string, issueId: string): Promise<boolean> {
  const left = 'SELECT fingerprint FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :issueId LIMIT 1'
  const ofIssue = { env: environmentId, issueId }
  if ((await sql.get(left, ofIssue)) !== null) {
    await recountIssue(sql, environmentId, issueId)
    return false
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
  return true
}

/** Internal ids, by which alerts name agents. */
async function agentIdsOf(sql: Sql, environmentId: string, names: ReadonlySet<string>): Promise<string[]> {
  const text = `SELECT id FROM agents WHERE environment_id = :env AND agent_key IN (:keys)`
  const keys = [...names].flatMap((name) => [agentKey(name, ''), agentKey(null, name)])
  const found = await inChunks(keys, (chunk) => sql.all<{ id: string }>(text, { env: environmentId, keys: chunk }))
  return found.map(({ id }) => id)
}

const STATUSES = ['PENDING', 'DELIVERED', 'FAILED'] as const

/** Members of a message about an approval. It names no client. */
const QUOTED = { run: 'runId', session: 'sessionId', agent: 'agentId', client: null } as const

/** Also messages that quote a name, because retention may have removed their approvals. */
async function removeDeliveries(
  sql: Sql,
  environmentId: string,
  ids: ReadonlySet<string>,
  by: NamedBy,
  names: ReadonlySet<string>,
): Promise<void> {
  const member = QUOTED[by]
  if (ids.size === 0 && member === null) return
  const named = by === 'agent' ? new Set([...names, ...(await agentIdsOf(sql, environmentId, names))]) : names
  const webhooks = 'SELECT id FROM webhooks WHERE environment_id = :env'
  const text = `SELECT id, data FROM webhook_deliveries
    WHERE status = :status AND environment_id = :env AND webhook_id = :webhookId`
  const of = { env: environmentId }
  for (const { id: webhookId } of await sql.all<{ id: string }>(webhooks, of)) {
    for (const status of STATUSES) {
      const rows = await sql.all<{ id: string; data: string }>(text, { ...of, status, webhookId })
      const about = rows.filter(({ data }) => {
        const said = JSON.parse(data) as Partial<Record<string, string | null>>
        const quoted = (member === null ? null : said[member]) ?? null
        return ids.has(said['approvalId'] ?? said['issueId'] ?? '') || (quoted !== null && named.has(quoted))
      })
      for (const chunk of chunksOf(about.map(({ id }) => id))) {
        const remove = `DELETE FROM webhook_deliveries
          WHERE environment_id = :env AND webhook_id = :webhookId AND id IN (:ids)`
        await sql.run(remove, { ...of, webhookId, ids: chunk })
        const work = `DELETE FROM work
          WHERE kind = 'deliver_webhook' AND environment_id = :env AND subject_id IN (:ids)`
        await sql.run(work, { ...of, ids: chunk })
      }
    }
  }
}
