import type { ClientBase } from 'pg'
import type { Sql, SqlValue } from '../sql/sql.ts'
import { portableStatement } from './statement.ts'

/** The portable adapter over one connection inside a transaction. */
export function postgresSql(client: ClientBase): Sql {
  const query = (text: string, params: readonly SqlValue[]) =>
    client.query<Record<string, unknown>>({ ...portableStatement(text), values: [...params] })
  return {
    dialect: 'postgres',
    all: async <Row>(text: string, params: readonly SqlValue[] = []) => (await query(text, params)).rows as Row[],
    get: async <Row>(text: string, params: readonly SqlValue[] = []) =>
      ((await query(text, params)).rows[0] as Row | undefined) ?? null,
    run: async (text, params = []) => (await query(text, params)).rowCount ?? 0,
  }
}
