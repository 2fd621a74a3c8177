/** Names come from the tables below, never from a request. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { read, write, type SqlFragment, type Sql, type SqlValue, selectList } from '../engine/sql.ts'
import { memberOf } from '../../data/exports.ts'
import type {
  SignInCondition,
  SignInFind,
  SignInModel,
  SignInRecord,
  AuditEntry,
  OperatorRow,
  SessionListRow,
  SessionRow,
} from '../../people/operators.ts'
import type { TableName } from '../../engine/tables.ts'
import { growRevision, auditControl } from '../engine/revision.ts'
import { insertAudit } from './audit.ts'
import { isDeactivated, OPERATOR, rolesOf } from './operators.ts'
import { textKey } from '../engine/keys.ts'

export const signInActs = {
  ...read({ findSignIn }),
  ...write({ createSignIn, updateSignIn, deleteSignIn }),
}

interface Table {
  name: string
  /** Field -> column. The library's other fields are not stored. */
  columns: Record<string, string>
}

function table(name: TableName, columns: string, renamed: Record<string, string> = {}): Table {
  const columnPairs = columns.split(' ').map((column) => [memberOf(column), column])
  return { name, columns: { ...Object.fromEntries(columnPairs), ...renamed } }
}

const OF_USER = { userId: 'operator_id' }
const TIMES = 'created_at updated_at'

const TABLES: Record<SignInModel, Table> = {
  user: table('operators', `id name email email_verified two_factor_enabled ${TIMES}`),
  session: table('operator_sessions', `id ip_address user_agent expires_at ${TIMES}`, {
    ...OF_USER,
    token: 'token_hash',
  }),
  // The identity provider's tokens are not stored, because nothing here calls it again.
  account: table('operator_accounts', `id provider_id account_id password ${TIMES}`, OF_USER),
  verification: table('sign_in_challenges', `id identifier value expires_at ${TIMES}`),
  twoFactor: table('operator_second_factors', 'id secret verified locked_until', {
    ...OF_USER,
    backupCodes: 'recovery_codes',
    failedVerificationCount: 'failed_attempts',
  }),
}

const OPERATORS = { eq: '=', ne: '<>', lt: '<', lte: '<=', gt: '>', gte: '>=' } as const

function findSignIn(sql: Sql, model: SignInModel, find: SignInFind): Promise<SignInRecord[]> {
  const table = TABLES[model]
  const { text: where, params } = conditions(table, find.where)
  const order = find.newestFirst && 'createdAt' in table.columns ? 'created_at DESC, id DESC' : 'id'
  const text = `SELECT ${fields(table)} FROM ${table.name} ${where} ORDER BY ${order} LIMIT :limit`
  return sql.all(text, { ...params, limit: find.limit })
}

async function createSignIn(sql: Sql, model: SignInModel, record: SignInRecord): Promise<SignInRecord> {
  const table = TABLES[model]
  const values = storedRecord(table, record)
  const columns = Object.keys(values)
  const text = `INSERT INTO ${table.name} (${columns.join(', ')})
    VALUES (${columns.map((column) => `:${column}`).join(', ')}) RETURNING ${fields(table)}`
  const row = await sql.get<SignInRecord>(text, values)
  if (row === null) throw new Error('The inserted row was not returned')
  return row
}

async function updateSignIn(
  sql: Sql,
  model: SignInModel,
  where: SignInCondition[],
  set: SignInRecord,
  increment: Record<string, number>,
): Promise<SignInRecord[]> {
  const table = TABLES[model]
  const { text: condition, params } = conditions(table, where)
  const sets = storedRecord(table, set)
  const sums = storedRecord(table, increment)
  const changes = [
    ...Object.keys(sets).map((column) => `${column} = :${column}`),
    ...Object.keys(sums).map((column) => `${column} = COALESCE(${column}, 0) + :${column}`),
  ]
  if (changes.length === 0) return sql.all(`SELECT ${fields(table)} FROM ${table.name} ${condition}`, params)
  const text = `UPDATE ${table.name} SET ${changes.join(', ')} ${condition} RETURNING ${fields(table)}`
  return sql.all(text, { ...sets, ...sums, ...params })
}

/** `one`: at most one record, which only one caller gets. */
async function deleteSignIn(sql: Sql, model: SignInModel, where: SignInCondition[], one: boolean) {
  const table = TABLES[model]
  const { text: condition, params } = conditions(table, where)
  const chosen = one ? `WHERE id = (SELECT id FROM ${table.name} ${condition} ORDER BY id LIMIT 1)` : condition
  const rows = await sql.all<SignInRecord>(`DELETE FROM ${table.name} ${chosen} RETURNING ${fields(table)}`, params)
  // Invalidates the session caches of all nodes.
  if (model === 'session' && rows.length > 0) await growRevision(sql)
  return rows
}

function fields({ columns }: Table): string {
  return Object.entries(columns)
    .map(([field, column]) => (field === column ? column : `${column} AS "${field}"`))
    .join(', ')
}

/** Converts the members of a record to columns. */
function storedRecord({ columns }: Table, record: SignInRecord): SignInRecord {
  const givenColumns = Object.entries(columns).filter(([field]) => Object.hasOwn(record, field))
  return Object.fromEntries(givenColumns.map(([field, column]) => [column, record[field] ?? null]))
}

