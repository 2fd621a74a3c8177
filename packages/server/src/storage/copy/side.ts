/** One of the two stores of a copy, as the copying sees it. */
import type { CopiedTable, Engine } from './tables.ts'

export type Value = string | number | null
export type Row = Record<string, Value>

/** Smallest and largest seq of the events of a run. */
export interface SeqSpan {
  min: number
  max: number
}

/** What a target keeps of a copy into it. */
export interface CopyState {
  /** Which store is copied. */
  source: string
  startedAt: number
  finishedAt: number | null
  /** Rows of the source by table, counted at the start. */
  expected: Record<string, number>
  progress: Record<string, TableProgress>
}

export interface TableProgress {
  rows: number
  /** Where the walk over the source stands; null: at its start. */
  after: Value[] | null
  done: boolean
  /** How the seqs of events are numbered anew. */
  numbering: Numbering | null
}

export interface Numbering {
  next: number
  /** The run that the last row belongs to, and what is added to its seqs. */
  run: string | null
  offset: number
}

export interface Side {
  readonly engine: Engine
  /** For people. */
  readonly place: string
  /** Names with the types of the engine, in no order. */
  columns(table: string): Promise<Map<string, string>>
  count(table: string): Promise<number>
  /** The next rows of the walk. */
  read(table: CopiedTable, columns: readonly string[], after: Value[] | null, limit: number): Promise<Row[]>
  /** By internal id of the run, given with its environment; runs without events are missing. */
  seqSpans(runs: ReadonlyMap<string, string>): Promise<Map<string, SeqSpan>>
  close(): Promise<void>
}

export interface Source extends Side {
  /** The same for the same store wherever it lies, and for no other. */
  identity(): Promise<string>
  /** Throws a StoreRefused where somebody may have written meanwhile. */
  checkUnused(): Promise<void>
}

export interface Target extends Side {
  /** Null: nothing was ever copied into it. */
  state(): Promise<CopyState | null>
  /** Marks the store, so that no server opens it before the end. */
  begin(state: CopyState): Promise<void>
  /** Writes rows and the state after them in one transaction. */
  write(table: string, columns: readonly string[], rows: readonly Row[], state: CopyState): Promise<void>
  /** Takes the mark away, durably. */
  finish(state: CopyState): Promise<void>
}

/** The table where a target keeps the state; the same text for both engines. */
export const COPIES = `CREATE TABLE IF NOT EXISTS copies (
  id integer PRIMARY KEY CHECK (id = 1),
  state text NOT NULL
)`
