/** Names come from the tables below, never from a request. */
import { read, write } from '../act.ts'
import { memberOf } from '../../exported-tables.ts'
import type { SignInCondition, SignInFind, SignInModel, SignInRecord } from '../../sign-in.ts'
import type { TableName } from '../../tables.ts'
import { growRevision } from '../revision.ts'
import type { Sql, SqlValue } from '../sql.ts'

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
  const [where, params] = conditions(table, find.where)
  const order = find.newestFirst && 'createdAt' in table.columns ? 'ORDER BY created_at DESC, id DESC' : 'ORDER BY id'
  const text = `SELECT ${fields(table)} FROM ${table.name} ${where} ${order} LIMIT ?`
  return sql.all(text, [...params, find.limit])
}

async function createSignIn(sql: Sql, model: SignInModel, record: SignInRecord): Promise<SignInRecord> {
  const table = TABLES[model]
  const given = kept(table, record)
  const names = given.map(([column]) => column).join(', ')
  const places = given.map(() => '?').join(', ')
  const text = `INSERT INTO ${table.name} (${names}) VALUES (${places}) RETURNING ${fields(table)}`
  const row = await sql.get<SignInRecord>(
    text,
    given.map(([, value]) => value),
  )
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
  const [condition, params] = conditions(table, where)
  const sets = kept(table, set)
  const sums = kept(table, increment)
  const changes = [
    ...sets.map(([column]) => `${column} = ?`),
    ...sums.map(([column]) => `${column} = COALESCE(${column}, 0) + ?`),
  ]
  if (changes.length === 0) return sql.all(`SELECT ${fields(table)} FROM ${table.name} ${condition}`, params)
  const values = [...sets, ...sums].map(([, value]) => value)
  const text = `UPDATE ${table.name} SET ${changes.join(', ')} ${condition} RETURNING ${fields(table)}`
  return sql.all(text, [...values, ...params])
}

/** `one`: at most one record, which only one caller gets. */
async function deleteSignIn(sql: Sql, model: SignInModel, where: SignInCondition[], one: boolean) {
  const table = TABLES[model]
  const [condition, params] = conditions(table, where)
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

function kept({ columns }: Table, record: Record<string, SqlValue>): [column: string, value: SqlValue][] {
  return Object.entries(record).flatMap(([field, value]) => {
    const column = Object.hasOwn(columns, field) ? columns[field] : undefined
    return column === undefined ? [] : [[column, value] as [string, SqlValue]]
  })
}

/** All must hold. The library's other operators are refused before they reach this. */
function conditions({ columns }: Table, where: SignInCondition[]): [text: string, params: SqlValue[]] {
  const parts: string[] = []
  const params: SqlValue[] = []
  for (const { field, operator, value } of where) {
    const column = Object.hasOwn(columns, field) ? columns[field] : undefined
    if (column === undefined) throw new Error(`Unknown field ${field}`)
    if (operator === 'in' || Array.isArray(value)) {
      const values = Array.isArray(value) ? (value as readonly string[]) : []
      parts.push(values.length === 0 ? '1 = 0' : `${column} IN (${values.map(() => '?').join(', ')})`)
      params.push(...values)
    } else if (value === null) {
      parts.push(`${column} IS ${operator === 'ne' ? 'NOT ' : ''}NULL`)
    } else {
      parts.push(`${column} ${OPERATORS[operator]} ?`)
      params.push(value as SqlValue)
    }
  }
  return [parts.length > 0 ? `WHERE ${parts.join(' AND ')}` : '', params]
}
