/**
 * Loops that the service sees in the tool calls of a run (storage/issues/issues.ts), whichever client recorded it. Each is an issue
 * record of the service, which a review decides like a report of a client, so both have one issue.
 */
import { loopTool, type NewLoop } from '../../issues/issues.ts'
import { write, type Sql } from '../engine/sql.ts'
import { erasedKey, isErased } from '../data/erased-keys.ts'
import { serviceRecordKey } from '../engine/keys.ts'
import { holdFailures } from '../engine/revision.ts'
import { insertRows } from '../engine/rows.ts'
import { enqueueWork } from '../engine/work.ts'
import { UNLESS_KNOWN } from './issue-records.ts'

export const loopsActs = write({ recordLoops })

const DETECTION_TYPE = 'LOOP_DETECTED'

async function recordLoops(sql: Sql, environmentId: string, runId: string, loops: readonly NewLoop[], now: number) {
  await holdFailures(sql, environmentId, [runId])
  const reported = await reportedTools(sql, environmentId, runId)
  for (const { id, toolName, clientId, sessionId, agentId, time } of loops) {
    if (reported.has(toolName)) continue
    // No event has such an id, because ids have no NUL.
    const recordKey = serviceRecordKey(runId, `\0loop ${toolName}`)
    const named = { runId, sessionId, agentId, clientId, time }
    if (await isErased(sql, environmentId, erasedKey('record', recordKey), named)) continue
    const detected = { runId, sessionId, agentId, detectionType: DETECTION_TYPE, evidence: '{}' }
    const payload = JSON.stringify({ toolName, reasonCode: 'same_input' })
    const times = { detectedAt: time, seenAt: Math.min(time, now), receivedAt: now, statusAt: now }
    const names = { id, recordKey, sdkInstanceId: clientId, clientRecordId: `loop ${toolName}` }
    const kinds = { origin: 'SERVICE', recordKind: 'DETECTION', status: 'RECEIVED' }
    const record = { environmentId, ...names, ...kinds, ...detected, payload, ...times }
    if ((await insertRows(sql, 'issue_records', [record], UNLESS_KNOWN)) === 0) continue
    await enqueueWork(sql, [{ kind: 'review_issue_record', environmentId, subjectId: id, dueAt: now }])
  }
}

/** A loop counts once. */
async function reportedTools(sql: Sql, environmentId: string, runId: string): Promise<ReadonlySet<unknown>> {
  const ofRun = sql.dialect === 'sqlite' ? 'run_id = :runId' : 'md5(run_id) = md5(:runId)'
  const text = `SELECT payload FROM issue_records WHERE environment_id = :env AND ${ofRun}
    AND detection_type = '${DETECTION_TYPE}' AND record_kind = 'DETECTION' AND origin = 'CLIENT' LIMIT ${REPORTS_READ}`
  const rows = await sql.all<{ payload: string }>(text, { env: environmentId, runId })
  const tools = rows.map(({ payload }) => (JSON.parse(payload) as { toolName?: unknown }).toolName)
  return new Set(tools.map((tool) => (typeof tool === 'string' ? loopTool(tool) : tool)))
}

const REPORTS_READ = 1_000
