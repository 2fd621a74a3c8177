/** The worker thread of parquet-file.ts: parsing and compressing would delay every request. */
import { parentPort, workerData } from 'node:worker_threads'
import type { OperatorRun } from '@tacho/contract/operator/run.ts'
import { EVENT_COLUMNS, readEvent, RUN_COLUMNS, type ParquetEvent } from './columns.ts'
import { createTableWriter } from './table-writer.ts'

/** Rows to write; null ends the file. */
export type ParquetTask = { rows: readonly ParquetEvent[] | readonly OperatorRun[] | null }
export type ParquetTable = 'events' | 'runs'

interface Writer {
  add(rows: readonly never[]): Uint8Array<ArrayBuffer>
  end(): Uint8Array<ArrayBuffer>
}

function writerOf(table: ParquetTable): Writer {
  if (table === 'runs') return createTableWriter(RUN_COLUMNS) as Writer
  const writer = createTableWriter(EVENT_COLUMNS)
  return { add: (rows: readonly ParquetEvent[]) => writer.add(rows.map(readEvent)), end: writer.end }
}

const writer = writerOf(workerData as ParquetTable)

parentPort?.on('message', ({ rows }: ParquetTask) => {
  const bytes = rows === null ? writer.end() : writer.add(rows as readonly never[])
  parentPort?.postMessage(bytes, [bytes.buffer])
})
