/** Names come from the tables below, never from a request. */
import { read, write } from '../engine/act.ts'
import { memberOf } from '../../data/exported-tables.ts'
import type { SignInCondition, SignInFind, SignInModel, SignInRecord } from '../../people/sign-in.ts'
import type { TableName } from '../../engine/tables.ts'
import { growRevision } from '../engine/revision.ts'
import type { Part, Sql, SqlValue } from '../engine/sql.ts'

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
  const own = columns.split(' ').map((column) => [memberOf(column), column])
  return { name, columns: { ...Object.fromEntries(own), ...renamed } }
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
  const values = kept(table, record)
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
  const sets = kept(table, set)
  const sums = kept(table, increment)
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

/** By column. */
function kept({ columns }: Table, record: SignInRecord): SignInRecord {
  const given = Object.entries(columns).filter(([field]) => Object.hasOwn(record, field))
  return Object.fromEntries(given.map(([field, column]) => [column, record[field] ?? null]))
}

/** All must hold. The library's other operators are refused before they reach this. */
function conditions({ columns }: Table, where: SignInCondition[]): Part {
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
