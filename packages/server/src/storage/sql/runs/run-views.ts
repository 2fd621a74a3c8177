import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { mapPage, type Page, type PageById } from '../../engine/page.ts'
import type { RunViewPatch, RunViewRow } from '../../runs/runs.ts'
import { read, write, countOf, selectList, type Sql } from '../engine/sql.ts'
import { insertAudit } from '../people/audit.ts'
import { lockEnvironment } from '../tenants/workspaces.ts'
import { insertRows, withJson } from '../engine/rows.ts'

export const runViewsActs = {
  ...read({ listRunViews }),
  ...write({ createRunView, changeRunView, removeRunView }),
}

const COLUMNS = selectList('id environment_id name query last_hours columns created_at')

const toRow = withJson<RunViewRow>('query', 'columns')

async function createRunView(
  sql: Sql,
  view: RunViewRow,
  audit: AuditEntry[],
): Promise<'created' | 'too_many' | 'name_taken'> {
  await lockEnvironment(sql, view.environmentId)
  const count = 'SELECT COUNT(*) AS count FROM run_views WHERE environment_id = :env'
  if ((await countOf(sql, count, { env: view.environmentId })) >= LIMITS.runViews) return 'too_many'
  const unlessTaken = 'ON CONFLICT (environment_id, name) DO NOTHING'
  if ((await insertRows(sql, 'run_views', [view], unlessTaken)) === 0) return 'name_taken'
  await insertAudit(sql, audit)
  return 'created'
}

async function listRunViews(sql: Sql, environmentId: string, { limit, after }: PageById): Promise<Page<RunViewRow>> {
  const text = `SELECT ${COLUMNS} FROM run_views WHERE environment_id = :env AND id > :after ORDER BY id`
  return mapPage(await sql.page(text, { env: environmentId, after: after ?? '' }, limit), toRow)
}

async function findRunView(sql: Sql, environmentId: string, id: string): Promise<RunViewRow | null> {
  const text = `SELECT ${COLUMNS} FROM run_views WHERE environment_id = :env AND id = :id`
  const row = await sql.get<object>(text, { env: environmentId, id })
  return row && toRow(row)
}

async function changeRunView(
  sql: Sql,
  environmentId: string,
  id: string,
  change: RunViewPatch,
  audit: AuditEntry[],
): Promise<RunViewRow | 'name_taken' | null> {
  // Without the lock, two views could get the same name concurrently.
  await lockEnvironment(sql, environmentId)
  const view = await findRunView(sql, environmentId, id)
  if (view === null) return null
  const { name = view.name, query = view.query, lastHours = view.lastHours, columns = view.columns } = change
  const of = { env: environmentId, id, name }
  const other = 'SELECT id FROM run_views WHERE environment_id = :env AND name = :name AND id <> :id'
  if ((await sql.get(other, of)) !== null) return 'name_taken'
  const text = `UPDATE run_views SET name = :name, query = :query, last_hours = :lastHours, columns = :columns
    WHERE environment_id = :env AND id = :id`
  await sql.run(text, { ...of, query: JSON.stringify(query), lastHours, columns: JSON.stringify(columns) })
  await insertAudit(sql, audit)
  return { ...view, name, query, lastHours, columns }
}

async function removeRunView(sql: Sql, environmentId: string, id: string, audit: AuditEntry[]) {
  const view = await findRunView(sql, environmentId, id)
  if (view === null) return null
  await sql.run('DELETE FROM run_views WHERE environment_id = :env AND id = :id', { env: environmentId, id })
  await insertAudit(sql, audit)
  return view
}
