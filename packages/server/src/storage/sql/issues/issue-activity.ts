import { read } from '../engine/act.ts'
import type { IssueActivityRow, IssueRef, PageBySeen } from '../../issues/issues.ts'
import { mapPage } from '../../engine/page.ts'
import { insertRows, withJson } from '../engine/insert-rows.ts'
import { selectList, type Sql } from '../engine/sql.ts'

export const issueActivityActs = read({ listIssueActivity })

type NewActivity = Pick<IssueActivityRow, 'id' | 'at' | 'kind' | 'actor'> & { text?: string; detail?: object }

export async function insertActivity(sql: Sql, issue: IssueRef, entry: NewActivity): Promise<void> {
  const { environmentId, id: issueId } = issue
  await insertRows(sql, 'issue_activity', [{ environmentId, issueId, text: null, detail: {}, ...entry }])
}

const ACTIVITY_COLUMNS = selectList('id at kind actor imported_at text detail')

const toRow = withJson<IssueActivityRow>('actor')

async function listIssueActivity(sql: Sql, environmentId: string, issueId: string, { limit, after }: PageBySeen) {
  const text = `SELECT ${ACTIVITY_COLUMNS} FROM issue_activity
    WHERE environment_id = :env AND issue_id = :issueId ${after ? 'AND (at, id) < (:at, :key)' : ''}
    ORDER BY at DESC, id DESC`
  const params = { env: environmentId, issueId, at: after?.at, key: after?.key }
  return mapPage(await sql.page(text, params, limit), toRow)
}
