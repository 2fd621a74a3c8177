/** How long people waited for the agents: for the outcome of a run, and for the decision of an approval. Exact, from the rows. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { LatencyRow, Waiting } from '../../runs/usage.ts'
import { agentKey } from '../engine/keys.ts'
import { allIn } from '../engine/rows.ts'
import type { Sql } from '../engine/sql.ts'

interface Wait {
  key: string
  ms: number
}

/** Returns the waits of an agent by its internal id. A request names its agent by the external id, or its run does. */
export async function readWaits(sql: Sql, environmentId: string, { from, to }: { from: number; to: number }) {
  const params = { env: environmentId, from, to }
  const runs = await sql.all<Wait>(
    `SELECT agent_id AS key, ended_at - started_at AS ms FROM runs
      WHERE environment_id = :env AND started_at >= :from AND started_at < :to AND ended_at IS NOT NULL AND rule_closed_at IS NULL
      ORDER BY started_at DESC, id DESC LIMIT ${LIMITS.usageWaits}`,
    params,
  )
  const decided = await sql.all<Wait>(
    `SELECT agent_id AS key, decided_at - created_at AS ms FROM approvals
      WHERE environment_id = :env AND created_at >= :from AND created_at < :to AND status IN ('APPROVED', 'REJECTED')
        AND agent_id IS NOT NULL AND decided_at IS NOT NULL AND imported_at IS NULL
      ORDER BY created_at DESC, id DESC LIMIT ${LIMITS.usageWaits}`,
    params,
  )
  const named = Map.groupBy(decided, ({ key }) => key)
  const byKey = new Map([...named].map(([externalId, waits]) => [agentKey(externalId, ''), waits]))
  const agents = byKey.size === 0 ? [] : await agentsOf(sql, environmentId, [...byKey.keys()])
  const approvals = new Map(agents.map(({ id, key }) => [id, byKey.get(key) ?? []]))
  const ofRuns = Map.groupBy(runs, ({ key }) => key)
  return (agentId: string): Waiting => ({
    runs: percentilesOf(ofRuns.get(agentId) ?? []),
    approvals: percentilesOf(approvals.get(agentId) ?? []),
  })
}

function agentsOf(sql: Sql, environmentId: string, keys: string[]) {
  const text = 'SELECT id, agent_key AS key FROM agents WHERE environment_id = :env AND agent_key IN (:keys)'
  return allIn<{ id: string; key: string }>(sql, text, { env: environmentId, keys })
}

/** The smallest values that at least half, and at least 95 percent, of the waits do not exceed. */
function percentilesOf(waits: readonly Wait[]): LatencyRow | null {
  const sorted = waits.map(({ ms }) => ms).toSorted((a, b) => a - b)
  const at = (percent: number) => sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? 0
  return sorted.length === 0 ? null : { calls: sorted.length, p50: at(50), p95: at(95), former: 0 }
}
