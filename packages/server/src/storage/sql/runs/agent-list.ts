/**
 *   shown --archived--> archived --restored, or a run starts--> shown
 *
 * Recording never reads or writes this: an archived agent counts as shown once a run of it started later. Lists and
 * changes skip an agent without a stored run: its names may be those of an erased run. `findRequesterNames` does not.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AgentChange, AgentFilter, AgentRow } from '../../runs/runs.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type { PageById } from '../../engine/page.ts'
import { NIL_UUID } from '../../engine/uuid.ts'
import { lookup, read, write, containsFolded, folded, type Sql } from '../engine/sql.ts'
import { insertAudit } from '../people/audit.ts'
import { keepRemovalsWaiting } from '../data/erased-keys.ts'
import { agentKey } from '../engine/keys.ts'
import { allIn } from '../engine/rows.ts'

export const agentListActs = {
  ...lookup({ findRequesterNames }),
  ...read({ listAgents }),
  ...write({ changeAgent }),
}

const LAST_RUN = 'SELECT MAX(r.started_at) FROM runs r WHERE r.environment_id = :env AND r.agent_id = a.id'
const AGENTS = `SELECT id, "externalId", "reportedName", "displayName", "lastRunAt",
    CASE WHEN "lastRunAt" > archived_at THEN NULL ELSE archived_at END AS "archivedAt"
  FROM (SELECT a.id, a.external_id AS "externalId", a.name AS "reportedName", a.display_name AS "displayName",
    a.archived_at, (${LAST_RUN}) AS "lastRunAt" FROM agents a WHERE a.environment_id = :env`

const HAS_RUN = '"lastRunAt" IS NOT NULL'

/**
 * Names of the agents that asked, by approval id. A request that names no agent has the agent of its run; a run that
 * has not begun has none.
 */
export async function findRequesterNames(
  sql: Sql,
  environmentId: string,
  requests: readonly Requester[],
): Promise<[approvalId: string, name: string][]> {
  const name = 'COALESCE(a.display_name, a.name) AS name'
  const ofAgents = `SELECT external_id AS known, ${name} FROM agents a WHERE environment_id = :env AND agent_key IN (:keys)`
  const ofRuns = `SELECT r.run_id AS known, ${name} FROM runs r
    JOIN agents a ON a.environment_id = r.environment_id AND a.id = r.agent_id
    WHERE r.environment_id = :env AND r.run_id IN (:keys)`
  const keys = requests.flatMap(({ agentId }) => (agentId === null ? [] : agentKey(agentId, '')))
  const runIds = requests.flatMap(({ agentId, runId }) => (agentId === null ? (runId ?? []) : []))
  const find = async (text: string, of: string[]) =>
    new Map(
      (await allIn<Named>(sql, text, { env: environmentId, keys: of })).map(({ known, name: agentName }) => [
        known,
        agentName,
      ]),
    )
  const [agents, runs] = [await find(ofAgents, keys), await find(ofRuns, runIds)]
  return requests.flatMap(({ id, agentId, runId }): [string, string][] => {
    const ownerName = agentId === null ? runs.get(runId ?? '') : agents.get(agentId)
    return ownerName === undefined ? [] : [[id, ownerName]]
  })
}

interface Named {
  known: string
  name: string
}

export interface Requester {
  id: string
  agentId: string | null
  runId: string | null
}

function listAgents(sql: Sql, environmentId: string, page: PageById, { withArchived, search }: AgentFilter) {
  const shown = withArchived ? '' : ' AND (archived_at IS NULL OR "lastRunAt" > archived_at)'
  const agentSearch = search === undefined ? null : namedLike(sql, search)
  const text = `${AGENTS} AND a.id > :after${agentSearch?.text ?? ''}) named WHERE ${HAS_RUN}${shown} ORDER BY id`
  return sql.page<AgentRow>(
    text,
    { env: environmentId, after: page.after ?? NIL_UUID, ...agentSearch?.params },
    page.limit,
  )
}

function namedLike(sql: Sql, search: string) {
  const columns = ['a.name', "COALESCE(a.display_name, '')", "COALESCE(a.external_id, '')"]
  const named = columns.map((column) => containsFolded(sql, column, ':search'))
  const newest = 'SELECT id FROM agents WHERE environment_id = :env ORDER BY id DESC LIMIT 1 OFFSET :past'
  const text = ` AND a.id >= COALESCE((${newest}), :first) AND (${named.join(' OR ')})`
  return { text, params: { search: folded(search), past: LIMITS.searchedAgentNames - 1, first: NIL_UUID } }
}

/** `no_id`: the agent has no external id, so its name identifies it. */
async function changeAgent(
  sql: Sql,
  environmentId: string,
  id: string,
  change: AgentChange,
  audit: AuditEntry[],
): Promise<AgentRow | 'no_id' | null> {
  if (sql.dialect === 'postgres') await lockAgent(sql, environmentId, id)
  const of = { env: environmentId, id }
  const agent = await sql.get<AgentRow>(`${AGENTS} AND a.id = :id) named WHERE ${HAS_RUN}`, of)
  if (agent === null) return null
  if ('displayName' in change && agent.externalId === null) return 'no_id'
  const changed = 'displayName' in change ? renamed(agent, change.displayName) : archived(agent, change.archivedAt)
  const { displayName, archivedAt } = changed
  if (displayName === agent.displayName && (archivedAt === null) === (agent.archivedAt === null)) return agent
  const text = `UPDATE agents SET display_name = :displayName, archived_at = :archivedAt
    WHERE environment_id = :env AND id = :id`
  await sql.run(text, { ...of, displayName, archivedAt })
  const name = agent.displayName ?? agent.reportedName
  const named = ({ detail, ...entry }: AuditEntry) => {
    return { ...entry, detail: JSON.stringify({ name, ...(JSON.parse(detail) as object) }) }
  }
  await insertAudit(sql, audit.map(named))
  return changed
}

/**
 * Locks the agent until the transaction ends. Otherwise a concurrent change is lost, and an erasure misses a name in
 * the audit log.
 */
async function lockAgent(sql: Sql, environmentId: string, id: string): Promise<void> {
  await keepRemovalsWaiting(sql, environmentId)
  await sql.get('SELECT id FROM agents WHERE environment_id = :env AND id = :id FOR UPDATE', { env: environmentId, id })
}

/** Archives an agent, at the earliest at its newest run: if that run's clock is ahead, the agent would reappear at once. */
function archived(agent: AgentRow, at: number | null): AgentRow {
  return { ...agent, archivedAt: at === null ? null : Math.max(at, agent.lastRunAt) }
}

function renamed(agent: AgentRow, name: string): AgentRow {
  return { ...agent, displayName: name === agent.reportedName ? null : name }
}
