import { read } from '../act.ts'
import type { ActivityKind } from '@tacho/contract/operator/issue.ts'
import type { IssueActivityRow, IssueActor, IssueRef, PageBySeen } from '../../issues.ts'
import type { Page } from '../../page.ts'
import type { Sql } from '../sql.ts'

export const issueActivityActs = read({ listIssueActivity })

export interface NewActivity {
  id: string
  at: number
  kind: ActivityKind
  actor: IssueActor | null
  text: string | null
  detail: object
}

export async function insertActivity(sql: Sql, issue: IssueRef, entry: NewActivity): Promise<void> {
  const { id, at, kind, actor, text, detail } = entry
  const insert = `INSERT INTO issue_activity (environment_id, issue_id, at, id, kind, actor, text, detail)
    VALUES (:env, :issueId, :at, :id, :kind, :by, :text, :detail)`
  const by = actor === null ? null : JSON.stringify(actor)
  const of = { env: issue.environmentId, issueId: issue.id }
  await sql.run(insert, { ...of, at, id, kind, by, text, detail: JSON.stringify(detail) })
}

async function listIssueActivity(
  sql: Sql,
  environmentId: string,
  issueId: string,
  { limit, after }: PageBySeen,
): Promise<Page<IssueActivityRow>> {
  const text = `SELECT id, at, kind, actor, imported_at AS "importedAt", text, detail FROM issue_activity
    WHERE environment_id = :env AND issue_id = :issueId ${after ? 'AND (at, id) < (:at, :key)' : ''}
    ORDER BY at DESC, id DESC`
  type Kept = Omit<IssueActivityRow, 'actor'> & { actor: string | null }
  const params = { env: environmentId, issueId, at: after?.at, key: after?.key }
  const { rows, more } = await sql.page<Kept>(text, params, limit)
  const parsed = ({ actor }: Kept) => (actor === null ? null : (JSON.parse(actor) as IssueActor))
  return { rows: rows.map((row) => ({ ...row, actor: parsed(row) })), more }
}
