/**
 * Agents that this node has met. The id of an agent never changes; its name is the newest by event time over all nodes.
 *
 * An agent's row is hot: every batch of a tenant may name it. So a time of an unchanged name is written only when it has
 * moved by more than REFRESH_MS; within that, this node still knows the newest time that it has seen, and another may
 * take an older name for the newer one until the next event.
 */
import { randomUUIDv7 } from 'node:crypto'
import type { ClientBase } from 'pg'
import { agentKey, textKey } from '../sql/keys.ts'
import type { NewEvent } from '../events.ts'
import { statement } from './statement.ts'

export interface KnownAgent {
  id: string
  /** Short form of the name that the row has. */
  name: string
  /** Event time of that name in the row. */
  nameTime: number
  /** Newest event time of that name that this node has seen; at least nameTime. */
  seenTime: number
}

export interface Rename {
  id: string
  name: string
  time: number
}

type Named = Pick<NewEvent, 'agentId' | 'agentName' | 'time'>

const AGENTS_KEPT = 10_000
const REFRESH_MS = 1_000
/** Longer names are known by their hash, so that what is kept is small. */
const SHORT_CHARS = 200

const SELECT = statement(
  'SELECT id, agent_key AS key, name, name_time AS "nameTime" FROM agents WHERE environment_id = $1 AND agent_key = ANY($2)',
)
const INSERT = statement(
  `INSERT INTO agents (environment_id, id, agent_key, external_id, name, name_time)
    SELECT $1, (x->>0)::uuid, x->>1, x->>2, x->>3, (x->>4)::bigint FROM jsonb_array_elements($2::jsonb) AS x
    ON CONFLICT (environment_id, agent_key) DO NOTHING`,
)

const RENAME = statement(
  'UPDATE agents SET name = $3, name_time = $4 WHERE environment_id = $1 AND id = $2 AND name_time <= $4',
)

export type AgentOf = (event: Named) => KnownAgent

export function knownAgents() {
  const agents = new Map<string, KnownAgent>()
  const placeOf = (environmentId: string, event: Named) => `${environmentId} ${shortAgent(event)}`

  /**
   * The agents that the events name. New ones are stored by a commit of their own: it comes before any lock, so that many
   * who meet a new agent at once wait for nothing but its row.
   */
  async function meet(client: ClientBase, environmentId: string, events: readonly Named[]): Promise<AgentOf> {
    if (agents.size > AGENTS_KEPT) agents.clear()
    const met = new Map<string, KnownAgent>()
    const unknown = new Map<string, Named>()
    for (const event of events) {
      const place = placeOf(environmentId, event)
      const known = met.get(place) ?? agents.get(place)
      if (known) met.set(place, known)
      else unknown.set(agentKey(event.agentId, event.agentName), event)
    }
    if (unknown.size > 0) await load(client, environmentId, unknown, met)
    if (unknown.size > 0) await store(client, environmentId, unknown)
    if (unknown.size > 0) await load(client, environmentId, unknown, met)
    return (event) => {
      const agent = met.get(placeOf(environmentId, event))
      if (agent === undefined) throw new Error('An agent that was just stored is gone')
      return agent
    }
  }

  async function store(client: ClientBase, environmentId: string, unknown: Map<string, Named>): Promise<void> {
    const rows = [...unknown].map(([key, { agentId, agentName, time }]) => [
      randomUUIDv7(),
      key,
      agentId,
      agentName,
      time,
    ])
    rows.sort(([, a], [, b]) => (String(a) < String(b) ? -1 : 1))
    await client.query({ ...INSERT, values: [environmentId, JSON.stringify(rows)] })
  }

  /** Moves those that are stored from `unknown` to `met`. */
  async function load(
    client: ClientBase,
    environmentId: string,
    unknown: Map<string, Named>,
    met: Map<string, KnownAgent>,
  ): Promise<void> {
    const { rows } = await client.query<{ id: string; key: string; name: string; nameTime: number }>({
      ...SELECT,
      values: [environmentId, [...unknown.keys()]],
    })
    for (const { id, key, name, nameTime } of rows) {
      const event = unknown.get(key)
      if (event === undefined) continue
      const place = placeOf(environmentId, event)
      const agent = agents.get(place) ?? { id, name: short(name), nameTime, seenTime: nameTime }
      agents.set(place, agent)
      met.set(place, agent)
      unknown.delete(key)
    }
  }

  /** Forgets agents whose rows are not what was noted. */
  function forget(environmentId: string, events: readonly Named[]): void {
    for (const event of events) agents.delete(placeOf(environmentId, event))
  }

  return { meet, forget }
}

/**
 * Takes note of a stored event of an agent, the newest of its transaction. Returns what the agent's row must become, null
 * when it may stay. If the transaction fails, or the row has a newer name, the agent must be forgotten.
 */
export function noteName(agent: KnownAgent, { agentName, time }: Named): Rename | null {
  const name = short(agentName)
  const isDue = name === agent.name ? time >= agent.nameTime + REFRESH_MS : time >= agent.seenTime
  if (name === agent.name && time > agent.seenTime) agent.seenTime = time
  if (!isDue) return null
  Object.assign(agent, { name, nameTime: time, seenTime: time })
  return { id: agent.id, name: agentName, time }
}

/** Whether the row has the name now, and no newer one. */
export async function renameAgent(
  client: ClientBase,
  environmentId: string,
  { id, name, time }: Rename,
): Promise<boolean> {
  const { rowCount } = await client.query({ ...RENAME, values: [environmentId, id, name, time] })
  return rowCount === 1
}

function shortAgent({ agentId, agentName }: Named): string {
  return agentId === null ? `name ${short(agentName)}` : `id ${short(agentId)}`
}

function short(text: string): string {
  return text.length <= SHORT_CHARS ? `=${text}` : `#${textKey(text)}`
}
