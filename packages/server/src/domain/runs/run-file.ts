/** Reads the timeline twice, first without payloads, because the tree and the list of omissions come first. */
import { barsOf, extentOf } from '@tacho/contract/runs/timeline.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { EventRowRead } from '../../storage/record/events.ts'
import type { Storage } from '../../storage/storage.ts'
import { pageEnd, pageStart, stepHtml, type RunFile, type Step } from './run-page.ts'

type Reads = Pick<Storage, 'listEventRows' | 'listEvents'>

const ROWS_PER_PAGE = 1_000
const PAYLOADS_PER_PAGE = 200
const PAYLOAD_PAGE_BYTES = 1_048_576
const PIECE_CHARS = 16_384

export async function* runFileText(storage: Reads, environmentId: string, file: RunFile): AsyncGenerator<string> {
  const rows = await readRows(storage, environmentId, file.run.id)
  const shown = file.hasPayloads ? rowsWithin(rows, LIMITS.runFilePayloadBytes) : 0
  const steps = stepsOf(rows)
  let piece = pageStart(file, { events: rows.length, payloads: shown })
  for await (const [index, payload] of payloadsOf(storage, environmentId, file.run.id, rows, shown)) {
    const step = steps[index]
    if (step !== undefined) piece += stepHtml(step, payload)
    if (piece.length < PIECE_CHARS) continue
    yield piece
    piece = ''
  }
  yield piece + pageEnd(file)
}

async function readRows(storage: Reads, environmentId: string, run: string): Promise<EventRowRead[]> {
  const rows: EventRowRead[] = []
  for (let more = true; more && rows.length < LIMITS.runFileEvents;) {
    const limit = Math.min(ROWS_PER_PAGE, LIMITS.runFileEvents - rows.length)
    const page = await storage.listEventRows(environmentId, run, { limit, order: 'time', after: placeOf(rows.at(-1)) })
    rows.push(...page.rows)
    more = page.more
  }
  return rows
}

const placeOf = (row: EventRowRead | undefined) => (row === undefined ? null : { time: row.time, seq: row.seq })

function rowsWithin(rows: readonly EventRowRead[], bytesMax: number): number {
  let bytes = 0
  const at = rows.findIndex(({ payloadBytes }) => (bytes += payloadBytes) > bytesMax)
  return at < 0 ? rows.length : at
}

function stepsOf(rows: readonly EventRowRead[]): Step[] {
  const drawn = rows.map((row) => ({
    ...row,
    latency: row.latencyMicros === null ? null : row.latencyMicros / 1_000,
  }))
  const drawnBars = barsOf(drawn)
  const { from, span } = extentOf(drawnBars)
  return drawn.map((row, index) => {
    const bar = drawnBars[index] ?? { from: row.time, to: row.time, depth: 0 }
    return {
      row,
      depth: bar.depth,
      latency: row.latency,
      left: (bar.from - from) / span,
      width: (bar.to - bar.from) / span,
      since: row.time - from,
    }
  })
}

/** Payloads of the first `shown` rows, without rows that were deleted meanwhile; null for the others. */
async function* payloadsOf(
  storage: Reads,
  environmentId: string,
  run: string,
  rows: readonly EventRowRead[],
  shown: number,
): AsyncGenerator<[number, string | null]> {
  const placeIn = new Map(rows.slice(0, shown).map(({ seq }, index) => [seq, index]))
  let after: ReturnType<typeof placeOf> = null
  for (let [left, more] = [shown, true]; left > 0 && more;) {
    const page = await storage.listEvents(environmentId, run, {
      limit: PAYLOADS_PER_PAGE,
      pageBytes: PAYLOAD_PAGE_BYTES,
      after,
    })
    for (const row of page.rows) {
      const index = placeIn.get(row.seq)
      // An event that arrived after the start of the export is left out of the file.
      if (index === undefined) continue
      yield [index, row.payload]
      left = shown - index - 1
    }
    after = placeOf(page.rows.at(-1))
    more = page.more
  }
  for (let index = shown; index < rows.length; index++) yield [index, null]
}
