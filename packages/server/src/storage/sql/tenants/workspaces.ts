import { read, write, lookup, selectList, type Sql, conditionsGiven } from '../engine/sql.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { firstRows, type Page, type PageById } from '../../engine/page.ts'
import type {
  NewWorkspaceRow,
  TenantChange,
  WorkspaceRow,
  EnvironmentRow,
  NewEnvironmentRow,
  CredentialUse,
  FirstTenant,
} from '../../tenants/tenants.ts'
import { chunksOf, insertRows } from '../engine/rows.ts'
import { auditControl, lockControl, growRevision } from '../engine/revision.ts'
import { closeAfterMinutes } from '../../data/retention.ts'
import { enqueueWork, removeWork } from '../engine/work.ts'
import { insertInvitation } from '../people/invitations.ts'

export const workspacesActs = {
  ...read({ listWorkspaces, findWorkspace }),
  ...write({ createWorkspace, changeWorkspace }),
}

const WORKSPACE_COLUMNS = selectList('id name created_at archived_at')

async function insertWorkspace(sql: Sql, workspace: NewWorkspaceRow): Promise<boolean> {
  return (await insertRows(sql, 'workspaces', [workspace], 'ON CONFLICT (name) DO NOTHING')) === 1
}

async function createWorkspace(
  sql: Sql,
  workspace: NewWorkspaceRow,
  audit: AuditEntry[],
): Promise<'created' | 'name_taken'> {
  if (!(await insertWorkspace(sql, workspace))) return 'name_taken'
  await auditControl(sql, audit)
  return 'created'
}

/** Locks a workspace until the transaction ends, also across processes. */
export async function lockWorkspace(sql: Sql, id: string): Promise<void> {
  // SQLite needs no lock, because it has one writer.
  if (sql.dialect === 'postgres') await sql.get('SELECT id FROM workspaces WHERE id = :id FOR NO KEY UPDATE', { id })
}

async function listWorkspaces(
  sql: Sql,
  { limit, after }: PageById,
  within: readonly string[] | null = null,
  withArchived = false,
): Promise<Page<WorkspaceRow>> {
  const start = after ?? ''
  const used = withArchived ? '' : ' AND archived_at IS NULL'
  if (within === null) {
    return sql.page(
      `SELECT ${WORKSPACE_COLUMNS} FROM workspaces WHERE id > :start${used} ORDER BY id`,
      { start },
      limit,
    )
  }
  // Reads all ids, because some may belong to deleted workspaces.
  const text = `SELECT ${WORKSPACE_COLUMNS} FROM workspaces WHERE id IN (:ids)${used} ORDER BY id`
  const rows: WorkspaceRow[] = []
  for (const ids of chunksOf(within.filter((id) => id > start).toSorted())) {
    rows.push(...(await sql.all<WorkspaceRow>(text, { ids })))
    if (rows.length > limit) break
  }
  return firstRows(rows, limit)
}

export function findWorkspace(sql: Sql, id: string): Promise<WorkspaceRow | null> {
  return sql.get(`SELECT ${WORKSPACE_COLUMNS} FROM workspaces WHERE id = :id`, { id })
}

async function changeWorkspace(sql: Sql, id: string, change: TenantChange, audit: AuditEntry[]) {
  const row = await findWorkspace(sql, id)
  return row && changeTenant(sql, 'workspaces', row, null, change, audit)
}

export const environmentsActs = {
  ...lookup({ findTenant }),
  ...read({ listEnvironments, findEnvironment }),
  ...write({ createEnvironment, changeEnvironment }),
}

const ENVIRONMENT_COLUMNS = selectList('id workspace_id name created_at archived_at delete_at')
const IS_NOT_BEING_DELETED = 'removed_at IS NULL'

async function insertEnvironment(sql: Sql, environment: NewEnvironmentRow): Promise<boolean> {
  const unlessTaken = 'ON CONFLICT (workspace_id, name) DO NOTHING'
  if ((await insertRows(sql, 'environments', [environment], unlessTaken)) === 0) return false
  const { id, createdAt } = environment
  const dueAt = createdAt + closeAfterMinutes(null) * 60_000
  await enqueueWork(sql, [{ kind: 'close_stalled', environmentId: id, subjectId: id, dueAt }])
  return true
}

async function createEnvironment(
  sql: Sql,
  environment: NewEnvironmentRow,
  audit: AuditEntry[],
): Promise<'created' | 'name_taken' | 'no_workspace'> {
  if ((await findWorkspace(sql, environment.workspaceId)) === null) return 'no_workspace'
  if (!(await insertEnvironment(sql, environment))) return 'name_taken'
  await auditControl(sql, audit)
  return 'created'
}

/** Locks an environment for acts that count its rows before they add to them, also across processes. */
export async function lockEnvironment(sql: Sql, id: string): Promise<void> {
  // SQLite needs no lock, because it has one writer.
  if (sql.dialect === 'postgres') await sql.get('SELECT id FROM environments WHERE id = :id FOR NO KEY UPDATE', { id })
}

