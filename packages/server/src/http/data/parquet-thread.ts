/** Parsing and compressing would delay every request. */
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { answerCalls } from '../../threads/called-thread.ts'
import { EVENT_COLUMNS, readEvent, RUN_COLUMNS, type ParquetEvent } from './parquet-columns.ts'
import { createTableWriter } from './table-writer.ts'

export type ParquetTable = 'events' | 'runs'
export type ParquetRows = readonly ParquetEvent[] | readonly OperatorRun[]

export interface ParquetTask {
  file: number
  table: ParquetTable
  rows: ParquetRows | 'end' | 'forget'
}

type Writer = ReturnType<typeof createTableWriter<never>>

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

answerCalls(perform, ({ buffer }) => [buffer])

function perform({ file, table, rows }: ParquetTask): Uint8Array<ArrayBuffer> {
  if (rows === 'forget') {
    writers.delete(file)
    return new Uint8Array()
  }
  const writer = writerOf(file, table)
  return rows === 'end' ? writer.end() : writer.add(rows as readonly never[])
}
