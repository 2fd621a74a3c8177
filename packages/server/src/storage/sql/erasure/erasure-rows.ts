import type { ErasureRow } from '../../erasures.ts'
import { mapPage, type Page, type PageById } from '../../page.ts'
import type { Sql } from '../sql.ts'

const COLUMNS = `id, environment_id AS "environmentId", kind, subject,
  subject_hash AS "subjectHash", field, status, requested_by AS "requestedBy", reason, created_at AS "createdAt",
  effective_at AS "effectiveAt", finished_at AS "finishedAt", searched, to_search AS "toSearch", runs, events,
  events_deleted AS "eventsDeleted", approvals, issue_records AS "issueRecords", issues, checksum,
  searched_to AS "searchedTo"`
export const ONE = 'environment_id = :env AND id = :id'

/** Runs up to this number have been searched. */
export interface Searched {
  searchedTo: number
}

type Stored = Omit<ErasureRow, 'field' | 'requestedBy'> & Searched & { field: string | null; requestedBy: string }

const parsed = ({ field, requestedBy, ...row }: Stored): ErasureRow & Searched => ({
  ...row,
  field: field === null ? null : (JSON.parse(field) as string[]),
  requestedBy: JSON.parse(requestedBy) as ErasureRow['requestedBy'],
})

export async function findErasure(
  sql: Sql,
  environmentId: string,
  id: string,
): Promise<(ErasureRow & Searched) | null> {
  const row = await sql.get<Stored>(`SELECT ${COLUMNS} FROM erasures WHERE ${ONE}`, { env: environmentId, id })
  return row && parsed(row)
}

/** Newest first. */
export async function listErasures(
  sql: Sql,
  environmentId: string,
  { limit, after }: PageById,
): Promise<Page<ErasureRow>> {
  const older = after === null ? '' : 'AND id < :after'
  const text = `SELECT ${COLUMNS} FROM erasures WHERE environment_id = :env ${older} ORDER BY id DESC`
  return mapPage(await sql.page<Stored>(text, { env: environmentId, after }, limit), parsed)
}
