import { read, type Acts } from '../act.ts'
import type { ActivityKind } from '@tacho/contract/operator/issue.ts'
import type { IssueActivityRow, IssueActor, IssueRef, PageBySeen, IssueStore } from '../../issues.ts'
import type { Sql } from '../sql.ts'

export const issueActivityActs = {
  listIssueActivity: read(listIssueActivity),
} satisfies Partial<Acts<IssueStore>>

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
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
  const by = actor === null ? null : JSON.stringify(actor)
  await sql.run(insert, [issue.environmentId, issue.id, at, id, kind, by, text, JSON.stringify(detail)])
}

async function listIssueActivity(
  sql: Sql,
  environmentId: string,
  issueId: string,
  { limit, after }: PageBySeen,
): Promise<IssueActivityRow[]> {
  const text = `SELECT id, at, kind, actor, text, detail FROM issue_activity
    WHERE environment_id = ? AND issue_id = ? ${after ? 'AND (at, id) < (?, ?)' : ''}
    ORDER BY at DESC, id DESC LIMIT ?`
  const params = [environmentId, issueId, ...(after ? [after.at, after.key] : []), limit]
  const rows = await sql.all<Omit<IssueActivityRow, 'actor'> & { actor: string | null }>(text, params)
  return rows.map((row) => ({ ...row, actor: row.actor === null ? null : (JSON.parse(row.actor) as IssueActor) }))
}
