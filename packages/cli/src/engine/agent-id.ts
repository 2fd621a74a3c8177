import { failed } from './stop.ts'
import type { OperatorClient } from './operator-client.ts'

/** The internal id of the agent of the newest run with this id or name. */
export async function agentIdOf(client: OperatorClient, environmentId: string, agent: string): Promise<string> {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(agent)) return agent
  const { items } = await client.listOperatorRuns({ params: { environmentId }, query: { agent, limit: 1 } })
  if (items[0] !== undefined) return items[0].agent.id
  throw failed(`No agent ${JSON.stringify(agent)} has runs in this environment.`)
}
