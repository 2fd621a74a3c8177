import { read } from '../act.ts'
import type { RecordKind } from '@tacho/contract/issue-record.ts'
import type { IssueRecordRow } from '../../issue-records.ts'
import type {
  IssueActor,
  IssueFilter,
  IssueGroupRow,
  IssuePage,
  IssueRow,
  IssueWhole,
  IssueTrendRow,
  PageBySeen,
  TrendSlots,
} from '../../issues.ts'
import { type Page, firstRows } from '../../page.ts'
import { idKey } from './issue-affected.ts'
import { fingerprintsOf, fromEachFingerprint } from './issue-fingerprints.ts'
import { recordsOf } from './issue-records.ts'
import { textKey } from '../keys.ts'
import { namesOfRow } from '../rows/row-names.ts'
import { selectList, type Sql, type SqlValue } from '../sql.ts'

export const issuesActs = {
  listIssues: read(listIssues),
  findIssue: read(findIssue),
  listIssueOccurrences: read(listIssueOccurrences),
  readIssueTrend: read(readIssueTrend),
}

const COLUMNS = selectList(namesOfRow('issues'), 'i.')

type Kept = Omit<IssueRow, 'stateBy'> & { stateBy: string | null }

const parsed = (row: Kept): IssueRow => ({
  ...row,
  stateBy: row.stateBy === null ? null : (JSON.parse(row.stateBy) as IssueActor),
})

const WITH_AFFECTED = `i.id IN (SELECT f.issue_id FROM issue_affected a JOIN issue_fingerprints f
    ON f.environment_id = a.environment_id AND f.fingerprint = a.fingerprint
    WHERE a.environment_id = ? AND a.kind = ? AND a.subject_key = ?)`
const WITH_TYPE = `i.id IN (SELECT f.issue_id FROM issue_fingerprints f
    WHERE f.environment_id = ? AND f.detection_type = ?)`

/** Last seen first, then id. Without merged issues. */
async function listIssues(
  sql: Sql,
  environmentId: string,
  filter: IssueFilter,
  { limit, after }: IssuePage,
): Promise<Page<IssueRow>> {
  const conditions = ['i.environment_id = ?', 'i.merged_into IS NULL']
  const params: SqlValue[] = [environmentId]
  const add = (condition: string, ...values: SqlValue[]) => {
    conditions.push(condition)
    params.push(...values)
  }
  if (filter.state !== undefined) add('i.state = ?', filter.state)
  if (filter.detectionType !== undefined) add(WITH_TYPE, environmentId, filter.detectionType)
  if (filter.agentId !== undefined) add(WITH_AFFECTED, environmentId, 'agent', idKey(filter.agentId))
  if (filter.runId !== undefined) add(WITH_AFFECTED, environmentId, 'run', textKey(filter.runId))
  if (filter.assignee !== undefined) add('i.assignee = ?', filter.assignee)
  if (filter.assigned !== undefined) add(`i.assignee IS ${filter.assigned ? 'NOT ' : ''}NULL`)
  if (after === null && filter.seenTo !== undefined) add('i.last_seen < ?', filter.seenTo)
  if (after !== null) add('(i.last_seen, i.id) < (?, ?)', after.lastSeen, after.id)
  const text = `SELECT ${COLUMNS} FROM issues i WHERE ${conditions.join(' AND ')}
    ORDER BY i.last_seen DESC, i.id DESC`
  const { rows, more } = await sql.page<Kept>(text, params, limit)
  // In this order, the older ones are the end. As a condition, it would make SQLite choose another index than that of the filter.
  const wanted = rows.filter(({ lastSeen }) => lastSeen >= (filter.seenFrom ?? -Infinity))
  return { rows: wanted.map(parsed), more: more && wanted.length === rows.length }
}

