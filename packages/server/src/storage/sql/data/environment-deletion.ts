/**
 *   in use --archive--> archived --delete--> waiting --its time has come--> removed --slices--> (none)
 *     ^                    |                    |
 *     +------restore-------+--------------------+
 *
 * No reader finds a removed environment. Its data goes first, its own row last, with a receipt in the audit log of the
 * workspace.
 */
import { randomBytes } from 'node:crypto'
import type { AuditEntry } from '../../people/operators.ts'
import type { DeletionSlice, EnvironmentRow } from '../../tenants/tenants.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import { write, selectList, type Sql } from '../engine/sql.ts'
import { insertAudit } from '../people/audit.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { deleteEvents, removeRuns } from './removal.ts'
import { growRevision, lockControl } from '../engine/revision.ts'
import { TABLES } from '../../engine/tables.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'

export const environmentDeletionActs = write({ orderDeletion, deleteFromEnvironment })

interface Deletion {
  asked: AuditEntry
  rows: Record<string, number>
}

async function orderDeletion(
  sql: Sql,
  id: string,
  deleteAt: number,
  asked: AuditEntry,
): Promise<EnvironmentRow | 'in_use' | null> {
  await lockControl(sql)
  const row = await findEnvironment(sql, id)
  if (row === null || row.deleteAt !== null) return row
  if (row.archivedAt === null) return 'in_use'
  const deletion: Deletion = { asked, rows: {} }
  const text = 'UPDATE environments SET delete_at = :deleteAt, deletion = :deletion WHERE id = :id'
  await sql.run(text, { deleteAt, deletion: JSON.stringify(deletion), id })
  await enqueueWork(sql, [{ kind: 'delete_environment', environmentId: id, subjectId: id, dueAt: deleteAt }])
  await insertAudit(sql, [asked])
  return { ...row, deleteAt }
}

const RUNS_AT_ONCE = 50
const OF_RUNS: ReadonlySet<string> = new Set(['runs', 'events', 'removed_runs', 'search_runs', 'search_entries'])
/** Deleted after the runs, each table before those that it refers to. */
const REST = TABLES.toReversed().filter(({ name, environment }) => environment === 'removed' && !OF_RUNS.has(name))

type Ordered = Record<'removedAt' | 'deleteAt', number | null> & { deletion: string | null }

function findOrdered(sql: Sql, id: string): Promise<Ordered | null> {
  return sql.get(`SELECT ${selectList('removed_at deletion delete_at')} FROM environments WHERE id = :id`, { id })
}

/** Returns the table of the next slice; null: nothing is left. */
async function deleteFromEnvironment(sql: Sql, id: string, { table, most }: DeletionSlice, now: number) {
  let row = await findOrdered(sql, id)
  if (row !== null && row.removedAt === null) {
    // A concurrent restore either commits first, or finds the environment removed.
    await lockControl(sql)
    row = await findOrdered(sql, id)
  }
  if (row === null || row.deletion === null || row.deleteAt === null || row.deleteAt > now) return null
  if (row.removedAt === null) {
    // This frees its name.
    await sql.run('UPDATE environments SET removed_at = :now, name = id WHERE id = :id', { now, id })
    await growRevision(sql)
  }
  const deletion = JSON.parse(row.deletion) as Deletion
  const next = await deleteSlice(sql, id, { table, most }, now, deletion.rows)
  if (next === REST.length) {
    await finish(sql, id, deletion, now)
    return null
  }
  const text = 'UPDATE environments SET deletion = :deletion WHERE id = :id'
  await sql.run(text, { deletion: JSON.stringify(deletion), id })
  return next
}

async function deleteSlice(
  sql: Sql,
  id: string,
  { table, most }: DeletionSlice,
  now: number,
  deleted: Deletion['rows'],
): Promise<number> {
  const count = (name: string, rows: number) => (deleted[name] = (deleted[name] ?? 0) + rows)
  const lock = sql.dialect === 'postgres' ? 'FOR UPDATE' : ''
  const text = `SELECT number FROM runs WHERE environment_id = :id LIMIT :limit ${lock}`
  const runs = await sql.all<{ number: number }>(text, { id, limit: RUNS_AT_ONCE })
  if (runs.length > 0) {
    const removal = { environmentId: id, erasureId: null, now, counted: new Map() }
    const numbers = runs.map(({ number }) => number)
    count('runs', (await removeRuns(sql, removal, numbers)).runs.length)
    return table
  }
  const { events, runsLeft } = await deleteEvents(sql, id, 'all', most)
  count('events', events)
  if (runsLeft) return table
  let [place, left] = [table, most - events]
  for (const one of REST.slice(table)) {
    if (left <= 0) break
    const rows = await deleteRows(sql, id, one, left)
    count(one.name, rows)
    if (rows < left) place++
    left -= rows
  }
  return place
}

function deleteRows(sql: Sql, id: string, { name, key }: (typeof REST)[number], most: number): Promise<number> {
  if (name === 'environment_numbers' && sql.dialect === 'postgres') return Promise.resolve(0)
  // This row continues the deletion after a crash.
  const others = name === 'work' ? ` AND kind <> 'delete_environment'` : ''
  const columns = key.filter((column) => column !== 'environment_id').join(', ')
  if (columns === '') return sql.run(`DELETE FROM ${name} WHERE environment_id = :id`, { id })
  const some = `SELECT ${columns} FROM ${name} WHERE environment_id = :id${others} LIMIT :most`
  return sql.run(`DELETE FROM ${name} WHERE environment_id = :id AND (${columns}) IN (${some})`, { id, most })
}

async function finish(sql: Sql, id: string, { asked, rows }: Deletion, now: number): Promise<void> {
  await removeWork(sql, { kind: 'delete_environment', environmentId: id, subjectId: id })
  await sql.run('DELETE FROM environments WHERE id = :id', { id })
  const some = Object.entries(rows).filter(([, count]) => count > 0)
  const detail = { ...(JSON.parse(asked.detail) as object), askedAt: new Date(asked.at).toISOString() }
  const receipt = {
    ...asked,
    id: uuidv7(now, randomBytes),
    at: now,
    action: 'environment.delete.finish',
    detail: JSON.stringify({ ...detail, rows: Object.fromEntries(some) }),
  }
  await insertAudit(sql, [receipt])
  await growRevision(sql)
}
