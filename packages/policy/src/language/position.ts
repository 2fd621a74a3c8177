/**
 * A position in the source of a condition. `offset` and `endOffset` count UTF-16 units from 0, like editors and
 * `String.slice`. `line` and `column` count from 1; columns also count UTF-16 units.
 */
export type Position = { offset: number; line: number; column: number; endOffset?: number }

export type Fault = { message: string; position: Position }

/** Faults in source order. */
export function inOrder(faults: readonly Fault[]): Fault[] {
  return faults.toSorted((a, b) => a.position.offset - b.position.offset)
}

export function positionAt(source: string, offset: number, endOffset?: number): Position {
  const start = Math.max(0, Math.min(offset, source.length))
  let line = 1
  let lineStart = 0
  for (const { 0: newline, index } of source.matchAll(/\r\n|\r|\n/g)) {
    const next = index + newline.length
    if (next > start) break
    line++
    lineStart = next
  }
  const position = { offset: start, line, column: start - lineStart + 1 }
  if (endOffset === undefined || endOffset <= start) return position
  return { ...position, endOffset: Math.min(endOffset, source.length) }
}
