import type { QueuedItem } from './queue.ts'

/** Corrects the time in an event's fields. By the address of a service whose clock is behind this machine's. */
export const corrections = new Map<string, (fields: string) => string>()

/** The batch in pieces. The first event of each recorder in it reports the drops so far. */
export function piecesOf(batch: readonly QueuedItem[], baseUrl: string): string[] {
  const corrected = corrections.get(baseUrl)
  const toldReasons = new Set()
  const pieces: string[] = []
  for (const { written, recorder } of batch) {
    const [fields = '', ...payload] = written
    pieces.push(pieces.length === 0 ? '[' : ',', corrected?.(fields) ?? fields, ...payload)
    if (recorder?.dropped && !toldReasons.has(recorder)) {
      toldReasons.add(recorder)
      pieces.push(`,"dropped":${JSON.stringify(recorder.dropped)}`)
    }
    pieces.push('}')
  }
  pieces.push(']')
  return pieces
}
