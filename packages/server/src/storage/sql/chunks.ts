/** Lists of values for `IN`: always of one length, so that a statement has one text and is prepared once. */
const SIZE = 50

/** The placeholders of one chunk. */
export const PLACES = Array.from({ length: SIZE }, () => '?').join(', ')

/** The values in chunks; the last one is filled up with what it has already. */
export function chunksOf(values: string[]): string[][] {
  const chunks: string[][] = []
  for (let start = 0; start < values.length; start += SIZE) {
    const chunk = values.slice(start, start + SIZE)
    chunks.push([...chunk, ...Array.from({ length: SIZE - chunk.length }, () => chunk[0] ?? '')])
  }
  return chunks
}
