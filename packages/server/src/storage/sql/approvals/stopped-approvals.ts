/**
 * Requests in a stopped scope. Pending ones are rejected in the name of the operator who stopped it. One that was
 * approved before is returned as rejected while the stop is in effect (domain/approvals/approval.ts), so no call begins
 * under it.
 */
import { stopMessage } from '@tacho/contract/engine/words.ts'
import { entryBy, type AuditEntry } from '../../people/operators.ts'
import type { StopRow } from '../../policies/policies.ts'
import { NIL_UUID } from '../../engine/uuid.ts'
import { write, type Sql } from '../engine/sql.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { findStopsOver } from '../policies/stops.ts'
import { decideApprovals } from './approvals.ts'

export const stoppedApprovalsActs = write({ rejectStopped })

interface Pending {
  id: string
  runId: string | null
  sessionId: string | null
  agentId: string | null
  toolName: string
}

/** Examines up to `limit` requests after `after`, or the one with this id. Returns the last one examined. */
async function rejectStopped(
  sql: Sql,
  environmentId: string,
  {
    now,
    limit,
    after = NIL_UUID,
    id,
  }: { now: number; limit: number; after?: string | undefined; id?: string | undefined },
): Promise<{ rejected: number; last: string | null }> {
  const env = environmentId
  const which = id === undefined ? 'id > :id' : 'id = :id'
  const text = `SELECT id, run_id AS "runId", session_id AS "sessionId", agent_id AS "agentId", tool_name AS "toolName"
    FROM approvals WHERE environment_id = :env AND status = 'PENDING' AND imported_at IS NULL AND ${which} ORDER BY id LIMIT :limit`
  const pending = await sql.all<Pending>(text, { env, id: id ?? after, limit })
  let rejected = 0
  const byStop = new Map<string, { stop: StopRow; requests: Pending[] }>()
  const stops = await findStopsOver(sql, env, pending)
  for (const [at, request] of pending.entries()) {
    const stop = stops[at] ?? null
    if (stop === null) continue
    const { requests } = byStop.get(stop.id) ?? { requests: [] }
    byStop.set(stop.id, { stop, requests: [...requests, request] })
  }
  const workspaceId = (await findEnvironment(sql, env))?.workspaceId ?? null
  for (const { stop, requests } of byStop.values()) {
    const { stopperKind: deciderKind, stopperId: deciderId, stoppedBy: deciderName } = stop
    const decision = {
      status: 'REJECTED',
      reason: stopMessage(stop),
      deciderKind,
      deciderId,
      deciderName,
      via: null,
      now,
    } as const
    const audit = requests.map((request) => auditOf(stop, request, { workspaceId, now }))
    const decided = await decideApprovals(
      sql,
      env,
      requests.map((request) => request.id),
      decision,
      audit,
    )
    rejected += decided.filter(({ outcome }) => outcome === 'decided').length
  }
  return { rejected, last: pending.length < limit ? null : (pending.at(-1)?.id ?? null) }
}

function auditOf(
  { id, environmentId, stopperKind, stopperId, stoppedBy, reason }: StopRow,
  request: Pending,
  { workspaceId, now }: { workspaceId: string | null; now: number },
): AuditEntry {
  const { toolName, runId, agentId } = request
  const actor = { kind: stopperKind, id: stopperId, name: stoppedBy }
  const detail = { toolName, runId, agentId, stop: id, reason }
  const act = { action: 'approval.reject', targetKind: 'approval', targetId: request.id, detail }
  return entryBy(actor, { at: now, workspaceId, environmentId }, act, { id })
}
