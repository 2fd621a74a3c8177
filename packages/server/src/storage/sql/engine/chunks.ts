import type { NamedParams, Sql, SqlValue } from './sql.ts'

/** Lists of values for `IN` and `VALUES`, always of one length, so that a statement has one text and is prepared once. */
const SIZE = 50

export async function inChunks<Value, Row>(
  values: readonly Value[],
  query: (chunk: Value[]) => Promise<Row[]>,
  filler?: Value,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const chunk of chunksOf([...new Set(values)], filler)) rows.push(...(await query(chunk)))
  return rows
}

/** As `sql.all`, for a statement with one list, such as `IN (:ids)`, of any length. */
export function allIn<Row>(sql: Sql, text: string, params: NamedParams): Promise<Row[]> {
  const [name = '', values] = Object.entries(params).find(([, value]) => Array.isArray(value)) ?? []
  return inChunks(values as readonly SqlValue[], (chunk) => sql.all<Row>(text, { ...params, [name]: chunk }))
}

/** The last chunk is padded with the filler, or with its first value. */
export function chunksOf<Value>(values: readonly Value[], filler?: Value): Value[][] {
  const chunks: Value[][] = []
  for (let start = 0; start < values.length; start += SIZE) {
    const chunk = values.slice(start, start + SIZE)
    chunks.push(Array.from({ length: SIZE }, (_, index) => chunk[index] ?? filler ?? chunk[0]!))
  }
  return chunks
}
