import type { NamedTable, Engine } from '../engine/tables.ts'

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

export interface Numbering {
  next: number
  /** `run`: of the last row. `offset`: added to its seqs. */
  run: number | null
  offset: number
}

export interface Side {
  readonly engine: Engine
  readonly place: string
  columns(table: string): Promise<Map<string, string>>
  count(table: string): Promise<number>
  read(table: NamedTable, columns: readonly string[], after: Value[] | null, limit: number): Promise<Row[]>
  /** By the run's number, given with its environment. Runs without events are missing. */
  seqSpans(runs: ReadonlyMap<number, string>): Promise<Map<number, SeqSpan>>
  close(): Promise<void>
}

export interface Source extends Side {
  /** Unique, and the same wherever the store lies. */
  identity(): Promise<string>
  checkUnused(): Promise<void>
}

export interface Target extends Side {
  state(): Promise<CopyState | null>
  /** Marks the store, so that no server opens it before the copy ends. */
  begin(state: CopyState): Promise<void>
  /** In one transaction. */
  write(table: string, columns: readonly string[], rows: readonly Row[], state: CopyState): Promise<void>
  finish(state: CopyState): Promise<void>
}