export async function findIssue(sql: Sql, environmentId: string, id: string): Promise<IssueWhole | null> {
  const text = `SELECT ${COLUMNS} FROM issues i WHERE i.environment_id = ? AND i.id = ?`
  const row = await sql.get<Kept>(text, [environmentId, id])
  if (row === null) return null
  const groups = await sql.all<IssueGroupRow>(
    `SELECT fingerprint, facts, first_seen AS "firstSeen", last_seen AS "lastSeen", occurrences, recoveries, runs,
      agents, home_issue_id AS "homeIssueId" FROM issue_fingerprints
      WHERE environment_id = ? AND issue_id = ? ORDER BY fingerprint`,
    [environmentId, id],
  )
  const merged = await sql.all<{ id: string }>(
    'SELECT id FROM issues WHERE environment_id = ? AND merged_into = ? ORDER BY id',
    [environmentId, id],
  )
  const fingerprints = groups.map(({ fingerprint }) => fingerprint)
  return {
    ...parsed(row),
    groups,
    mergedFrom: merged.map((issue) => issue.id),
    firstPayload: await outermost(sql, environmentId, fingerprints, 'ASC'),
    lastPayload: await outermost(sql, environmentId, fingerprints, 'DESC'),
  }
}

async function outermost(
  sql: Sql,
  environmentId: string,
  fingerprints: string[],
  order: 'ASC' | 'DESC',
): Promise<string | null> {
  const text = `SELECT id, seen_at AS "seenAt" FROM issue_records
    WHERE environment_id = ? AND fingerprint = ? AND record_kind = 'DETECTION'
    ORDER BY seen_at ${order}, id ${order} LIMIT 1`
  const [found] = await fromEachFingerprint<{ id: string }>(sql, {
    fingerprints,
    branch: (fingerprint) => ({ text, params: [environmentId, fingerprint] }),
    order: `"seenAt" ${order}, id ${order}`,
    limit: 1,
  })
  if (found === undefined) return null
  const select = 'SELECT payload FROM issue_records WHERE environment_id = ? AND id = ?'
  return (await sql.get<{ payload: string }>(select, [environmentId, found.id]))?.payload ?? null
}

async function listIssueOccurrences(
  sql: Sql,
  environmentId: string,
  issueId: string,
  kind: RecordKind,
  { limit, after }: PageBySeen,
): Promise<Page<IssueRecordRow>> {
  const text = `SELECT id, seen_at AS "seenAt" FROM issue_records
    WHERE environment_id = ? AND fingerprint = ? AND record_kind = ? ${after ? 'AND (seen_at, id) < (?, ?)' : ''}
    ORDER BY seen_at DESC, id DESC LIMIT ?`
  const place = after ? [after.at, after.key] : []
  const found = await fromEachFingerprint<{ id: string }>(sql, {
    fingerprints: await fingerprintsOf(sql, environmentId, issueId),
    branch: (fingerprint) => ({ text, params: [environmentId, fingerprint, kind, ...place, limit + 1] }),
    order: '"seenAt" DESC, id DESC',
    limit: limit + 1,
  })
  const ids = found.map(({ id }) => id)
  const { rows } = firstRows(await recordsOf(sql, environmentId, ids), limit)
  return { rows, more: found.length > rows.length }
}

async function readIssueTrend(
  sql: Sql,
  environmentId: string,
  issueId: string,
  { from, width, count, most }: TrendSlots,
): Promise<IssueTrendRow | null> {
  const fingerprints = await fingerprintsOf(sql, environmentId, issueId)
  if (fingerprints.length === 0) return null
  const counts = Array.from({ length: count }, () => 0)
  let isPartial = false
  for (const fingerprint of fingerprints) {
    const rows = await sql.all<{ slot: number; found: number }>(
      `SELECT slot, COUNT(*) AS found FROM (SELECT CAST((seen_at - ?) / ? AS INTEGER) AS slot FROM issue_records
        WHERE environment_id = ? AND fingerprint = ? AND record_kind = 'DETECTION' AND seen_at >= ? AND seen_at < ?
        ORDER BY seen_at DESC LIMIT ?) AS seen GROUP BY slot`,
      [from, width, environmentId, fingerprint, from, from + count * width, most],
    )
    for (const { slot, found } of rows) counts[slot] = (counts[slot] ?? 0) + found
    isPartial ||= rows.reduce((sum, { found }) => sum + found, 0) >= most
  }
  return { counts, isPartial }
}
