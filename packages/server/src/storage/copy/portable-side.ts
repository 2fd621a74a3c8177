import { hash } from 'node:crypto'
import { COPYING, COPYING_VERSION } from '../sql/engine/migrations.ts'
import { insertRows } from '../sql/engine/insert-rows.ts'
import type { Sql } from '../sql/engine/sql.ts'
import { walkOf } from '../engine/tables.ts'
import type { CopyState, Row, Side, Source, Target } from './side.ts'

export function readsOf(
  sql: Sql,
  selected: (table: string, column: string) => string = (_, column) => column,
): Pick<Source, 'identity' | 'count' | 'read'> {
  return {
    async identity() {
      const rows = await sql.all<{ name: string; value: string }>('SELECT name, value FROM secrets ORDER BY name')
      return hash('sha256', JSON.stringify(rows.map(({ name, value }) => [name, value])))
    },
    async count(table) {
      const row = await sql.get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)
      return row?.count ?? 0
    },
    async read(table, columns, after, limit) {
      const walk = walkOf(table, sql.dialect)
      const wanted = [...new Set([...columns, ...walk])].map((column) => selected(table.name, column))
      const from = after === null ? '' : `WHERE (${walk.join(', ')}) > (:after)`
      const text = `SELECT ${wanted.join(', ')} FROM ${table.name} ${from} ORDER BY ${walk.join(', ')} LIMIT :limit`
      return sql.all<Row>(text, { after: after ?? undefined, limit })
    },
  }
}

const COPIES = `CREATE TABLE IF NOT EXISTS copies (
  id integer PRIMARY KEY CHECK (id = 1),
  state text NOT NULL
)`

export function writesOf(
  sql: Sql,
  columnsOf: Side['columns'],
  transaction: (work: () => Promise<void>) => Promise<void>,
  insert: (table: string, columns: readonly string[], rows: readonly Row[]) => Promise<void>,
): Pick<Target, 'state' | 'begin' | 'write' | 'finish'> {
  const keep = (state: CopyState) =>
    insertRows(sql, 'copies', [{ id: 1, state }], 'ON CONFLICT (id) DO UPDATE SET state = excluded.state')
  return {
    async state() {
      if ((await columnsOf('copies')).size === 0) return null
      const row = await sql.get<{ state: string }>('SELECT state FROM copies')
      return row && (JSON.parse(row.state) as CopyState)
    },
    begin: (first) =>
      transaction(async () => {
        await sql.run(COPIES)
        const copying = { version: COPYING_VERSION, name: COPYING, sha256: '', appliedAt: first.startedAt }
        await insertRows(sql, 'migrations', [copying])
        // The row that every new store contains.
        await sql.run('DELETE FROM control')
        await keep(first)
      }),
    write: (table, columns, rows, progress) =>
      transaction(async () => {
        await insert(table, columns, rows)
        await keep(progress)
      }),
    finish: (last) =>
      transaction(async () => {
        await keep(last)
        await sql.run('DELETE FROM migrations WHERE name = :name', { name: COPYING })
      }),
  }
}