/** All conditions must hold. The library's other operators are refused earlier. */
function conditions({ columns }: Table, where: SignInCondition[]): SqlFragment {
  const params: Record<string, SqlValue | readonly string[]> = {}
  const parts = where.map(({ field, operator, value }, index) => {
    const column = Object.hasOwn(columns, field) ? columns[field] : undefined
    if (column === undefined) throw new Error(`Unknown field ${field}`)
    const isList = operator === 'in' || Array.isArray(value)
    if (isList && (!Array.isArray(value) || value.length === 0)) return '1 = 0'
    if (value === null) return `${column} IS ${operator === 'ne' ? 'NOT ' : ''}NULL`
    params[`where${index}`] = value
    return isList ? `${column} IN (:where${index})` : `${column} ${OPERATORS[operator]} :where${index}`
  })
  return { text: parts.length > 0 ? `WHERE ${parts.join(' AND ')}` : '', params }
}

export const sessionsActs = {
  ...read({ findSession, listSessions, readPassword }),
  ...write({ endSessions, setPassword, useCode, removeSecondFactor, deleteExpiredSignIns }),
}

async function findSession(sql: Sql, tokenHash: string): Promise<SessionRow | null> {
  const text = `SELECT s.id AS "sessionId", s.expires_at AS "expiresAt", ${OPERATOR}
    FROM operator_sessions s JOIN operators o ON o.id = s.operator_id WHERE s.token_hash = :tokenHash
      AND NOT ${isDeactivated('o.id')}`
  const sessionRow = await sql.get<OperatorRow & Pick<SessionRow, 'sessionId' | 'expiresAt'>>(text, { tokenHash })
  if (sessionRow === null) return null
  const { sessionId, expiresAt, ...operator } = sessionRow
  const roles = await rolesOf(sql, operator.id)
  return { id: tokenHash, hash: tokenHash, sessionId, expiresAt, revokedAt: null, operator, ...roles }
}

function listSessions(sql: Sql, operatorId: string, now: number): Promise<SessionListRow[]> {
  const text = `SELECT ${selectList('id created_at expires_at last_used_at ip_address user_agent')}
    FROM operator_sessions WHERE operator_id = :operatorId AND expires_at > :now ORDER BY id DESC LIMIT 1000`
  return sql.all(text, { operatorId, now })
}

async function endSessions(
  sql: Sql,
  operatorId: string,
  which: { id: string } | { exceptId: string | null },
  audit: AuditEntry[],
): Promise<number> {
  const [is, id] = 'id' in which ? ['=', which.id] : ['<>', which.exceptId ?? '']
  const of = { operatorId, id }
  const ended = await sql.run(`DELETE FROM operator_sessions WHERE operator_id = :operatorId AND id ${is} :id`, of)
  await sql.run(`DELETE FROM notified_browsers WHERE operator_id = :operatorId AND session_id ${is} :id`, of)
  if (ended === 0) return 0
  await auditControl(sql, audit)
  return ended
}

async function readPassword(sql: Sql, operatorId: string): Promise<string | null> {
  const text = `SELECT password FROM operator_accounts WHERE operator_id = :operatorId AND provider_id = 'credential'`
  return (await sql.get<{ password: string | null }>(text, { operatorId }))?.password ?? null
}

async function setPassword(
  sql: Sql,
  operatorId: string,
  hash: string,
  now: number,
  keptSessionId: string,
  audit: AuditEntry[],
): Promise<void> {
  const text = `UPDATE operator_accounts SET password = :hash, updated_at = :now
    WHERE operator_id = :operatorId AND provider_id = 'credential'`
  await sql.run(text, { hash, now, operatorId })
  // A sign-in that waits for its second factor began with a credential that may have ended since.
  await sql.run('DELETE FROM sign_in_challenges WHERE value = :operatorId', { operatorId })
  await endSessions(sql, operatorId, { exceptId: keptSessionId }, [])
  await insertAudit(sql, audit)
}

/** Longer than the validity of a code, which is from one interval early to one late. */
const CODE_MS = 2 * 60_000

/** Records that an authenticator code was used to sign in. False: it was already used within its validity. */
async function useCode(sql: Sql, operatorId: string, code: string, now: number): Promise<boolean> {
  const key = textKey(`${operatorId} ${code}`)
  await sql.run('DELETE FROM sign_in_challenges WHERE id = :key AND expires_at <= :now', { key, now })
  const text = `INSERT INTO sign_in_challenges (id, identifier, value, created_at, updated_at, expires_at)
    VALUES (:key, :key, 'used code', :now, :now, :until) ON CONFLICT (id) DO NOTHING`
  return (await sql.run(text, { key, now, until: now + CODE_MS })) === 1
}

async function removeSecondFactor(sql: Sql, operatorId: string, now: number, audit: AuditEntry[]): Promise<void> {
  await sql.run('DELETE FROM operator_second_factors WHERE operator_id = :operatorId', { operatorId })
  const text = 'UPDATE operators SET two_factor_enabled = 0, updated_at = :now WHERE id = :operatorId'
  await sql.run(text, { now, operatorId })
  await auditControl(sql, audit)
}

async function deleteExpiredSignIns(sql: Sql, now: number): Promise<number> {
  await sql.run('DELETE FROM slack_links WHERE code_expires_at <= :now', { now })
  const unused = now - LIMITS.notifiedBrowserMs
  await sql.run('DELETE FROM notified_browsers WHERE opened_at <= :unused', { unused })
  const sessions = await sql.run('DELETE FROM operator_sessions WHERE expires_at <= :now', { now })
  return sessions + (await sql.run('DELETE FROM sign_in_challenges WHERE expires_at <= :now', { now }))
}
