import type { QueuedEvent } from './queue.ts'

/** The body of a batch. Once for each recorder, an event says what was dropped before. */
export function bodyOf(batch: readonly QueuedEvent[]): string {
  const told = new Set()
  const texts = batch.map(({ json, recorder }) => {
    if (!recorder?.dropped || told.has(recorder)) return json
    told.add(recorder)
    return `${json.slice(0, -1)},"dropped":${JSON.stringify(recorder.dropped)}}`
  })
  return `[${texts.join(',')}]`
}
