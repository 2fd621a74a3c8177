/** Splits a byte stream into lines. Holds at most one line, of bounded size. */

export type Line =
  | { number: number; bytes: Buffer }
  /** Too long: skipped without keeping its content. */
  | { number: number; tooLong: true }

const NEWLINE = 0x0a
const RETURN = 0x0d

/** Lines without line ends (`\n` or `\r\n`), numbered from 1. The last line needs no end. */
export async function* lines(stream: AsyncIterable<Uint8Array>, longest: number): AsyncGenerator<Line> {
  let number = 1
  let parts: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    let start = 0
    while (start < chunk.length) {
      const end = chunk.indexOf(NEWLINE, start)
      const part = chunk.subarray(start, end === -1 ? chunk.length : end)
      size += part.length
      if (size <= longest) parts.push(part)
      else parts = []
      if (end === -1) break
      yield finished(number, parts, size, longest)
      number += 1
      parts = []
      size = 0
      start = end + 1
    }
  }
  if (size > 0) yield finished(number, parts, size, longest)
}

function finished(number: number, parts: Uint8Array[], size: number, longest: number): Line {
  if (size > longest) return { number, tooLong: true }
  const bytes = Buffer.concat(parts)
  return { number, bytes: bytes.at(-1) === RETURN ? bytes.subarray(0, -1) : bytes }
}
