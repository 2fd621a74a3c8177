/**
 * Agents that this process knows. An agent's id never changes; its name is the newest by event time over all nodes.
 *
 * On PostgreSQL an agent's row is hot, because every batch of a tenant may name it. So the row's time for an unchanged
 * name is updated only after it has moved by `refreshMs`. Until then, another node may write an older name, which the
 * next event corrects.
 */
import type { NewEvent } from '../../record/events.ts'
import { uuidv7 } from '../../engine/uuid.ts'
import { ownText, knownRows } from '../record/known-rows.ts'
import { insertJsonRows, type InsertedTable } from '../engine/rows.ts'
import { agentKey, SHORT_CHARS, shortText } from '../engine/keys.ts'
import type { Sql } from '../engine/sql.ts'

export interface KnownAgent {
  id: string
  name: string
  nameTime: number
  /** Time of the newest event with this name that this process has stored. */
  seenTime: number
}

type Named = Pick<NewEvent, 'agentId' | 'agentName' | 'time'>

const UNNAMED = Number.MIN_SAFE_INTEGER

const AGENTS: InsertedTable = {
  name: 'agents',
  columns: { id: 'uuid', agent_key: 'text', external_id: 'text', name: 'text', name_time: 'bigint' },
  conflict: 'ON CONFLICT (environment_id, agent_key) DO NOTHING',
}
const SELECT = 'SELECT id, name, name_time AS "nameTime" FROM agents WHERE environment_id = :env AND agent_key = :key'
const RENAME =
  'UPDATE agents SET name = :name, name_time = :time WHERE environment_id = :env AND id = :id AND name_time <= :time'

export function knownAgents(refreshMs: number) {
  const agents = knownRows<KnownAgent>(SHORT_CHARS)
  return {
    ...agents,
    /** Call this before any run is locked: a transaction that names the same new agent then waits only for its row. */
    open(sql: Sql, environmentId: string, events: readonly Named[], now: number) {
      const place = (event: Named) => placeOf(environmentId, event)
      const find = (event: Named) => findAgent(sql, environmentId, event)
      return agents.open(events, place, find, (missing) => storeAgents(sql, environmentId, missing, now))
    },
    note(agent: KnownAgent, { agentName, time }: Named): boolean {
      const name = shortText(agentName)
      const isDue = name === agent.name ? time >= agent.nameTime + refreshMs : time >= agent.seenTime
      if (name === agent.name && time > agent.seenTime) agent.seenTime = time
      if (isDue) Object.assign(agent, { name: ownText(name), nameTime: time, seenTime: time })
      return isDue
    },
  }
}

/** True: the row now has the name. False: it has a newer one. */
export async function renameAgent(sql: Sql, environmentId: string, id: string, name: string, time: number) {
  return (await sql.run(RENAME, { name, time, env: environmentId, id })) === 1
}

async function findAgent(sql: Sql, environmentId: string, { agentId, agentName }: Named): Promise<KnownAgent | null> {
  const params = { env: environmentId, key: agentKey(agentId, agentName) }
  const row = await sql.get<Omit<KnownAgent, 'seenTime'>>(SELECT, params)
  return row && { ...row, name: shortText(row.name), seenTime: row.nameTime }
}

async function storeAgents(sql: Sql, environmentId: string, missing: Named[], now: number): Promise<void> {
  const rows = missing.map(({ agentId, agentName }) => {
    return [uuidv7(now), agentKey(agentId, agentName), agentId, agentName, UNNAMED] as const
  })
  const inOrder = rows.toSorted(([, a], [, b]) => (a < b ? -1 : 1))
  await insertJsonRows(sql, AGENTS, environmentId, inOrder)
}

function placeOf(environmentId: string, { agentId, agentName }: Named): string {
  return agentId === null
    ? `${environmentId} name ${shortText(agentName)}`
    : `${environmentId} id ${shortText(agentId)}`
}
