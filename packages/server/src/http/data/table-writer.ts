import { zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { ParquetColumn, ParquetType, ParquetValue } from './parquet-columns.ts'

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number]

/** Bounded, because readers keep a row group in memory. */
const GROUP_ROWS = 50_000
const GROUP_CHARS = 4 * 1_048_576

export function createTableWriter<Row>(columns: readonly ParquetColumn<Row>[]) {
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
  // Readers take the converted type alone for the time of any zone, and count other days in each.
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
