import { firstRows } from '../sql/rows/first-rows.ts'
import type { Sql, SqlValue } from '../sql/sql.ts'
import type { Database, Statement } from './database.ts'

/**
 * The portable adapter over one connection. Its promises are already resolved, because SQLite answers synchronously.
 */
export function sqliteSql(db: Database, onDamage: Sql['onDamage'] = () => undefined): Sql {
  const prepare = statements(db)
  return {
    dialect: 'sqlite',
    onDamage,
    all: async <Row>(text: string, params: readonly SqlValue[] = []) => prepare(text).all(...params) as Row[],
    get: async <Row>(text: string, params: readonly SqlValue[] = []) =>
      (prepare(text).get(...params) as Row | undefined) ?? null,
    page: async <Row extends object>(text: string, params: readonly SqlValue[], limit: number) =>
      firstRows(prepare(`${text} LIMIT ?`).iterate(...params, limit + 1) as Iterable<Row>, limit),
    run: async (text, params = []) => prepare(text).run(...params).changes,
  }
}

/** Prepares each text once. The program has a bounded number. */
function statements(db: Database) {
  const prepared = new Map<string, Statement<unknown[]>>()
  return (text: string) => {
    let statement = prepared.get(text)
    if (statement === undefined) {
      statement = db.prepare(text)
      prepared.set(text, statement)
    }
    return statement
  }
}