function listEnvironments(sql: Sql, workspaceId: string, { limit, after }: PageById, withArchived = false) {
  const used = withArchived ? '' : ' AND archived_at IS NULL'
  const text = `SELECT ${ENVIRONMENT_COLUMNS} FROM environments WHERE workspace_id = :workspaceId AND id > :after
    AND ${IS_NOT_BEING_DELETED}${used} ORDER BY id`
  return sql.page<EnvironmentRow>(text, { workspaceId, after: after ?? '' }, limit)
}

export function findEnvironment(sql: Sql, id: string): Promise<EnvironmentRow | null> {
  return sql.get(`SELECT ${ENVIRONMENT_COLUMNS} FROM environments WHERE id = :id AND ${IS_NOT_BEING_DELETED}`, { id })
}

async function findTenant(sql: Sql, environmentId: string) {
  const ofEnvironment = `SELECT ${WORKSPACE_COLUMNS} FROM workspaces
    WHERE id = (SELECT workspace_id FROM environments WHERE id = :env)`
  const [environment, workspace] = await Promise.all([
    findEnvironment(sql, environmentId),
    sql.get<WorkspaceRow>(ofEnvironment, { env: environmentId }),
  ])
  return { environment, workspace: environment && workspace }
}

async function changeEnvironment(
  sql: Sql,
  id: string,
  change: TenantChange,
  audit: AuditEntry[],
): Promise<EnvironmentRow | 'name_taken' | null> {
  // Wait for a concurrent deletion of the workspace.
  await lockControl(sql)
  const row = await findEnvironment(sql, id)
  if (row === null) return null
  const changed = await changeTenant(sql, 'environments', row, row.workspaceId, change, audit)
  if (changed === 'name_taken' || changed.archivedAt !== null || row.deleteAt === null) return changed
  await sql.run('UPDATE environments SET delete_at = NULL, deletion = NULL WHERE id = :id', { id })
  await removeWork(sql, { kind: 'delete_environment', environmentId: id, subjectId: id })
  return { ...changed, deleteAt: null }
}

interface Archivable {
  id: string
  name: string
  archivedAt: number | null
}

/** `workspaceId`: names must differ within this workspace; null: among all. */
async function changeTenant<Row extends Archivable>(
  sql: Sql,
  table: 'workspaces' | 'environments',
  row: Row,
  workspaceId: string | null,
  change: TenantChange,
  audit: AuditEntry[],
): Promise<Row | 'name_taken'> {
  // Every change takes this lock first, so that two cannot deadlock, and two concurrent renames cannot both find the
  // name free.
  await lockControl(sql)
  if ('name' in change) {
    if (change.name === row.name) return row
    const { name } = change
    const within = conditionsGiven(['name = :name', 'workspace_id = :workspaceId'], { name, workspaceId })
    const taken = await sql.get(`SELECT id FROM ${table} WHERE ${within}`, { name, workspaceId })
    if (taken !== null) return 'name_taken'
    await sql.run(`UPDATE ${table} SET name = :name WHERE id = :id`, { name, id: row.id })
  } else {
    if ((change.archivedAt === null) === (row.archivedAt === null)) return row
    const archive = `UPDATE ${table} SET archived_at = :archivedAt WHERE id = :id`
    await sql.run(archive, { archivedAt: change.archivedAt, id: row.id })
  }
  await auditControl(sql, audit)
  return { ...row, ...change }
}

export const controlActs = write({ initialise, secret, touchCredentials })

async function initialise(sql: Sql, first: FirstTenant): Promise<'created' | 'not_empty'> {
  await lockControl(sql)
  if ((await sql.get('SELECT id FROM workspaces LIMIT 1')) !== null) return 'not_empty'
  await insertWorkspace(sql, first.workspace)
  await insertEnvironment(sql, first.environment)
  await insertRows(sql, 'api_keys', [first.apiKey])
  await insertRows(sql, 'operator_tokens', [first.operatorToken])
  if (first.invitation) await insertInvitation(sql, first.invitation)
  await growRevision(sql)
  return 'created'
}

async function secret(sql: Sql, name: string, candidate: string): Promise<string> {
  await insertRows(sql, 'secrets', [{ name, value: candidate }], 'ON CONFLICT (name) DO NOTHING')
  const row = await sql.get<{ value: string }>('SELECT value FROM secrets WHERE name = :name', { name })
  return row?.value ?? candidate
}

const TABLES = {
  api_key: ['api_keys', 'id'],
  operator_token: ['operator_tokens', 'id'],
  session: ['operator_sessions', 'token_hash'],
} as const

async function touchCredentials(sql: Sql, uses: CredentialUse[]): Promise<void> {
  // Sorted, so that two nodes cannot deadlock.
  const sorted = uses.toSorted((a, b) => (a.kind + a.id < b.kind + b.id ? -1 : 1))
  for (const { kind, id, at } of sorted) {
    const newer = '(last_used_at IS NULL OR last_used_at < :at)'
    const [table, key] = TABLES[kind]
    await sql.run(`UPDATE ${table} SET last_used_at = :at WHERE ${key} = :id AND ${newer}`, { at, id })
  }
}
