/** Lists of an issue are collected from each of its fingerprints. */
import type { Sql, SqlValue } from '../sql.ts'

export async function fingerprintsOf(sql: Sql, environmentId: string, issueId: string): Promise<string[]> {
  const text = `SELECT fingerprint FROM issue_fingerprints WHERE environment_id = ? AND issue_id = ?
    ORDER BY fingerprint`
  const rows = await sql.all<{ fingerprint: string }>(text, [environmentId, issueId])
  return rows.map(({ fingerprint }) => fingerprint)
}

/** One branch per fingerprint, each ordered and limited separately, so that an index serves it. */
export interface Branches {
  fingerprints: string[]
  branch: (fingerprint: string) => { text: string; params: SqlValue[] }
  order: string
  limit: number
}

export function fromEachFingerprint<Row>(sql: Sql, { fingerprints, branch, order, limit }: Branches): Promise<Row[]> {
  const branches = fingerprints.map(branch)
  if (branches.length === 0) return Promise.resolve([])
  const union = branches.map(({ text }, index) => `SELECT * FROM (${text}) AS b${index}`).join(' UNION ALL ')
  return sql.all<Row>(`${union} ORDER BY ${order} LIMIT ?`, [...branches.flatMap(({ params }) => params), limit])
}
