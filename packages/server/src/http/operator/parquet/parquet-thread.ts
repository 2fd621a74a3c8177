/** The worker thread of parquet-files.ts: parsing and compressing would delay every request. */
import { parentPort } from 'node:worker_threads'
import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { EVENT_COLUMNS, readEvent, RUN_COLUMNS, type ParquetEvent } from './columns.ts'
import { createTableWriter } from './table-writer.ts'

export type ParquetTable = 'events' | 'runs'
export type ParquetRows = readonly ParquetEvent[] | readonly OperatorRun[]

/** Rows of a file; null ends it. Without an id: forget the file. */
export type ParquetTask =
  | { id: number; file: number; table: ParquetTable; rows: ParquetRows | null }
  | { id: null; file: number }
export type ParquetAnswer = { id: number; bytes: Uint8Array<ArrayBuffer> } | { id: number; error: Error }

interface Writer {
  add(rows: readonly never[]): Uint8Array<ArrayBuffer>
  end(): Uint8Array<ArrayBuffer>
}

const writers = new Map<number, Writer>()

function writerOf(file: number, table: ParquetTable): Writer {
  const writer = writers.get(file) ?? newWriter(table)
  writers.set(file, writer)
  return writer
}

function newWriter(table: ParquetTable): Writer {
  if (table === 'runs') return createTableWriter(RUN_COLUMNS) as Writer
  const writer = createTableWriter(EVENT_COLUMNS)
  return { add: (rows: readonly ParquetEvent[]) => writer.add(rows.map(readEvent)), end: writer.end }
}

parentPort?.on('message', (task: ParquetTask) => {
  if (task.id === null) return void writers.delete(task.file)
  const { id, file, table, rows } = task
  try {
    const writer = writerOf(file, table)
    const bytes = rows === null ? writer.end() : writer.add(rows as readonly never[])
    parentPort?.postMessage({ id, bytes } satisfies ParquetAnswer, [bytes.buffer])
  } catch (error) {
    // Other files of the thread go on.
    parentPort?.postMessage({ id, error: error as Error } satisfies ParquetAnswer)
  }
})
