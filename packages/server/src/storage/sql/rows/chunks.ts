/** Lists of values for `IN`, always of one length, so that a statement has one text and is prepared once. */
const SIZE = 50

export const PLACES = Array.from({ length: SIZE }, () => '?').join(', ')

/** Runs a statement with such a list for all values, chunk by chunk. */
export async function inChunks<Row>(
  values: string[],
  query: (chunk: string[]) => Promise<Row[]>,
  filler?: string,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const chunk of chunksOf([...new Set(values)], filler)) rows.push(...(await query(chunk)))
  return rows
}

/** The last chunk is padded with the filler, or with its first value. */
export function chunksOf(values: string[], filler?: string): string[][] {
  const chunks: string[][] = []
  for (let start = 0; start < values.length; start += SIZE) {
    const chunk = values.slice(start, start + SIZE)
    chunks.push([...chunk, ...Array.from({ length: SIZE - chunk.length }, () => filler ?? chunk[0] ?? '')])
  }
  return chunks
}
