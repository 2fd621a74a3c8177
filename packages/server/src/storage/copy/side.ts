import { hash } from 'node:crypto'
import { type NamedTable, type Engine, scanKeyOf } from '../engine/tables.ts'
import { StoreRefused } from '../engine/store.ts'
import { COPYING, COPYING_VERSION } from '../sql/engine/migrations.ts'
import { insertRows } from '../sql/engine/rows.ts'
import type { Sql } from '../sql/engine/sql.ts'

export type Value = string | number | Buffer | null
export type Row = Record<string, Value>

export interface SeqSpan {
  min: number
  max: number
}

export interface CopyState {
  source: string
  startedAt: number
  finishedAt: number | null
  expected: Record<string, number>
  progress: Record<string, TableProgress>
}

export interface TableProgress {
  rows: number
  after: Value[] | null
  done: boolean
  numbering: Numbering | null
}

interface Numbering {
  next: number
  /** `run`: the run of the last row. `offset`: what is added to the seqs of that run. */
  run: number | null
  offset: number
}

export interface Side {
  readonly engine: Engine
  readonly place: string
  columns(table: string): Promise<Map<string, string>>
  count(table: string): Promise<number>
  read(table: NamedTable, columns: readonly string[], after: Value[] | null, limit: number): Promise<Row[]>
  /** Spans by the run's number, of runs given with their environment. Runs without events are missing. */
  seqSpans(runs: ReadonlyMap<number, string>): Promise<Map<number, SeqSpan>>
  close(): Promise<void>
}

export interface Source extends Side {
  /** Unique, and independent of where the store is. */
  identity(): Promise<string>
  checkUnused(): Promise<void>
}

export interface Target extends Side {
  state(): Promise<CopyState | null>
  /** Marks the store, so that no server opens it before the copy ends. */
  begin(state: CopyState): Promise<void>
  /** Writes rows in one transaction. */
  write(table: string, columns: readonly string[], rows: readonly Row[], state: CopyState): Promise<void>
  finish(state: CopyState): Promise<void>
}

/** Independent of row order and engine. */

type Checksum = ReturnType<typeof newChecksum>

const MASK = (1n << 64n) - 1n

/** The exact value as text, the same on every engine. */
export function valueText(value: Value | undefined): string | null {
  if (value === null || value === undefined) return null
  return Buffer.isBuffer(value) ? value.toString('base64') : String(value)
}

export function newChecksum() {
  return { rows: 0, sum: 0n }
}

/** Values are hashed as text, so an integer has one hash in any column type. */
export function addRows(checksum: Checksum, columns: readonly string[], rows: readonly Row[]): void {
  for (const row of rows) {
    const values = columns.map((column) => valueText(row[column]))
    checksum.sum = (checksum.sum + hash('sha256', JSON.stringify(values), 'buffer').readBigUInt64BE()) & MASK
  }
  checksum.rows += rows.length
}

export function checksumText({ sum }: Checksum): string {
  return sum.toString(16).padStart(16, '0')
}

/**
 * The embedded engine numbers all events of the store in the order of arrival; PostgreSQL numbers those of each run. So
 * PostgreSQL can keep the seqs. In the embedded engine, each run's events get a separate range, with the same order and
 * gaps. The result depends only on the source, so it can be verified.
 */

export function firstNumbering(): Numbering {
  return { next: 1, run: null, offset: 0 }
}

/** The rows arrive run by run. */
export async function renumberEvents(rows: Row[], source: Side, before: Numbering): Promise<Numbering> {
  const runs = new Map(rows.map((row) => [Number(row['run']), String(row['environment_id'])]))
  if (before.run !== null) runs.delete(before.run)
  const spans = await source.seqSpans(runs)
  let { next, run, offset } = before
  for (const row of rows) {
    const of = Number(row['run'])
    if (of !== run) {
      const { min, max } = spans.get(of) ?? { min: 1, max: 0 }
      run = of
      offset = next - min
      next += max - min + 1
    }
    row['seq'] = Number(row['seq']) + offset
  }
  if (next > Number.MAX_SAFE_INTEGER) throw new Error('The event numbers are too large for the embedded engine')
  return { next, run, offset }
}

/** PostgreSQL stores seqs in 32 bits, the embedded engine in 53. */
const LARGEST_SEQ = 2 ** 31 - 1

export function checkSeqs(rows: readonly Row[], target: Side): void {
  if (target.engine !== 'postgres' || rows.every((row) => Number(row['seq']) <= LARGEST_SEQ)) return
  throw new StoreRefused(`The store numbers its events beyond ${LARGEST_SEQ}, which ${target.place} cannot hold.`)
}

export async function renumberRuns(rows: Row[], source: Side, target: Side): Promise<void> {
  const ids = new Map(rows.map((row) => [Number(row['number']), String(row['environment_id'])]))
  const from = await source.seqSpans(ids)
  if (source.engine === 'sqlite' && target.engine === 'postgres') {
    for (const row of rows) row['last_seq'] = from.get(Number(row['number']))?.max ?? 0
  }
  if (source.engine === 'postgres' && target.engine === 'sqlite') {
    const to = await target.seqSpans(ids)
    for (const row of rows) {
      const [old, now] = [from.get(Number(row['number'])), to.get(Number(row['number']))]
      if (row['closing_seq'] !== null && old && now) row['closing_seq'] = Number(row['closing_seq']) + now.min - old.min
    }
  }
}

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
      const key = scanKeyOf(table, sql.dialect)
      const wanted = [...new Set([...columns, ...key])].map((column) => selected(table.name, column))
      const from = after === null ? '' : `WHERE (${key.join(', ')}) > (:after)`
      const text = `SELECT ${wanted.join(', ')} FROM ${table.name} ${from} ORDER BY ${key.join(', ')} LIMIT :limit`
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
