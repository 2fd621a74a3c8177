import { firstRows } from '../engine/page.ts'
import { positional, type NamedParams, type Sql } from '../sql/engine/sql.ts'
import type { Database, Statement } from './database.ts'

/** Promises are already resolved, because SQLite answers synchronously. */
export function sqliteSql(db: Database, onDamage: Sql['onDamage'] = () => undefined): Sql {
  const prepared = statements(db)
  const prepare = (text: string, params: NamedParams = {}) => {
    const [statement, values] = positional(text, params)
    return { statement: prepared(statement), values }
  }
  return {
    dialect: 'sqlite',
    onDamage,
    async all<Row>(text: string, params?: NamedParams) {
      const { statement, values } = prepare(text, params)
      return statement.all(...values) as Row[]
    },
    async get<Row>(text: string, params?: NamedParams) {
      const { statement, values } = prepare(text, params)
      return (statement.get(...values) as Row | undefined) ?? null
    },
    async page<Row extends object>(text: string, params: NamedParams, limit: number) {
      const { statement, values } = prepare(`${text} LIMIT :mostRows`, { ...params, mostRows: limit + 1 })
      return firstRows(statement.iterate(...values) as Iterable<Row>, limit)
    },
    async run(text, params) {
      const { statement, values } = prepare(text, params)
      return statement.run(...values).changes
    },
  }
}

function statements(db: Database) {
  // Unbounded, because the program has a bounded number of texts.
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
