/** Finds the item that a command's argument names, by id or by the short form of an id in tables. */
import { eachItem, taken } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { wrongUsage, type Stop, failed } from './stop.ts'
import { beginningOf, isShortFor } from './table.ts'
import { Refused, type OperatorClient } from './operator-client.ts'

interface EnvironmentPlace {
  client: OperatorClient
  environmentId: string
}

/** A short id is looked up among this many of the newest items. */
const LOOKED_AT = 1_000
const MOST_NAMED = 5

const IDS = {
  async *run({ client, environmentId }: EnvironmentPlace, idStart: string) {
    const beginning = beginningOf(idStart)
    const query = { limit: LIMITS.operatorPageMax, ...(beginning === '' ? {} : { q: beginning }) }
    for await (const { runId } of eachItem(client.listOperatorRuns, { params: { environmentId }, query })) yield runId
  },
  async *approval({ client, environmentId }: EnvironmentPlace) {
    const query = { limit: LIMITS.operatorPageMax }
    for await (const { id } of eachItem(client.listApprovals, { params: { environmentId }, query })) yield id
  },
  async *issue({ client, environmentId }: EnvironmentPlace) {
    const query = { limit: LIMITS.operatorPageMax }
    for await (const { id } of eachItem(client.listIssues, { params: { environmentId }, query })) yield id
  },
}

type Noun = keyof typeof IDS

/** The reply of a call about one item, which is named by its id or a short form of it. */
export async function known<Reply>(
  noun: Noun,
  idStart: string,
  place: EnvironmentPlace,
  call: (id: string) => Promise<Reply>,
): Promise<Reply> {
  const reply = (await orNull(call(idStart))) ?? (await orNull(call(await wholeId(noun, idStart, place))))
  if (reply !== null) return reply
  throw unknown(noun, idStart, `${noun}s list`, OF_ENVIRONMENT)
}

/** The only id with this short form. */
async function wholeId(noun: Noun, idStart: string, place: EnvironmentPlace): Promise<string> {
  const { items } = await taken(IDS[noun](place, idStart), LOOKED_AT)
  const matchingIds = [...new Set(items)].filter((id) => isShortFor(idStart, id))
  if (matchingIds.length === 1 && matchingIds[0] !== undefined) return matchingIds[0]
  if (matchingIds.length === 0) throw unknown(noun, idStart, `${noun}s list`, OF_ENVIRONMENT)
  const named = matchingIds.slice(0, MOST_NAMED).map((id) => JSON.stringify(id))
  const more = matchingIds.length > MOST_NAMED ? ` and ${matchingIds.length - MOST_NAMED} more` : ''
  throw wrongUsage(`${JSON.stringify(idStart)} is short for several ${noun}s: ${named.join(', ')}${more}.`)
}

export const OF_ENVIRONMENT = 'those of the environment'

export function unknown(noun: string, soughtId: string, listing: string, those = 'all'): Stop {
  return wrongUsage(`Unknown ${noun} ${JSON.stringify(soughtId)}: \`tacho ${listing}\` shows ${those}.`)
}

/** The reply; null if the server has no such item, or the text is not an id. */
export async function orNull<Reply>(call: Promise<Reply>): Promise<Reply | null> {
  try {
    return await call
  } catch (error) {
    if (error instanceof Refused && namesNothing(error.result)) return null
    throw error
  }
}

function namesNothing(result: Refused['result']): boolean {
  if (result.reason !== 'refused') return false
  const { code, errors = [] } = result.problem
  return code === 'not_found' || (errors.length > 0 && errors.every(({ path }) => /^\/\w+Id$/.test(path)))
}

/** The internal id of the agent of the newest run with this id or name. */
export async function agentIdOf(client: OperatorClient, environmentId: string, agent: string): Promise<string> {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(agent)) return agent
  const { items } = await client.listOperatorRuns({ params: { environmentId }, query: { agent, limit: 1 } })
  if (items[0] !== undefined) return items[0].agent.id
  throw failed(`No agent ${JSON.stringify(agent)} has runs in this environment.`)
}
