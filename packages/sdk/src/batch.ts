import type { QueuedItem } from './queue.ts'

/** In pieces. Once for each recorder, an event says what was dropped before. */
export function piecesOf(batch: readonly QueuedItem[]): string[] {
  const told = new Set()
  const pieces: string[] = []
  for (const { written, recorder } of batch) {
    pieces.push(pieces.length === 0 ? '[' : ',', ...written)
    if (recorder?.dropped && !told.has(recorder)) {
      told.add(recorder)
      pieces.push(`,"dropped":${JSON.stringify(recorder.dropped)}`)
    }
    pieces.push('}')
  }
  pieces.push(']')
  return pieces
}
