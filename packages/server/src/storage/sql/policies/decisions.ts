/** Reads what is needed to derive a recorded decision again: its events, and the policy versions that it names. */
import type { DecidedRun, DecisionRow, PolicyVersionRow } from '../../policies/policies.ts'
import type { TimeSpan } from '../../issues/issues.ts'
import { read, type Sql } from '../engine/sql.ts'
import { chunksOf } from '../engine/rows.ts'
import { takeSum, withSum } from '../engine/row-sums.ts'
import { withEnvelope } from '../record/envelopes.ts'
import { ofRun, WITH_RUN } from '../record/events.ts'
import { readPayloadPage } from '../record/payloads.ts'
import { findByUuid } from '../runs/runs.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { CALL_COLUMNS } from './simulations.ts'

export const decisionsActs = read({ readDecisions, findDeployedVersions })

/** An allowed call starts right after its decision, in the same turn. */
const STARTS_WITHIN_MS = 1_000
/** Large enough for a long run between two decisions of a batch. */
const ROWS_LOOKED_AT = 500
const PAGE = { limit: 400, pageBytes: 2_097_152 }

/**
 * The decisions of a run in this time, and the starts of their calls. A start has the input of a call that ran at once.
 */
async function readDecisions(
  sql: Sql,
  environmentId: string,
  uuid: string,
  span: TimeSpan,
): Promise<DecidedRun | null> {
  const run = await findByUuid(sql, environmentId, uuid)
  if (run === null) return null
  const looked = `SELECT e.* FROM events e WHERE ${ofRun(sql)} AND e.time >= :from AND e.time <= :until
    ORDER BY e.time, e.seq LIMIT ${ROWS_LOOKED_AT}`
  const from = `FROM (${looked}) e ${withEnvelope(sql)} JOIN runs r ON r.environment_id = :env AND r.number = e.run
    WHERE e.event_type = 'POLICY_DECISION' AND e.time <= :to OR e.event_type = 'TOOL_START'
    ORDER BY e.time, e.seq LIMIT :limit`
  const columns = `${CALL_COLUMNS}, e.event_type AS "eventType", v.client_id AS "clientId"`
  const params = { env: environmentId, run: uuid, from: span.from, to: span.to, until: span.to + STARTS_WITHIN_MS }
  const page = await readPayloadPage<DecisionRow>(sql, { start: WITH_RUN, columns, from, params }, PAGE)
  return { run, events: page.rows }
}

/**
 * Returns those of these versions that were in force in the environment. Imported versions do not count: they prove nothing about
 * this environment.
 */
async function findDeployedVersions(
  sql: Sql,
  environmentId: string,
  asked: [policyId: string, number: number][],
): Promise<PolicyVersionRow[]> {
  const workspaceId = (await findEnvironment(sql, environmentId))?.workspaceId ?? ''
  const text = `SELECT ${withSum('policy_versions', 'v.')} FROM (VALUES :asked) AS asked JOIN policy_versions v
      ON v.workspace_id = :workspaceId AND v.policy_id = asked.column1 AND v.number = CAST(asked.column2 AS BIGINT)
    WHERE v.imported_at IS NULL AND EXISTS (SELECT 1 FROM deployment_changes c WHERE c.environment_id = :env
      AND c.kind = 'policy' AND c.item_id = v.policy_id AND c.to_version = v.number)`
  // Padded chunks return versions twice, so collect them in a map.
  const versions = new Map<string, PolicyVersionRow>()
  for (const chunk of chunksOf(asked)) {
    const rows = await sql.all<PolicyVersionRow>(text, { env: environmentId, workspaceId, asked: chunk })
    for (const row of rows) versions.set(row.policyId, row)
  }
  return [...versions.values()].filter((version) => takeSum(sql, 'policy_versions', version, environmentId))
}
