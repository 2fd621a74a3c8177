/** Parsing and compressing would delay every request. */
import { zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { OperatorRun } from '@tacho/contract/runs/operator-run.ts'
import { answerCalls } from '../../threads/threads.ts'
import {
  EVENT_COLUMNS,
  readEvent,
  RUN_COLUMNS,
  type ParquetEvent,
  type ParquetColumn,
  type ParquetType,
  type ParquetValue,
} from './parquet-columns.ts'

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

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number]

/** Bounded, because readers keep a row group in memory. */
const GROUP_ROWS = 50_000
const GROUP_CHARS = 4 * 1_048_576

function createTableWriter<Row>(columns: readonly ParquetColumn<Row>[]) {
  const bytes = new ByteWriter()
  const schema = [{ name: 'root', num_children: columns.length }, ...columns.flatMap(elementsOf)]
  const compressors = { ZSTD: (data: Uint8Array) => zstdCompressSync(data) }
  const file = new ParquetWriter({ writer: bytes, schema, codec: 'ZSTD', compressors, createdBy: 'tacho' })
  let group: ParquetValue[][] = columns.map(() => [])
  let [rowCount, chars] = [0, 0]

  function writeGroup(): void {
    if (rowCount === 0) return
    const columnData = columns.map(({ name, type }, index) => {
      const values = group[index] ?? []
      const data = type === 'integer' || type === 'time' ? values.map(toBigInt) : values
      return { name, data, offsetIndex: false, statistics: type !== 'texts' }
    })
    void file.write({ columnData, rowGroupSize: rowCount })
    group = columns.map(() => [])
    rowCount = chars = 0
  }

  function taken(): Uint8Array<ArrayBuffer> {
    const written = bytes.getBytes().slice()
    // The writer continues at its offset in the file.
    bytes.index = 0
    return written
  }

  return {
    add(rows: readonly Row[]): Uint8Array<ArrayBuffer> {
      for (const row of rows) {
        for (const [index, { valueOf }] of columns.entries()) {
          const value = valueOf(row)
          group[index]?.push(value)
          if (typeof value === 'string') chars += value.length
        }
        rowCount += 1
        if (rowCount >= GROUP_ROWS || chars >= GROUP_CHARS) writeGroup()
      }
      return taken()
    },
    end(): Uint8Array<ArrayBuffer> {
      writeGroup()
      // Both are synchronous with a writer in memory.
      void file.finish()
      return taken()
    },
  }
}

const toBigInt = (value: ParquetValue): bigint | null => (typeof value === 'number' ? BigInt(value) : null)

const TYPES: Readonly<Record<Exclude<ParquetType, 'texts'>, Omit<SchemaElement, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  // With the converted type alone, readers take the times for local ones, and count days differently in each zone.
  time: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  integer: { type: 'INT64' },
  number: { type: 'DOUBLE' },
  flag: { type: 'BOOLEAN' },
}

function elementsOf({ name, type }: { name: string; type: ParquetType }): SchemaElement[] {
  if (type !== 'texts') return [{ name, ...TYPES[type], repetition_type: 'OPTIONAL' }]
  return [
    { name, converted_type: 'LIST', repetition_type: 'OPTIONAL', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', ...TYPES.text, repetition_type: 'OPTIONAL' },
  ]
}
