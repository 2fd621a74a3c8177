/** Payloads are read here and go no further. */
import { read } from '../engine/act.ts'
import type { ToolEventRow } from '../../approvals/approvals.ts'
import type { EventPage } from '../../record/events.ts'
import { ofRun, WITH_RUN, AFTER } from '../record/events.ts'
import type { Sql } from '../engine/sql.ts'
import { readPayloadPage } from '../record/payloads.ts'
import { mapPage } from '../../engine/page.ts'

export const toolEventsActs = read({ listToolEvents })

type Read = Pick<ToolEventRow, 'seq' | 'eventId' | 'kind' | 'label' | 'time' | 'receivedAt'> & { payload: string }

async function listToolEvents(sql: Sql, environmentId: string, run: string, page: EventPage) {
  const after = page.after ? ` AND ${AFTER}` : ''
  const from = `FROM events e WHERE ${ofRun(sql)}${after}
    AND event_type IN ('TOOL_CALL', 'POLICY_DECISION') ORDER BY e.time, e.seq LIMIT :limit`
  const columns = 'seq, event_id AS "eventId", event_type AS kind, label, time, received_at AS "receivedAt"'
  const params = { env: environmentId, run, time: page.after?.time, seq: page.after?.seq }
  return mapPage(await readPayloadPage<Read>(sql, { start: WITH_RUN, columns, from, params }, page), toToolEvent)
}

function toToolEvent({ payload, ...row }: Read): ToolEventRow {
  const said = JSON.parse(payload) as Record<string, unknown>
  const text = (name: string) => (typeof said[name] === 'string' ? said[name] : null)
  return {
    ...row,
    toolName: text('toolName'),
    inputHash: text('inputHash')?.toLowerCase() ?? null,
    approvalId: text('approvalId')?.toLowerCase() ?? null,
    action: row.kind === 'POLICY_DECISION' ? text('action') : null,
    outcome: outcomeOf(said),
  }
}

/** A null output is an output. A call that was cancelled or did not report may have worked. */
function outcomeOf(said: Record<string, unknown>): ToolEventRow['outcome'] {
  const { outcome, error } = said
  if (outcome === 'failed' || outcome === 'never_ran') return 'error'
  if (outcome === 'cancelled' || outcome === 'did_not_report') return 'unknown'
  if (outcome !== 'returned' && error !== undefined && error !== null && error !== false) return 'error'
  return 'output' in said ? 'output' : 'unknown'
}
