import { eachItem, taken } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Agent } from '@tacho/contract/runs/agent.ts'
import type { Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { OF_ENVIRONMENT, unknown } from '../engine/find-by-id.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { addLife } from '../data/archive.ts'
import { inEnvironment, mostOf, withPages, type EnvironmentOptions, type PageOptions } from '../engine/options.ts'
import { wrongUsage } from '../engine/stop.ts'
import { printable, printEmpty, printJson, printMore, printTable } from '../engine/output.ts'

interface ListOptions extends EnvironmentOptions, PageOptions {
  archived?: true
}

const LIMIT = 100

export function addAgents(agents: Command): void {
  withPages(inEnvironment(agents.command('list').description('list the agents of an environment')), LIMIT)
    .option('--archived', 'archived ones too')
    .addHelpText('after', '\nExamples:\n  tacho agents list\n  tacho agents list --archived --json')
    .action(list)

  addLife(agents, {
    noun: 'agent',
    example: 'support-bot',
    archiving: 'it is hidden until it starts a run. It can record as before',
    restoring: 'it is listed again',
    within: 'environment',
    async find(client, agentName, options) {
      const { environmentId } = await connected(options)
      const { id, name } = await findAgent(client, environmentId, agentName)
      return { params: { environmentId, agentId: id }, name }
    },
    rename: (client, agentRequest) => client.renameAgent(agentRequest),
    archive: (client, agentRequest) => client.archiveAgent(agentRequest),
    restore: (client, agentRequest) => client.restoreAgent(agentRequest),
  })
}

const everyAgent = (client: OperatorClient, environmentId: string, archived: true | undefined) => {
  const query = { limit: LIMITS.operatorPageMax, ...(archived && { archived: 'true' as const }) }
  return eachItem(client.listAgents, { params: { environmentId }, query })
}

async function list(options: ListOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { items, hasMore } = await taken(everyAgent(client, environmentId, options.archived), mostOf(options))
  if (options.json) return printJson({ items, hasMore })
  if (items.length === 0)
    return printEmpty(
      'No agents. An agent is listed from its first event on; `tacho demo` records some in an environment of its own.',
    )
  printTable(
    [
      { title: 'AGENT' },
      { title: 'ID' },
      { title: 'REPORTS', isOptional: true },
      { title: 'LAST RUN', as: 'time' },
      ...(options.archived ? [{ title: 'ARCHIVED', as: 'time' as const }] : []),
    ],
    items.map(({ name, agentId, reportedName, lastRunAt, archivedAt }) => [
      name,
      agentId ?? '',
      name === reportedName ? '' : reportedName,
      lastRunAt,
      ...(options.archived ? [archivedAt ?? 'no'] : []),
    ]),
  )
  printMore(hasMore)
}

/** Finds an agent by internal id, external id or name, in this order. Includes archived agents. */
async function findAgent(client: OperatorClient, environmentId: string, agentName: string): Promise<Agent> {
  const named: Agent[] = []
  for await (const agent of everyAgent(client, environmentId, true)) {
    if (agent.id === agentName.toLowerCase() || agent.agentId === agentName) return agent
    if (agent.name === agentName || agent.reportedName === agentName) named.push(agent)
  }
  const [agent, other] = named
  if (agent === undefined) throw unknown('agent', agentName, 'agents list --archived', OF_ENVIRONMENT)
  if (other === undefined) return agent
  throw wrongUsage(
    `Several agents are called ${printable(JSON.stringify(agentName))}: give the id that \`tacho agents list --json\` shows.`,
  )
}
