/** A store with rows in every table. The rows are made from the schema, so that new tables are filled automatically. */
import { randomUUID } from 'node:crypto'
import path from 'node:path'
import Database from 'better-sqlite3'
import pg from 'pg'
import { COPIED_TABLES } from '../../src/storage/engine/tables.ts'

/** Rows of each table; the table `control` has one. */
const ROWS = 3
const TEXTS = [
  'plain',
  'ä ß 😀 \u2028 "quoted" \\u0000 \\ \' $1 ?',
  '{"a": 1.0, "é": [1e999, "\\ud83d\\ude00"], "a": 2}',
]

interface Column {
  table: string
  name: string
  type: string
}

/** In the embedded store, events name their environment by number. */
const NEW_NUMBER = 'INSERT INTO environment_numbers (environment_id) VALUES (?)'
const NUMBER = '(SELECT number FROM environment_numbers WHERE environment_id = ?)'

type Rows = Map<string, Record<string, Value | null>[]>
type Value = string | number | Buffer

/** Fills the store of a directory with values that also fit the types and references of a database. */
export async function fillEveryTable(directory: string, databaseUrl: string): Promise<void> {
  const client = new pg.Client(databaseUrl)
  await client.connect()
  const columns = (await client.query<Column>(COLUMNS)).rows
  const references = (await client.query<Reference>(REFERENCES)).rows
  await client.end()
  const db = new Database(path.join(directory, 'tacho.db'))
  db.pragma('foreign_keys = OFF')
  db.exec('DELETE FROM control')
  const filled: Rows = new Map()
  for (const { name: table } of COPIED_TABLES) {
    const rows = Array.from({ length: table === 'control' ? 1 : ROWS }, (_, index) =>
      rowOf(
        columns.filter((column) => column.table === table),
        references,
        filled,
        index,
      ),
    )
    filled.set(table, rows)
    for (const row of rows) {
      const names = Object.keys(row).filter((name) => !(table === 'runs' && name === 'last_seq'))
      const places = names.map((name) => (table === 'events' && name === 'environment_id' ? NUMBER : '?'))
      if (table === 'events') db.prepare(NEW_NUMBER).run(row['environment_id'])
      db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${places.join(', ')})`).run(
        names.map((name) => row[name]),
      )
    }
  }
  db.close()
}

function rowOf(columns: Column[], references: Reference[], filled: Rows, index: number) {
  return Object.fromEntries(
    columns.map(({ table, name, type }) => {
      const reference = references.find((one) => one.table === table && one.column === name)
      const referred = reference && filled.get(reference.to)?.[index]?.[reference.toColumn]
      return [name, referred ?? valueOf(table, name, type, index)]
    }),
  )
}

function valueOf(table: string, name: string, type: string, index: number): Value {
  // Each event belongs to the run with the same number, and closed it.
  if (['seq', 'closing_seq', 'last_seq'].includes(name)) return 10 * (ROWS - index)
  if (type === 'uuid') return randomUUID()
  if (type === 'bigint') return Number.MAX_SAFE_INTEGER - index
  if (type === 'integer' || type === 'smallint') return index + 1
  if (type === 'double precision') return index + 0.1
  const text = `${TEXTS[index]} ${table}.${name}`
  return type === 'bytea' ? Buffer.concat([Buffer.from([0, 255, 128]), Buffer.from(text)]) : text
}

const COLUMNS = `SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, NULL) AS type
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = 'tacho'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''`

interface Reference {
  table: string
  column: string
  to: string
  toColumn: string
}

const REFERENCES = `SELECT f.relname AS table, fa.attname AS column, t.relname AS to, ta.attname AS "toColumn"
  FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS u (mine, theirs)
  JOIN pg_class f ON f.oid = k.conrelid JOIN pg_class t ON t.oid = k.confrelid
  JOIN pg_attribute fa ON fa.attrelid = f.oid AND fa.attnum = u.mine
  JOIN pg_attribute ta ON ta.attrelid = t.oid AND ta.attnum = u.theirs
  WHERE k.contype = 'f' AND f.relnamespace = 'tacho'::regnamespace`
