import { hash } from 'node:crypto'
import { COPYING, COPYING_VERSION } from '../sql/migrations.ts'
import type { Sql } from '../sql/sql.ts'
import { walkOf } from '../tables.ts'
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
      const from = after === null ? '' : `WHERE (${walk.join(', ')}) > (${walk.map(() => '?').join(', ')})`
      const text = `SELECT ${wanted.join(', ')} FROM ${table.name} ${from} ORDER BY ${walk.join(', ')} LIMIT ?`
      return sql.all<Row>(text, [...(after ?? []), limit])
    },
  }
}

const COPIES = `CREATE TABLE IF NOT EXISTS copies (
  id integer PRIMARY KEY CHECK (id = 1),
  state text NOT NULL
)`

/** `begin`, `keep` and `end` run in a transaction of the caller. */
export function copyStateOf(sql: Sql, columns: Side['columns']) {
  const keep = (state: CopyState): Promise<unknown> =>
    sql.run('INSERT INTO copies (id, state) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state', [
      JSON.stringify(state),
    ])
  const state: Target['state'] = async () => {
    if ((await columns('copies')).size === 0) return null
    const row = await sql.get<{ state: string }>('SELECT state FROM copies')
    return row && (JSON.parse(row.state) as CopyState)
  }
  async function begin(first: CopyState): Promise<void> {
    await sql.run(COPIES)
    await sql.run("INSERT INTO migrations (version, name, sha256, applied_at) VALUES (?, ?, '', ?)", [
      COPYING_VERSION,
      COPYING,
      first.startedAt,
    ])
    // The row that every new store contains.
    await sql.run('DELETE FROM control')
    await keep(first)
  }
  async function end(last: CopyState): Promise<void> {
    await keep(last)
    await sql.run('DELETE FROM migrations WHERE name = ?', [COPYING])
  }
  return { state, keep, begin, end }
}
