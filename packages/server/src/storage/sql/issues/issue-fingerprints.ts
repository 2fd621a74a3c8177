import type { NamedParams, Sql } from '../engine/sql.ts'

export async function fingerprintsOf(sql: Sql, environmentId: string, issueId: string): Promise<string[]> {
  const text = `SELECT fingerprint FROM issue_fingerprints WHERE environment_id = :env AND issue_id = :issueId
    ORDER BY fingerprint`
  const rows = await sql.all<{ fingerprint: string }>(text, { env: environmentId, issueId })
  return rows.map(({ fingerprint }) => fingerprint)
}

/** One branch per fingerprint, each ordered and limited separately, so that an index serves it. */
export interface Branches {
  fingerprints: string[]
  /** Selects the rows of one fingerprint, which it names `:fingerprint`. */
  text: string
  params: NamedParams
  order: string
  limit: number
}

export function fromEachFingerprint<Row>(sql: Sql, { fingerprints, text, params, order, limit }: Branches) {
  if (fingerprints.length === 0) return Promise.resolve([])
  const names = fingerprints.map((_, index) => `fingerprint${index}`)
  const branches = names.map((name) => `SELECT * FROM (${text.replaceAll(':fingerprint', `:${name}`)}) AS of_${name}`)
  const named = Object.fromEntries(names.map((name, index) => [name, fingerprints[index]]))
  return sql.all<Row>(`${branches.join(' UNION ALL ')} ORDER BY ${order} LIMIT :limit`, { ...params, ...named, limit })
}
