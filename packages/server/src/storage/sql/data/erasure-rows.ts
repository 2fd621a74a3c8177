import type { ErasureRow } from '../../data/erasures.ts'
import { mapPage, type PageById } from '../../engine/page.ts'
import { withJson } from '../engine/insert-rows.ts'
import { selectList, type NamedParams, type Sql } from '../engine/sql.ts'

const COLUMNS = selectList(`id environment_id kind subject subject_hash field status requested_by reason created_at
  effective_at finished_at searched to_search runs events events_deleted approvals issue_records issues checksum searched_to`)
const ONE = 'environment_id = :env AND id = :id'

export interface Searched {
  searchedTo: number
}

const toRow = withJson<ErasureRow & Searched>('field', 'requestedBy')

export async function findErasure(sql: Sql, environmentId: string, id: string) {
  const row = await sql.get<object>(`SELECT ${COLUMNS} FROM erasures WHERE ${ONE}`, { env: environmentId, id })
  return row && toRow(row)
}

export async function changeErasure(sql: Sql, { environmentId, id }: ErasureRow, set: string, values: NamedParams) {
  const text = `UPDATE erasures SET ${set} WHERE ${ONE} RETURNING ${COLUMNS}`
  const row = await sql.get<object>(text, { ...values, env: environmentId, id })
  if (row === null) throw new Error('A found erasure is missing')
  return toRow(row)
}

export async function listErasures(sql: Sql, environmentId: string, { limit, after }: PageById) {
  const older = after === null ? '' : 'AND id < :after'
  const text = `SELECT ${COLUMNS} FROM erasures WHERE environment_id = :env ${older} ORDER BY id DESC`
  return mapPage(await sql.page(text, { env: environmentId, after }, limit), toRow)
}
