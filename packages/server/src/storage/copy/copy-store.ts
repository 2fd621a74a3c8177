/**
 *   (empty target) --begin--> copying, table by table --all rows--> verifying --equal--> finished
 *                                ^--interrupted, and run again--'        '--not equal--> copying, for people to inspect
 *
 * No server opens the target during a copy. Each transaction writes rows and the position in the source after them, so
 * an interrupted copy continues there. Running a finished copy again only verifies it.
 */
import { StoreRefused } from '../engine/store.ts'
import {
  addRows,
  checksumText,
  newChecksum,
  checkSeqs,
  firstNumbering,
  renumberEvents,
  renumberRuns,
  type CopyState,
  type Row,
  type Source,
  type TableProgress,
  type Target,
  type Value,
} from './side.ts'
import { COPIED_TABLES, scanKeyOf, type NamedTable } from '../engine/tables.ts'

export interface CopyWatch {
  onProgress?: (phase: 'copy' | 'verify', rows: number, total: number, table: string) => void
  now?: () => number
  rowsPerBatch?: number
  /** The source has another version's schema: copy the tables and columns that both have. */
  otherBuild?: boolean
}

export interface CopyReport {
  from: string
  to: string
  outcome: 'copied' | 'resumed' | 'already_copied'
  rows: number
  tables: { name: string; rows: number; checksum: string }[]
  /** Columns of the source that do not exist in this version. */
  left: string[]
}

/** Bounded, because a batch of the largest payloads is in memory twice. */
const ROWS_PER_BATCH = 500
const CURSORS = 'cursors'

export async function copyStore(source: Source, target: Target, watch: CopyWatch = {}): Promise<CopyReport> {
  const { now = Date.now, onProgress = () => undefined, rowsPerBatch = ROWS_PER_BATCH, otherBuild = false } = watch
  const { columns, left } = await columnsOf(source, target, otherBuild)
  const expected = await countAll(source, columns)
  const targetState = await target.state()
  const identity = await source.identity()
  const state: CopyState = targetState ?? {
    source: identity,
    startedAt: now(),
    finishedAt: null,
    expected,
    progress: {},
  }
  if (targetState === null) {
    await refuseFull(target)
    await target.begin(state)
  } else {
    refuseOther(state, identity, source, target, expected)
  }
  const total = Object.values(expected).reduce((sum, count) => sum + count, 0)
  const context: Context = { source, target, state, rowsPerBatch, columns }
  if (state.finishedAt === null) {
    let rows = 0
    for (const table of COPIED_TABLES) {
      await copyTable(context, table, (done) => onProgress('copy', rows + done, total, table.name))
      rows += progressOf(state, table).rows
    }
  }
  const tables = await verify(context, (rows, table) => onProgress('verify', rows, total, table))
  await source.checkUnused()
  const outcome = state.finishedAt !== null ? 'already_copied' : targetState === null ? 'copied' : 'resumed'
  if (state.finishedAt === null) {
    state.finishedAt = now()
    await target.finish(state)
  }
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  return { from: source.place, to: target.place, outcome, rows, tables, left }
}

interface Context {
  source: Source
  target: Target
  state: CopyState
  rowsPerBatch: number
  columns: Map<string, string[]>
}

function progressOf({ progress }: CopyState, { name }: NamedTable): TableProgress {
  return (progress[name] ??= { rows: 0, after: null, done: false, numbering: null })
}

async function countAll(source: Source, columns: Map<string, string[]>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { name } of COPIED_TABLES) counts[name] = columns.get(name)?.length === 0 ? 0 : await source.count(name)
  return counts
}

async function refuseFull(target: Target): Promise<void> {
  for (const { name } of COPIED_TABLES) {
    // Every new store has one row in `control`.
    if ((await target.count(name)) > (name === 'control' ? 1 : 0)) {
      throw new StoreRefused(`${capital(target.place)} is not empty: it has rows in ${name}. Copy into an empty store.`)
    }
  }
}

function refuseOther(
  state: CopyState,
  identity: string,
  source: Source,
  target: Target,
  expected: CopyState['expected'],
): void {
  if (state.source !== identity) {
    throw new StoreRefused(`${capital(target.place)} holds a copy of another store. Copy into an empty store.`)
  }
  const grown = COPIED_TABLES.find(({ name }) => state.expected[name] !== expected[name])
  if (grown === undefined) return
  const begun = state.finishedAt === null ? 'began' : 'ended'
  throw new StoreRefused(
    `${capital(source.place)} has changed since the copy ${begun}: ${grown.name} has ${expected[grown.name]} rows and had ${state.expected[grown.name]}. Empty the target and copy again.`,
  )
}

