/** A search in one run needs no index: its events are read by time and compared, a bounded number for a page. */
import { containedIn, soughtText } from '../../runs/search-text.ts'
import type { RunSearch, RunSearchRead } from '../../runs/search.ts'
import { look } from '../engine/act.ts'
import { listEvents } from '../record/events.ts'
import type { Sql } from '../engine/sql.ts'

// Not one transaction: what is stored never changes, and on PostgreSQL other work goes on between two pieces.
export const runSearchActs = look({ searchRun })

async function searchRun(sql: Sql, environmentId: string, run: string, { text, limit, after, bounds }: RunSearch) {
  const sought = soughtText(text)
  const rows: RunSearchRead['rows'] = []
  let [examined, bytes] = [0, 0]
  let place = after
  for (;;) {
    const most = Math.min(bounds.piece.limit, bounds.events - examined)
    const piece = await listEvents(sql, environmentId, run, { ...bounds.piece, limit: most, after: place })
    for (const { payload, ...event } of piece.rows) {
      examined++
      bytes += event.payloadBytes
      place = { time: event.time, seq: event.seq }
      const snippet = containedIn({ ...event, payload }, sought)
      if (snippet !== null) rows.push({ event, snippet })
      if (rows.length === limit || examined === bounds.events || bytes >= bounds.bytes) {
        const isLast = !piece.more && event.seq === piece.rows.at(-1)?.seq
        return { rows, examined, lookedTo: isLast ? null : place }
      }
    }
    if (!piece.more) return { rows, examined, lookedTo: null }
  }
}