async function columnsOf(source: Source, target: Target, otherBuild: boolean) {
  const columns = new Map<string, string[]>()
  const left: string[] = []
  for (const { name, only = {} } of COPIED_TABLES) {
    const known = [...(only.sqlite ?? []), ...(only.postgres ?? [])]
    const [from, to] = [await source.columns(name), await target.columns(name)]
    const differing = [...from.keys(), ...to.keys()].filter(
      (column) => !(from.has(column) && to.has(column)) && !known.includes(column),
    )
    left.push(...differing.filter((column) => from.has(column)).map((column) => `${name}.${column}`))
    if ((differing.length > 0 && !otherBuild) || to.size === 0)
      throw new Error(`${name} differs in ${differing.join(', ')}`)
    // The copy computes columns that only the target has, and skips what each embedded store makes for itself.
    columns.set(name, [...to.keys()].filter((column) => from.has(column) || only.postgres?.includes(column)).toSorted())
  }
  return { columns, left }
}

async function copyTable(context: Context, table: NamedTable, onRows: (rows: number) => void): Promise<void> {
  const { target, state } = context
  const progress = progressOf(state, table)
  const columns = context.columns.get(table.name) ?? []
  if (progress.done) return
  // A table that does not exist in the source's version.
  if (columns.length === 0) return
  for await (const { rows, after, numbering } of rowsOf(context, table, progress)) {
    Object.assign(progress, { rows: progress.rows + rows.length, after, numbering })
    await target.write(table.name, columns, rows, state)
    onRows(progress.rows)
  }
  progress.done = true
  await target.write(table.name, columns, [], state)
}

/** Converts rows to the target's form. Reads ahead while the previous rows are written. */
async function* rowsOf({ source, target, columns, rowsPerBatch }: Context, table: NamedTable, from: TableProgress) {
  const order = scanKeyOf(table, source.engine)
  const wanted = (columns.get(table.name) ?? []).filter(
    (column) => source.engine === target.engine || !table.only?.[target.engine]?.includes(column),
  )
  const isRenumbered = source.engine === 'postgres' && target.engine === 'sqlite'
  let numbering = table.name === 'events' && isRenumbered ? (from.numbering ?? firstNumbering()) : null
  let { after } = from
  let ahead = source.read(table, wanted, after, rowsPerBatch)
  for (;;) {
    const rows = await ahead
    const last = rows.at(-1)
    if (last === undefined) return
    after = order.map((column): Value => last[column] ?? null)
    const isLast = rows.length < rowsPerBatch
    if (table.name === 'events') checkSeqs(rows, target)
    if (numbering !== null) numbering = await renumberEvents(rows, source, numbering)
    if (table.name === 'runs') await renumberRuns(rows, source, target)
    if (!isLast) {
      ahead = source.read(table, wanted, after, rowsPerBatch)
      // The code that awaits the read gets its error. If writing fails first, no code awaits it.
      ahead.catch(() => undefined)
    }
    // Old cursors contain old seqs. Without their secret they are rejected instead of misread.
    const copiedRows = table.name === 'secrets' && isRenumbered ? rows.filter((row) => row['name'] !== CURSORS) : rows
    yield { rows: copiedRows, after, numbering }
    if (isLast) return
  }
}

async function verify(context: Context, onRows: (rows: number, table: string) => void): Promise<CopyReport['tables']> {
  const { target, rowsPerBatch } = context
  const report: CopyReport['tables'] = []
  const wrong: string[] = []
  let done = 0
  for (const table of COPIED_TABLES) {
    const columns = context.columns.get(table.name) ?? []
    if (columns.length === 0) continue
    const [from, to] = [newChecksum(), newChecksum()]
    const start = { rows: 0, after: null, done: false, numbering: null }
    for await (const { rows } of rowsOf(context, table, start)) {
      addRows(from, columns, rows)
      onRows(done + from.rows, table.name)
    }
    let after: Value[] | null = null
    for (;;) {
      const rows: Row[] = await target.read(table, columns, after, rowsPerBatch)
      addRows(to, columns, rows)
      const last = rows.at(-1)
      if (last === undefined) break
      after = scanKeyOf(table, target.engine).map((column): Value => last[column] ?? null)
    }
    done += from.rows
    report.push({ name: table.name, rows: to.rows, checksum: checksumText(to) })
    if (from.rows !== to.rows || from.sum !== to.sum) wrong.push(table.name)
  }
  if (wrong.length === 0) return report
  throw new StoreRefused(
    `The copy differs from its source in ${wrong.join(', ')}: one of the stores changed during the copy. Empty the target and copy again.`,
  )
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
